// Every step that a search may take, not just those of the plans that it finds: the verifier accepts
// it and counts the figures that the search prices it at, and no bound is above these.
#include <doctest/doctest.h>

#include <map>

#include "../cost/random_prices.h"
#include "../search/small_question.h"
#include "base/seed.h"
#include "cost/bounds.h"
#include "cost/step_cost.h"
#include "plan/describe_moves.h"
#include "search/edge_steps.h"
#include "search/exchange_floor.h"
#include "search/joining_sums.h"
#include "search/moves.h"
#include "search/unit_needs.h"
#include "verify/random_world.h"
#include "verify/recount.h"
#include "verify/step_rules.h"

using namespace meshplan;

namespace {

using test::Random;

constexpr uint64_t edges_seed = 20261128;

// A mesh of few ranks, units that often cut its dims unevenly, and a tensor of which something is
// often pending.
struct EdgeWorld {
  std::vector<int64_t> sizes;
  Topology topology;
  TensorMeta tensor;
  std::vector<int64_t> ranks;
  State src;
  State dst;
  std::optional<DType> reduce_dtype;
};

EdgeWorld random_edge_world(Random& random) {
  static const std::vector<std::vector<int64_t>> meshes{{4},    {6},    {8},     {12},   {2, 6},    {6, 2},
                                                        {3, 4}, {4, 3}, {2, 12}, {5, 2}, {2, 2, 3}, {2, 4, 2}};
  static const std::vector<int64_t> extents{1, 2, 3, 4, 5, 6, 8, 12, 13, 16, 24, 48, 50};
  EdgeWorld w;
  w.sizes = random.pick(meshes);
  w.topology = test::random_prices(random);
  w.tensor.dtype = DType::float32;
  for (int64_t d = 1 + random.below(3); d > 0; --d) w.tensor.shape.push_back(random.pick(extents));
  int64_t world = 1;
  for (const int64_t size : w.sizes) world *= size;
  if (random.one_in(4)) {
    for (int64_t r = 0; r < world; ++r) w.ranks.push_back(r);
    random.shuffle(w.ranks);
  }
  const size_t rank = w.tensor.shape.size();
  w.src = test::random_state(random, w.sizes, rank, 0, 2);
  w.dst = test::random_state(random, w.sizes, rank, 0, 2);
  if (!random.one_in(4)) w.dst.partial.clear();
  if (random.one_in(4)) w.reduce_dtype = DType::bfloat16;
  return w;
}

// The sub-axes that are not pending are anywhere.
SearchState random_edge_end(const PlanProblem& p, uint16_t pending, Random& random) {
  SearchState s;
  s.pending = pending;
  std::vector<int> others;
  for (int i = 0; i < p.sub_axes; ++i) {
    if ((pending >> i & 1) == 0) others.push_back(i);
  }
  random.shuffle(others);
  for (const int i : others) {
    const auto d = static_cast<int>(random.below(p.dims + 1));
    if (d < p.dims) append(s, p.dims, d, static_cast<uint8_t>(i));
  }
  return s;
}

class Counter {
 public:
  Counter(const EdgeWorld& w, const test::SmallQuestion& question, const PlanProblem& p) : w_(w), question_(question), p_(p) {
    plan_.topology = w.topology;
    plan_.meshes = question.meshes;
  }

  // Empty where all is as counted; else what is not.
  std::string problem_of(const SearchState& from, const Edge& edge, ExchangeWay way) const {
    const State before = to_state(p_, from);
    PlannedRedistribution alone;
    alone.request = question_.request;
    alone.request.src = before;
    alone.steps = steps_of_edges(p_, {edge}, "");
    if (alone.steps.size() != 1) return std::to_string(alone.steps.size()) + " steps";
    alone.request.dst = alone.steps.front().state;
    // It was described from the question's source.
    Step& described = alone.steps.own().front();
    describe_moves(described, {});
    describe_change(before, question_.mesh, described);
    price_redistribution(alone, question_.meshes, question_.levels);
    const Step& step = alone.steps.front();
    const std::string text = to_text(before, w_.sizes) + " " + std::string(to_text(step.op)) + " " + to_text(step.state, w_.sizes) + ": ";
    const Mesh& mesh = plan_.meshes.meshes.front();
    if (auto problem = verification::check_step(mesh, w_.sizes, w_.tensor.shape, before, step)) return text + *problem;
    const verification::Counted counted = verification::recount({&plan_, &mesh, &mesh, &w_.tensor, w_.reduce_dtype, &before, &step});
    if (!counted.wrong.empty()) return text + counted.wrong;
    std::string wrong;
    const auto compare = [&](const char* what, std::optional<int64_t> is, int64_t said) {
      if (is && *is != said) wrong += text + what + " " + std::to_string(said) + ", counted " + std::to_string(*is) + "; ";
    };
    compare("wire", counted.wire_bytes, edge.cost.wire_bytes);
    compare("peak", counted.peak_bytes, step.peak_bytes);
    // A sum that joins others is charged for in the search, and takes nothing.
    const int64_t ps = edge.op == Op::to_partial && edge.cost.ps <= joining_ps ? 0 : edge.cost.ps;
    compare("ps", counted.ps, ps);
    if (counted.least_ps && ps < *counted.least_ps) wrong += text + "ps below what is counted at least";
    return wrong + bounds_above(from, edge, way, before, step.state, text);
  }

