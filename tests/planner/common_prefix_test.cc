// What both ends have in common may move on the way: a proven plan takes no longer than two of our plans in a row that move it.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "../cost/all_states.h"
#include "cost/topology.h"
#include "planner/one_mesh.h"

using namespace meshplan;

namespace {

int64_t time_of(const Plan& plan) { return plan.redistributions.front().totals.predicted_ps; }

PlanOptions unlimited(GroupPolicy groups) {
  PlanOptions options;
  options.groups = groups;
  options.max_memory_bytes = -1;
  return options;
}

}  // namespace

TEST_CASE("a prefix that both ends have moves where the way through its ranks has fewer peers") {
  for (const int64_t size : {48, 128}) {
    CAPTURE(size);
    const test::OneMesh asked({8, size}, uniform_topology());
    const PlanOptions options;
    const std::vector<int64_t> shape{768, 768};
    const int64_t direct = time_of(asked.plan(asked.request(shape, "S(0)[0]S(0)[1]", "S(0)S(1)"), options));
    const int64_t away = time_of(asked.plan(asked.request(shape, "S(0)[0]S(0)[1]", "S(1)S(0)"), options));
    const int64_t back = time_of(asked.plan(asked.request(shape, "S(1)S(0)", "S(0)S(1)"), options));
    CHECK(direct <= away + back);
  }
}

TEST_CASE("triangles over a prefix: latencies that grow with peers, that fall outwards, and of protocols") {
  Topology peers = uniform_topology();
  peers.levels = {{"host", 8, 100000, 1000, 300}, {"net", 1048576, 50000, 5000, 700}};
  Topology falling = uniform_topology();
  falling.levels = {{"host", 6, 20000, 3000, 0}, {"net", 24, 10000, 500, 1}};
  Topology protocols = *topology_preset("h100");
  for (TopologyLevel& level : protocols.levels) level.peer_mb_per_s = 0;
  std::mt19937_64 random(48);
  int compared = 0;
  for (const Topology& topology : {uniform_topology(), peers, falling, protocols, *topology_preset("tpu-v5p")}) {
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{12, 4}, {2, 3, 2}, {4, 12}, {2, 6, 4}}) {
      const test::OneMesh asked(sizes, topology);
      const auto states = all_states(asked.sizes(), 2);
      const auto any = [&] { return states[random() % states.size()]; };
      for (int k = 0; k < 12; ++k) {
        const State from = any();
        const State by = any();
        // Both ends begin with the same mesh dim.
        State to = any();
        for (size_t d = 0; d < 2; ++d) {
          if (!from.shards[d].empty()) {
            for (size_t e = 0; e < 2; ++e) std::erase(to.shards[e], from.shards[d].front());
            to.shards[d].insert(to.shards[d].begin(), from.shards[d].front());
          }
        }
        const PlanOptions options = unlimited(k % 2 == 0 ? GroupPolicy::any : GroupPolicy::declared);
        const auto time = [&](const State& src, const State& dst) {
          if (src == dst) return int64_t{0};
          const Plan plan = asked.plan(test::OneMesh::request({48, 96}, src, dst), options);
          return time_of(plan);
        };
        const int64_t legs = time(from, by) + time(by, to);
        if (from == to) continue;
        const Plan direct = asked.plan(test::OneMesh::request({48, 96}, from, to), options);
        const PlannedRedistribution& planned = direct.redistributions.front();
        if (planned.proven_gap_ps > 0) continue;
        ++compared;
        CAPTURE(topology.name);
        CAPTURE(to_text(from, sizes));
        CAPTURE(to_text(by, sizes));
        CAPTURE(to_text(to, sizes));
        CHECK(time_of(direct) <= legs);
      }
    }
  }
  CHECK(compared > 150);
}
