// Laws of the cheapest cost: never less for more bytes, more latency or less bandwidth, never more
// for more groups or more memory, and never more than by way of a third state.
#include <algorithm>
#include <deque>

#include "search/joining_sums.h"
#include "small_world.h"

using namespace meshplan;
using namespace meshplan::test;

namespace {

// Every pending reduction of `dst` is pending in `src`.
bool only_reduces(const State& src, const State& dst) {
  return std::all_of(dst.partial.begin(), dst.partial.end(),
                     [&](const PendingSubAxis& p) { return std::find(src.partial.begin(), src.partial.end(), p) != src.partial.end(); });
}

// Calls `check` with every `stride`-th pair whose target has no reduction that the source lacks.
template <class Check>
void each_pair(const std::vector<State>& states, size_t stride, Check check) {
  size_t number = 0;
  for (const State& src : states) {
    for (const State& dst : states) {
      if (src == dst || !only_reduces(src, dst) || number++ % stride != 0) continue;
      check(src, dst);
    }
  }
}

PlanOptions any_groups(int64_t max_memory_bytes = 0) {
  PlanOptions options;
  options.groups = GroupPolicy::any;
  options.max_memory_bytes = max_memory_bytes;
  return options;
}

int64_t cost(const SmallWorld& world, const State& src, const State& dst, const PlanOptions& options) {
  const auto planned = world.plan(src, dst, options);
  REQUIRE(planned.has_value());
  return planned->totals.predicted_ps;
}

struct World {
  std::vector<int64_t> sizes;
  int64_t inside;
  size_t stride;
};
const std::vector<World> worlds = {{{2, 4}, 4, 1}, {{2, 4}, 2, 1}, {{2, 3}, 3, 1}, {{2, 2, 2}, 4, 3}, {{2, 2, 2}, 2, 3}};

// The topology with one number changed.
template <class Change>
Topology changed(Topology topology, size_t level, Change change) {
  change(topology.levels[level]);
  return topology;
}

}  // namespace

