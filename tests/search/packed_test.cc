#include "search/packed.h"

#include <random>

#include "../cost/small_mesh.h"
#include "../cost/some_protocols.h"
#include "doctest/doctest.h"
#include "search/moves.h"
#include "small_question.h"
#include "tensor/box.h"

using namespace meshplan;

namespace {

struct PackedQuestion {
  std::vector<int64_t> sizes;
  size_t rank;
  int64_t inside;
};

}  // namespace

TEST_CASE("packed bounds are the bounds, and no exchange takes less than its floor") {
  const std::vector<PackedQuestion> worlds{{{2, 2, 2}, 2, 4},
                                           {{2, 2, 2}, 2, 1},
                                           {{2, 2, 2}, 2, 64},
                                           {{4, 2, 2}, 2, 2},
                                           {{2, 2, 2, 2, 2}, 3, 8},
                                           {{4, 4, 4}, 3, 4},
                                           {{8, 8, 8}, 1, 8},
                                           {{2, 4, 8}, 2, 8},
                                           {{3, 3, 3}, 2, 3},
                                           {{4, 4, 4}, 2, 8},
                                           {{9, 3, 27}, 2, 27},
                                           {{2, 2, 2, 2, 2, 2}, 4, 8},
                                           {{16, 8}, 2, 8},
                                           {{16, 16, 64, 4, 2, 8}, 2, 8},
                                           {{16, 16, 64, 4, 2, 8}, 2, 1 << 20}};
  int compared = 0;
  int prices = 0;
  int all_fetch = 0;
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    for (const PackedQuestion& w : worlds) {
      CAPTURE(seed);
      std::mt19937_64 random(seed);
      int64_t ranks = 1;
      for (int64_t size : w.sizes) ranks *= size;
      TensorMeta tensor{{}, DType::float32};
      // Twice as many as ranks: units cut a mesh dim into halves, whose order may be any.
      for (size_t d = 0; d < w.rank; ++d) tensor.shape.push_back(ranks * 2 * static_cast<int64_t>(1 + random() % 50));
      Topology topology = test::two_levels(w.inside, 500);
      topology.levels[1].exchange_percent = 80;
      if (seed == 2) topology = test::with_protocols(topology);
      const test::SmallQuestion question(w.sizes, topology, tensor);
      auto p = question.problem();
      REQUIRE(p);
      PackedWorld world;
      world.reset(*p);
      REQUIRE(world.usable());
      for (int k = 0; k < 3000; ++k) {
        const auto pending = static_cast<uint16_t>(k % 3 == 0 ? random() & p->all : 0);
        const SearchState a = test::random_state(*p, pending, random);
        const SearchState b = test::random_state(*p, k % 6 == 0 ? static_cast<uint16_t>(pending & random()) : pending, random);
        CAPTURE(to_text(to_state(*p, a), w.sizes));
        CAPTURE(to_text(to_state(*p, b), w.sizes));
        const Packed from = world.pack(a);
        const Packed to = world.pack(b);
        const int64_t bound = world.bound_ps(from, to);
        REQUIRE(bound == bound_between(*p, a, b).ps);
        const int64_t several = world.several_ps(from, to);
        REQUIRE(several == several_between_ps(*p, a, b));
        REQUIRE(several >= bound);
        REQUIRE(world.bound_bytes(from, to) == bound_between(*p, a, b).bytes);
        const ExchangeFloors floors = world.exchange_floors(from, to);
        const int64_t outer = world.outer_bound_ps(from, to);
        // What an exchange takes is asked rank by rank where whole pieces go by turns: of a million ranks for some.
        const bool priced = ranks < 1'000'000 || k % 20 < 3;
        if (priced) {
          const int64_t one_phase = price_between(*p, a, b, ExchangeWay::one_phase).predicted_ps;
          REQUIRE(floors.one_phase_ps <= one_phase);
          REQUIRE(outer <= one_phase);
          REQUIRE(bound <= one_phase);
          ++prices;
        }
        if (priced && a.pending == b.pending) {
          const int64_t two_phases = price_between(*p, a, b, ExchangeWay::two_phases).predicted_ps;
          REQUIRE(floors.two_phases_ps <= two_phases);
          if (may_go(*p, a, b, ExchangeWay::by_all)) {
            const int64_t by_all = price_between(*p, a, b, ExchangeWay::by_all).predicted_ps;
            REQUIRE(floors.by_all_ps <= by_all);
            REQUIRE(outer <= by_all);
            REQUIRE(bound <= by_all);
            ++all_fetch;
          }
          REQUIRE(outer <= two_phases);
          REQUIRE(bound <= two_phases);
        }
        // Every beginning of b, dim by dim, bounds what leads to it and what leads back.
        const int64_t way_back = world.bound_ps(to, from);
        int most = 0;
        int most_outers = 0;
        for (int i = 0; i < p->sub_axes; ++i) {
          if ((b.pending >> i & 1) != 0) continue;
          most += world.digits_of(i);
          most_outers += world.outer_digits_of(i);
        }
        SearchState part;
        part.pending = b.pending;
        for (int d = 0; d <= p->dims; ++d) {
          const Packed packed = world.pack(part);
          REQUIRE(world.bound_to_growing_ps(from, packed, d, most, most_outers) <= bound);
          if (a.pending == b.pending) {
            REQUIRE(world.bound_from_growing_ps(packed, from) <= way_back);
            REQUIRE(bound_between(*p, part, a, true).ps <= way_back);
          }
          for (int i = b.begin_of(d); d < p->dims && i < b.end_of(d); ++i) append(part, p->dims, d, b.sub_axis[static_cast<size_t>(i)]);
        }
        ++compared;
      }
    }
  }
  CHECK(compared == 90'000);
  CHECK(prices == 79'800);
  CHECK(all_fetch > 3'000);
  MESSAGE(all_fetch << " that all may fetch");
}

TEST_CASE("where extents do not divide, the bound counts what boxes miss") {
  // 2 elements over a dim of 8: its outer half holds both, as chunks are those of the whole dim.
  std::mt19937_64 random(11);
  int split = 0;
  for (int64_t extent : {2, 5, 9, 13}) {
    const std::vector<int64_t> sizes{8, 2};
    test::SmallQuestion question(sizes, test::two_levels(8, 500), {{extent, 3}, DType::int16});
    question.request.dst.shards = {{{1, 1, 2}, {0, 1, 8}}, {}};
    const auto p = question.problem();
    REQUIRE(p);
    REQUIRE(!p->even);
    for (int k = 0; k < 300; ++k) {
      const SearchState from = test::random_state(*p, 0, random);
      const SearchState to = test::random_state(*p, 0, random);
      const State before = to_state(*p, from);
      const State after = to_state(*p, to);
      int64_t most = 0;
      for (int64_t r = 0; r < 16; ++r) {
        const auto at = coordinates_of(r, sizes);
        const Box wanted = box_of(after, p->tensor.shape, sizes, at);
        const Box held = box_of(before, p->tensor.shape, sizes, at);
        most = std::max(most, volume(wanted) - volume(intersect(wanted, held)));
      }
      split += p->sub_axes > 2;
      CAPTURE(to_text(before, sizes));
      CAPTURE(to_text(after, sizes));
      REQUIRE(bound_between(*p, from, to).bytes == 2 * most);
    }
  }
  CHECK(split > 500);
}
