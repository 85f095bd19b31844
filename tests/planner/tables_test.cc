// Topologies with measured tables: what they do not say anything of costs what it costs without them.
#include <doctest/doctest.h>

#include <random>

#include "../cost/all_states.h"
#include "planner/one_mesh.h"

namespace meshplan {
namespace {

// Questions on one mesh, without a memory limit.
class Asked : public test::OneMesh {
 public:
  Asked(const std::vector<int64_t>& sizes, Topology topology) : OneMesh(sizes, std::move(topology)) {
    options_.max_memory_bytes = -1;
    options_.advice = false;
  }
  struct Answer {
    int64_t ps = 0;
    int64_t gap_ps = 0;
  };
  [[nodiscard]] Answer plan(const std::vector<int64_t>& shape, const State& src, const State& dst) const {
    const Plan plan = OneMesh::plan(request(shape, src, dst), options_);
    const PlannedRedistribution& planned = plan.redistributions.front();
    return {planned.totals.predicted_ps, planned.proven_gap_ps};
  }

 private:
  PlanOptions options_;
};

Topology with_table(Topology topology, Op op, int64_t ranks, std::vector<std::pair<int64_t, int64_t>> points) {
  MeasuredTable table;
  table.op = op;
  table.ranks = ranks;
  table.points = std::move(points);
  topology.tables = {table};
  return topology;
}

}  // namespace

TEST_CASE("a table that serves no group changes no price") {
  int64_t asked = 0;
  for (const auto& [sizes, inside] : {std::pair(std::vector<int64_t>{8, 6}, 8), {{8, 6}, 7}, {{2, 3}, 4}, {{3, 4}, 4}, {{6, 2}, 5}}) {
    const Topology levels = test::two_levels(inside, 500);
    const Asked without(sizes, levels);
    const Asked with(sizes, with_table(levels, Op::all_reduce, 47, {{1024, 8'000}}));
    const auto states = all_states(sizes, 2);
    for (size_t i = 0; i < states.size(); ++i) {
      for (size_t j = 0; j < states.size(); ++j) {
        if (i == j) continue;
        for (const std::vector<int64_t>& shape : {std::vector<int64_t>{96, 12288}, {60, 8191}}) {
          CAPTURE(inside);
          CAPTURE(to_text(states[i], sizes));
          CAPTURE(to_text(states[j], sizes));
          const Asked::Answer a = without.plan(shape, states[i], states[j]);
          const Asked::Answer b = with.plan(shape, states[i], states[j]);
          if (a.gap_ps == 0) CHECK(b.ps >= a.ps);
          if (b.gap_ps == 0) CHECK(b.ps <= a.ps);
          ++asked;
        }
      }
    }
  }
  CHECK(asked > 500);
}

TEST_CASE("with tables, too, no proven plan is dearer than two in a row") {
  std::mt19937_64 random(20261129);
  int64_t asked = 0;
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 2}, {2, 4}, {3, 2}}) {
    const auto states = all_states(sizes, 2);
    for (const Op op : {Op::all_gather, Op::all_to_all}) {
      for (const int64_t ranks : {2, 3, 4}) {
        const Topology flat = test::one_level(2'000, 500);
        const Asked question(sizes, with_table(flat, op, ranks, {{1 << 20, 50'000}, {1 << 24, 400'000}}));
        const Asked hosts(sizes, with_table(test::two_levels(2, 500), op, ranks, {{1 << 20, 50'000}, {1 << 24, 400'000}}));
        for (int round = 0; round < 60; ++round) {
          const State& a = states[random() % states.size()];
          const State& b = states[random() % states.size()];
          const State& c = states[random() % states.size()];
          if (a == c) continue;
          const Asked& here = round % 2 == 0 ? question : hosts;
          const Asked::Answer whole = here.plan({64, 65536}, a, c);
          if (whole.gap_ps > 0) continue;
          CAPTURE(to_text(a, sizes));
          CAPTURE(to_text(b, sizes));
          CAPTURE(to_text(c, sizes));
          CHECK(whole.ps <= here.plan({64, 65536}, a, b).ps + here.plan({64, 65536}, b, c).ps);
          ++asked;
        }
      }
    }
  }
  CHECK(asked > 300);
}

}  // namespace meshplan
