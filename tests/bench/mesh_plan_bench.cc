// Planning on a mesh of six dims over 64 and over 1,048,576 ranks: the same work, since nothing enumerates ranks.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "cost/topology.h"
#include "planner/planner.h"
#include "planner/settle_options.h"

namespace {

using namespace meshplan;

MeshTable job(bool large) {
  const std::vector<int64_t> sizes = large ? std::vector<int64_t>{16, 16, 64, 4, 2, 8} : std::vector<int64_t>{2, 2, 2, 2, 2, 2};
  const char* names[]{"pp", "dp_replicate", "dp_shard", "cp", "ep", "tp"};
  std::vector<std::pair<std::string, int64_t>> dims;
  int64_t world = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    dims.emplace_back(names[i], sizes[i]);
    world *= sizes[i];
  }
  MeshTable table;
  if (!add_root(table, "mesh", world, {}, dims) || !declare_flatten(table, "mesh", {"dp_shard", "cp"}, "fsdp")) std::abort();
  return table;
}

Request request(const MeshTable& table, const char* src, const char* dst) {
  const std::vector<int64_t> shape = mesh_shape(table.meshes[0]);
  Request made;
  made.id = "r";
  made.tensor = {{16'384, 16'384}, DType::bfloat16};
  made.src = parse_state(src, shape, 2).value();
  made.dst = parse_state(dst, shape, 2).value();
  return made;
}

void plan(benchmark::State& state, PlannerKind planner) {
  const MeshTable table = job(state.range(0) != 0);
  const std::vector<Request> requests{request(table, "RRS(0)[0]S(0)[1]RS(1)", "RRRRRS(1)"),
                                      request(table, "RP(sum)P(sum)P(sum)RS(1)", "RRS(0)[0]S(0)[1]RS(1)")};
  PlanOptions options;
  options.planner = planner;
  options.rules = rules_of(planner);
  const Topology topology = uniform_topology();
  for (auto _ : state) {
    const PlanOutcome outcome = plan_requests(table, topology, requests, options, "");
    if (!outcome.failures.empty()) std::abort();
    benchmark::DoNotOptimize(outcome.plan.redistributions.data());
  }
  state.SetLabel(std::to_string(rank_count(table)) + " ranks");
}
BENCHMARK_CAPTURE(plan, greedy, PlannerKind::greedy)->Arg(0)->Arg(1);
BENCHMARK_CAPTURE(plan, graph, PlannerKind::graph)->Arg(0)->Arg(1);
BENCHMARK_CAPTURE(plan, optimal, PlannerKind::optimal)->Arg(0)->Arg(1);

}  // namespace