TEST_CASE("more bytes, more latency, more per peer, less bandwidth or the default memory rule never cost less") {
  for (const World& w : worlds) {
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{24, 24}, std::vector<int64_t>{2'400, 1'200}}) {
      for (int64_t per_peer : {0, 500}) {
        const Topology plain = two_levels(w.inside, per_peer);
        const SmallWorld world(w.sizes, plain, shape);
        std::deque<SmallWorld> dearer;
        dearer.emplace_back(w.sizes, plain, std::vector<int64_t>{shape[0] * 2, shape[1]});
        dearer.emplace_back(w.sizes, plain, std::vector<int64_t>{shape[0], shape[1] * 3});
        for (size_t level : {0, 1}) {
          dearer.emplace_back(w.sizes, changed(plain, level, [](TopologyLevel& l) { l.latency_ns += 7'000; }), shape);
          dearer.emplace_back(w.sizes, changed(plain, level, [](TopologyLevel& l) { l.per_peer_ns += 300; }), shape);
          dearer.emplace_back(w.sizes, changed(plain, level, [](TopologyLevel& l) { l.mb_per_s = l.mb_per_s * 2 / 3; }), shape);
          dearer.emplace_back(w.sizes, changed(plain, level, [](TopologyLevel& l) { l.exchange_percent = 80; }), shape);
        }
        each_pair(all_states(w.sizes, 2, {ReduceOp::sum}), w.stride, [&](const State& src, const State& dst) {
          CAPTURE(pair_text(src, dst, w.sizes));
          const int64_t least = cost(world, src, dst, any_groups());
          CHECK(cost(world, src, dst, any_groups(-1)) <= least);
          for (size_t i = 0; i < dearer.size(); ++i) {
            CAPTURE(i);
            CHECK(cost(dearer[i], src, dst, any_groups()) >= least);
          }
        });
      }
    }
  }
}

TEST_CASE("more declared groups never cost more, and any groups least") {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 4}, std::vector<int64_t>{2, 2, 2}}) {
    const SmallWorld none(sizes, two_levels(4, 500), {96, 4'096});
    // Chains of declarations, each a superset of the one before.
    std::vector<std::vector<std::vector<std::string>>> chains = {{{"a", "b"}}};
    if (sizes.size() == 3) {
      chains = {{{"a", "b"}, {"b", "c"}, {"a", "b", "c"}}, {{"a", "c"}, {"a", "b", "c"}}, {{"b", "c"}, {"a", "b"}, {"a", "c"}}};
    }
    for (const auto& chain : chains) {
      std::deque<SmallWorld> growing;
      for (size_t count = 1; count <= chain.size(); ++count) {
        SmallWorld& next = growing.emplace_back(sizes, two_levels(4, 500), std::vector<int64_t>{96, 4'096});
        for (size_t i = 0; i < count; ++i) REQUIRE(declare_flatten(next.meshes(), "mesh", chain[i]).ok());
      }
      each_pair(all_states(sizes, 2, {ReduceOp::sum}), sizes.size() == 3 ? 3 : 1, [&](const State& src, const State& dst) {
        CAPTURE(pair_text(src, dst, sizes));
        int64_t last = cost(none, src, dst, {});
        for (const SmallWorld& world : growing) {
          const int64_t next = cost(world, src, dst, {});
          CHECK(next <= last);
          last = next;
        }
        CHECK(cost(none, src, dst, any_groups()) <= last);
      });
    }
  }
}

TEST_CASE("more memory never costs more, and the least that exists is where plans begin") {
  for (const World& w : worlds) {
    const SmallWorld world(w.sizes, two_levels(w.inside, 500), {96, 4'800});
    each_pair(all_states(w.sizes, 2, {ReduceOp::sum}), 5 * w.stride, [&](const State& src, const State& dst) {
      CAPTURE(pair_text(src, dst, w.sizes));
      const auto free = world.plan(src, dst, any_groups(-1));
      REQUIRE(free.has_value());
      CHECK(free->totals.predicted_ps <= cost(world, src, dst, any_groups()));
      // Tighter and tighter: the peak of each plan less one byte, until nothing fits.
      int64_t last = free->totals.predicted_ps;
      int64_t limit = free->totals.peak_bytes;
      while (limit > 0) {
        CAPTURE(limit);
        const auto planned = world.plan(src, dst, any_groups(limit));
        if (!planned) break;
        const bool keeps_to_it = planned->totals.peak_bytes <= limit;
        CHECK(keeps_to_it);
        if (!keeps_to_it) break;
        CHECK(planned->totals.predicted_ps >= last);
        last = planned->totals.predicted_ps;
        limit = planned->totals.peak_bytes - 1;
      }
    });
  }
}

TEST_CASE("no way by a third state is cheaper") {
  struct Triples {
    std::vector<int64_t> sizes;
    int64_t inside;
    size_t rank;
    std::vector<ReduceOp> ops;
  };
  for (const Triples& t : std::vector<Triples>{{{2, 4}, 4, 2, {ReduceOp::sum}},
                                               {{2, 4}, 2, 2, {ReduceOp::sum}},
                                               {{2, 3}, 3, 2, {ReduceOp::sum}},
                                               {{2, 2, 2}, 4, 1, {ReduceOp::sum}},
                                               {{2, 2, 2}, 2, 2, {ReduceOp::sum}}}) {
    const auto states = all_states(t.sizes, t.rank, t.ops);
    const size_t n = states.size();
    for (int64_t side : {48, 4'800}) {
      for (int64_t per_peer : {0, 500}) {
        const SmallWorld world(t.sizes, two_levels(t.inside, per_peer), std::vector<int64_t>(t.rank, side));
        std::vector<std::vector<int64_t>> costs(n, std::vector<int64_t>(n, -1));
        for (size_t i = 0; i < n; ++i) {
          for (size_t j = 0; j < n; ++j) {
            if (only_reduces(states[i], states[j])) costs[i][j] = cost(world, states[i], states[j], any_groups(-1));
          }
        }
        int64_t broken = 0;
        // Sums join others only where that saves as much.
        const int64_t joined_ps = joining_ps * static_cast<int64_t>(t.sizes.size());
        for (size_t i = 0; i < n; ++i) {
          for (size_t j = 0; j < n; ++j) {
            for (size_t k = 0; k < n; ++k) {
              if (costs[i][k] < 0 || costs[i][j] < 0 || costs[j][k] < 0 || costs[i][k] <= costs[i][j] + costs[j][k] + joined_ps) continue;
              ++broken;
              INFO(pair_text(states[i], states[k], t.sizes) << " takes " << costs[i][k] << " ps, by way of " << to_text(states[j], t.sizes)
                                                            << " " << costs[i][j] << " + " << costs[j][k]);
              CHECK(broken == 0);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("a target that makes a reduction pending has a bound, and no plan is below it") {
  int64_t pairs = 0;
  int64_t bounded = 0;
  int64_t met = 0;
  for (const World& w : worlds) {
    const SmallWorld world(w.sizes, two_levels(w.inside, 500), {96, 4'800});
    const auto states = all_states(w.sizes, 2, {ReduceOp::sum});
    size_t number = 0;
    for (const State& src : states) {
      for (const State& dst : states) {
        if (only_reduces(src, dst) || number++ % w.stride != 0) continue;
        CAPTURE(pair_text(src, dst, w.sizes));
        const auto planned = world.plan(src, dst, any_groups(-1));
        if (!planned) continue;
        const Bounds bound = lower_bounds(world.levels(), world.tensor().shape, 4, 4, src, dst);
        CHECK(bound.bytes <= planned->totals.wire_bytes);
        CHECK(bound.ps <= planned->totals.predicted_ps);
        ++pairs;
        bounded += bound.bytes > 0;
        met += bound.bytes == planned->totals.wire_bytes;
      }
    }
  }
  MESSAGE(pairs << " pairs, " << bounded << " with a bound above 0, " << met << " at it");
  CHECK(bounded > pairs / 4);
}
