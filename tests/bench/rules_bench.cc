// How fast PyTorch's rules are here: greedy, graph, merge and verify over the recorded cases (testdata/vectors/redistribute.json).
//
//     rules_bench --benchmark_filter=^rules        all cases in turn; time of one case
//     rules_bench --benchmark_filter=^case         each case by itself, as against_torch.py compares them
#include <benchmark/benchmark.h>

#include <deque>

#include "cost/topology.h"
#include "planner/planner.h"
#include "torch_rules/rule_planner.h"
#include "torch_rules/torch_case.h"
#include "verify/verify.h"

namespace {

using namespace meshplan;

struct Prepared {
  std::string name;  // "graph/17"
  test::TorchCase asked;
  PlanOptions options;
  RuleAnswer answer;
  Plan plan;  // for verify

  [[nodiscard]] PlanQuestion question(const Topology& topology) const { return {&asked.meshes, &topology, &asked.request, &options}; }
};

const Topology& topology() {
  static const Topology uniform = uniform_topology();
  return uniform;
}

// The cases that can be executed, per planner.
const std::deque<Prepared>& prepared(const std::string& planner) {
  static std::map<std::string, std::deque<Prepared>> all;
  if (all.empty()) {
    int number = -1;
    const nlohmann::json vectors = test::read_vectors("redistribute.json");
    for (const auto& json : vectors.at("cases")) {
      ++number;
      for (const auto& [name, torch] : json.at("torch").items()) {
        if (!test::executable(torch)) continue;
        Prepared& p = all[name].emplace_back();
        p.name = name + "/" + std::to_string(number);
        p.asked = test::torch_case(json);
        p.options.planner = name == "graph" ? PlannerKind::graph : PlannerKind::greedy;
        p.options.rules = Rules::dtensor;
        p.answer = rule_transitions(p.question(topology())).value();
        p.plan = plan_requests(p.asked.meshes, topology(), {p.asked.request}, p.options, "").plan;
      }
    }
  }
  return all.at(planner);
}

void plan_and_merge(const Prepared& p) {
  const auto answer = rule_transitions(p.question(topology()));
  benchmark::DoNotOptimize(merged_steps(p.question(topology()), *answer));
}

void verify(const Prepared& p) { benchmark::DoNotOptimize(verify_redistribution(p.plan, p.plan.redistributions[0])); }

template <class Work>
void over_cases(benchmark::State& state, const std::string& planner, Work work) {
  const std::deque<Prepared>& cases = prepared(planner);
  size_t at = 0;
  for (auto _ : state) {
    work(cases[at]);
    if (++at == cases.size()) at = 0;
  }
}

// What is timed for a case: what PyTorch does for it, and for greedy the proof besides.
void run_case(benchmark::State& state, const Prepared* p) {
  for (auto _ : state) {
    plan_and_merge(*p);
    if (p->answer.planner == PlannerKind::greedy) verify(*p);
  }
}

void register_all() {
  for (const std::string planner : {"greedy", "graph"}) {
    benchmark::RegisterBenchmark(("rules/" + planner).c_str(), [planner](benchmark::State& state) {
      over_cases(state, planner, [](const Prepared& p) { benchmark::DoNotOptimize(rule_transitions(p.question(topology()))); });
    });
    benchmark::RegisterBenchmark(("rules/" + planner + "_merge").c_str(), [planner](benchmark::State& state) {
      over_cases(state, planner, [](const Prepared& p) { benchmark::DoNotOptimize(merged_steps(p.question(topology()), p.answer)); });
    });
    benchmark::RegisterBenchmark(("rules/" + planner + "_verify").c_str(),
                                 [planner](benchmark::State& state) { over_cases(state, planner, verify); });
    for (const Prepared& p : prepared(planner)) {
      benchmark::RegisterBenchmark(("case/" + p.name).c_str(), [&p](benchmark::State& state) { run_case(state, &p); });
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
