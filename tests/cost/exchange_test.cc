#include "cost/exchange.h"

#include <doctest/doctest.h>

#include "all_states.h"
#include "transfer/digits.h"
#include "cost/topology.h"

using namespace meshplan;

namespace {

Topology levels_of(const std::vector<int64_t>& ranks) {
  Topology t;
  int64_t speed = 400'000;
  for (int64_t r : ranks) {
    t.levels.push_back({"l", r, speed, 10'000, 500, 100});
    speed /= 8;
  }
  return t;
}

Mesh mesh_of(const std::vector<int64_t>& sizes) {
  std::vector<std::pair<std::string, int64_t>> dims;
  for (size_t i = 0; i < sizes.size(); ++i) dims.emplace_back(std::string(1, static_cast<char>('a' + i)), sizes[i]);
  auto mesh = make_mesh("mesh", dims);
  REQUIRE(mesh.ok());
  return *mesh;
}

bool same_pending(const State& a, const State& b) { return a.partial == b.partial; }

// dst's pending atoms are pending in src, too.
bool reduces_to(const State& src, const State& dst) {
  for (const PendingAtom& p : dst.partial) {
    if (std::find(src.partial.begin(), src.partial.end(), p) == src.partial.end()) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("closed forms over digits equal the listing rank by rank") {
  struct World {
    std::vector<int64_t> sizes;
    std::vector<int64_t> units;
  };
  int64_t compared = 0;
  int64_t whole_compared = 0;
  int64_t whole_differs = 0;
  for (const World& w : std::vector<World>{{{2, 4}, {1024}},
                                           {{2, 4}, {4, 1024}},
                                           {{2, 4}, {2, 1024}},
                                           {{2, 2, 2}, {2, 1024}},
                                           {{2, 2, 2}, {4, 1024}},
                                           {{2, 2, 2}, {2, 4, 1024}},
                                           {{4, 2, 2}, {4, 1024}},
                                           {{2, 3, 2}, {6, 1024}},
                                           {{2, 3, 2}, {2, 1024}}}) {
    Mesh mesh = mesh_of(w.sizes);
    Topology topology = levels_of(w.units);
    LevelMap levels(mesh, topology);
    REQUIRE(levels.regular());
    const std::vector<int64_t> shape{48, 48};
    auto states = all_states(w.sizes, 2, {ReduceOp::sum});
    size_t step = states.size() > 100 ? 7 : 3;  // every state takes part on either side; the full product runs in tests/exhaustive
    for (size_t i = 0; i < states.size(); ++i) {
      for (size_t j = i % step; j < states.size(); j += step) {
        if (i == j || !reduces_to(states[i], states[j])) continue;
        for (int phases : {1, 2}) {
          if (phases == 2 && (w.units.size() != 2 || !same_pending(states[i], states[j]))) continue;
          ExchangeQuestion q;
          q.levels = &levels;
          q.shape = shape;
          q.element_bytes = 4;
          q.src = &states[i];
          q.dst = &states[j];
          q.phases = phases;
          q.whole_pieces = false;
          auto aligned = price_exchange_aligned(q);
          if (!aligned) continue;
          ExchangeCost listed = price_exchange_listed(q);
          CAPTURE(to_text(states[i], w.sizes));
          CAPTURE(to_text(states[j], w.sizes));
          CAPTURE(w.units[0]);
          CAPTURE(phases);
          if (phases == 1) {
            REQUIRE(aligned->wire_bytes == listed.wire_bytes);
            REQUIRE(aligned->traffic.bytes == listed.traffic.bytes);
            REQUIRE(aligned->traffic.peers == listed.traffic.peers);
            REQUIRE(aligned->predicted_ps == listed.predicted_ps);
            q.whole_pieces = true;
            auto whole = price_exchange_aligned(q);
            ExchangeCost whole_listed = price_exchange_listed(q);
            ++whole_compared;
            REQUIRE(whole->wire_bytes == whole_listed.wire_bytes);
            whole_differs += whole->predicted_ps != whole_listed.predicted_ps;
          } else {
            CHECK(aligned->predicted_ps == listed.predicted_ps);
            CHECK(aligned->wire_bytes == listed.wire_bytes);
          }
          ++compared;
        }
      }
    }
  }
  MESSAGE(compared << " pairs compared, whole pieces: " << whole_compared << " with " << whole_differs << " different");
  CHECK(compared > 5000);
}