 private:
  // What says that the step takes more than it does; empty where nothing does.
  std::string bounds_above(const SearchState& from, const Edge& edge, ExchangeWay way, const State& before, const State& after,
                           const std::string& text) const {
    if (edge.op == Op::to_partial) return "";
    std::string wrong;
    const auto compare = [&](const char* what, int64_t bound, int64_t takes) {
      if (bound > takes) wrong += text + what + " " + std::to_string(bound) + ", it takes " + std::to_string(takes) + "; ";
    };
    const Bounds between = bound_between(p_, from, edge.to);
    compare("bound in ps", between.ps, edge.cost.ps);
    compare("bound in bytes", between.bytes, edge.cost.wire_bytes);
    const Bounds least = lower_bounds(question_.levels, w_.tensor.shape, p_.element, p_.reduce_element, before, after);
    compare("lower bound in ps", least.ps, edge.cost.ps);
    compare("lower bound in bytes", least.bytes, edge.cost.wire_bytes);
    if (edge.op != Op::exchange) return wrong;
    compare("floor", exchange_floor_ps(p_, from, edge.to, way), edge.cost.ps);
    compare("close floor", close_exchange_floor_ps(p_, from, edge.to, way), edge.cost.ps);
    if (p_.units_tell) compare("floor of units", unit_exchange_floor_ps(p_, from, edge.to, way), edge.cost.ps);
    return wrong;
  }

  const EdgeWorld& w_;
  const test::SmallQuestion& question_;
  const PlanProblem& p_;
  Plan plan_;
};

}  // namespace

TEST_CASE("every step that a search may take is accepted, and counted as it is priced") {
  // Found before: two phases on units whose ranks stand in unlike orders, peers outside of units of several hosts, peers paid for twice.
  std::vector<uint64_t> seeds{6062196, 6066076, 6068661, 6114051, 6352295, 6428216, 6464146, 6337792, 6504218};
  for (int64_t round = 0; round < test::rounds_or(4'000); ++round)
    seeds.push_back(test::seed_or(edges_seed) + static_cast<uint64_t>(round));
  std::map<std::string, int64_t> seen;
  for (const uint64_t seed : seeds) {
    Random random(seed);
    const EdgeWorld w = random_edge_world(random);
    test::SmallQuestion question(w.sizes, w.topology, w.tensor, w.ranks);
    question.request.src = w.src;
    question.request.dst = w.dst;
    question.request.reduce_dtype = w.reduce_dtype;
    const auto p = question.problem();
    if (!p) continue;
    const Counter counter(w, question, *p);
    const auto check = [&](const SearchState& from, const Edge& edge, ExchangeWay way) {
      if (edge.at_least || edge.estimated || edge.cost.ps == INT64_MAX) return;  // no such step, or not priced
      const std::string problem = counter.problem_of(from, edge, way);
      if (!problem.empty()) FAIL_CHECK("seed " << seed << ": " << to_text(question.mesh) << ", " << problem);
      const bool keeps = edge.reduced != 0 && edge.to.pending != 0;
      ++seen[std::string(to_text(edge.op)) + (edge.phases == 2 ? " in two phases" : "") + (keeps ? " of a part" : "")];
    };
    for (int k = 0; k < 12; ++k) {
      const auto some = [&](uint16_t of) { return random.one_in(3) ? of : static_cast<uint16_t>(of & random.below(1 << 16)); };
      const uint16_t pending = some(p->source_pending);
      const SearchState from = random_edge_end(*p, pending, random);
      std::vector<Edge> edges;
      (void)collective_moves(*p, from, edges);
      for (const Edge& edge : edges) check(from, edge, ExchangeWay::one_phase);
      const SearchState to = random_edge_end(*p, some(pending), random);
      if (from == to) continue;
      // What reduces goes in one phase.
      for (const ExchangeWay way : exchange_ways) {
        if (way == ExchangeWay::by_all && !may_go(*p, from, to, way)) continue;
        if (way == ExchangeWay::one_phase || from.pending == to.pending) check(from, exchange_edge(*p, from, to, way), way);
      }
    }
  }
  for (const auto& [what, times] : seen) MESSAGE(what << ": " << times);
  CHECK(seen["exchange of a part"] * 20 > test::rounds_or(4'000));
}
