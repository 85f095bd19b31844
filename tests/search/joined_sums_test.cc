// Sums that join others (joining_sums.h), and bounds on what is left from states on their way.
#include <optional>
#include <random>

#include "cost/topology.h"
#include "doctest/doctest.h"
#include "search/search.h"
#include "small_question.h"

using namespace meshplan;

namespace {

// What the cheapest plan costs as a search finds it that raises no bound, and as one does that raises them first; none: one of them ended early.
struct BothWays {
  PlanCost plain;
  PlanCost raised;
  bool joins = false;  // the plan makes a sum of a shard or a copy
};

std::optional<BothWays> both_ways(const PlanProblem& p) {
  SearchOptions plain;
  plain.easy_work = INT64_MAX;
  const Found found = find_cheapest(p, plain);
  SearchOptions hard;
  hard.easy_work = 0;
  const Found raised = find_cheapest(p, hard);
  if (!found.exists || !raised.exists || !found.shortcuts.none() || !raised.shortcuts.none()) return std::nullopt;
  const bool joins = std::any_of(found.edges.begin(), found.edges.end(), [](const Edge& edge) { return edge.op == Op::to_partial; });
  return BothWays{found.cost, raised.cost, joins};
}

State sharded(size_t dims, const std::vector<std::vector<SubAxis>>& shards) {
  State s;
  s.shards = shards;
  s.shards.resize(dims);
  return s;
}

}  // namespace

TEST_CASE("what a sum joined may be reduced before it, also where bounds on what is left were raised") {
  struct Case {
    std::vector<int64_t> sizes;
    std::vector<int64_t> shape;
    bool whole;  // the target has no shard of the third mesh dim
    int64_t ns;
  };
  // S(0)S(0)P(sum) -> S(0)P(sum)P(sum), then one reduce_scatter after the other. The prices are those of S(0)P(sum)P(sum) -> the same target, or of
  // two plans in a row by way of S(0)S(1)[1]S(1)[0]; of the last 3 ns more, as each sum that joins is counted at joining_ps.
  for (const Case& c : {Case{{8, 5, 8}, {8, 960, 768}, true, 133'827}, Case{{8, 3, 8}, {2, 1000, 768}, false, 133'949},
                        Case{{8, 3, 4}, {8, 960, 768}, true, 139'457}, Case{{16, 3, 8}, {4, 480, 768}, true, 128'390}}) {
    CAPTURE(c.sizes);
    test::SmallQuestion q(c.sizes, *topology_preset("a100"), {c.shape, DType::bfloat16});
    q.options.groups = GroupPolicy::declared;
    q.options.max_memory_bytes = -1;
    const SubAxis a{0, 1, c.sizes[0]};
    const SubAxis b{1, 1, c.sizes[1]};
    const SubAxis third{2, 1, c.sizes[2]};
    q.request.src = sharded(3, {{a, b}});
    q.request.src.partial = {{third, ReduceOp::sum}};
    q.request.dst = sharded(3, {{}, c.whole ? std::vector{a, b} : std::vector{a, b, third}});
    const auto costs = both_ways(*q.problem());
    REQUIRE(costs.has_value());
    CHECK(costs->joins);
    CHECK(costs->raised == costs->plain);
    CHECK(ns_of_ps(costs->raised.ps) <= c.ns);
  }
}

TEST_CASE("raised bounds lose no plan by sums that join others") {
  std::mt19937_64 random(7);
  const auto one_of = [&](const auto& list) { return list[random() % list.size()]; };
  const std::vector<std::vector<int64_t>> meshes = {{8, 5, 8}, {8, 3, 4}, {4, 3, 8}, {2, 6, 4}, {12, 4, 2}, {3, 16}, {6, 8}, {4, 2, 6}};
  const std::vector<std::vector<int64_t>> shapes = {{8, 960, 768}, {2, 1000, 768}, {1, 96, 80}, {20, 48}, {5003, 512}, {64, 4096}};
  int64_t compared = 0;
  int64_t joined = 0;
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    const std::vector<int64_t> sizes = one_of(meshes);
    test::SmallQuestion q(sizes, *topology_preset(one_of(std::vector<std::string>{"a100", "h100", "b200"})),
                          {one_of(shapes), DType::bfloat16});
    q.options.groups = random() % 2 == 0 ? GroupPolicy::declared : GroupPolicy::any;
    q.options.max_memory_bytes = -1;
    const size_t dims = q.request.tensor.shape.size();
    // One mesh dim is pending, the others shard some dim or none.
    const size_t pending = random() % sizes.size();
    for (State* end : {&q.request.src, &q.request.dst}) {
      *end = sharded(dims, {});
      for (size_t m = 0; m < sizes.size(); ++m) {
        const SubAxis whole{static_cast<int32_t>(m), 1, sizes[m]};
        const size_t d = random() % (dims + 1);
        if (end == &q.request.src && m == pending) {
          end->partial.push_back({whole, ReduceOp::sum});
        } else if (d < dims) {
          end->shards[d].push_back(whole);
        }
      }
    }
    const auto problem = q.problem();
    REQUIRE(problem.has_value());
    const auto costs = both_ways(*problem);
    if (!costs) continue;
    ++compared;
    joined += costs->joins ? 1 : 0;
    CHECK(costs->raised == costs->plain);
  }
  CHECK(compared > 300);
  CHECK(joined > 10);
  MESSAGE(joined << " of " << compared << " plans join sums");
}
