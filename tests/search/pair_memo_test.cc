// What is remembered of pairs against what a problem says that was asked nothing before.
#include "search/pair_memo.h"

#include <map>
#include <random>

#include "../cost/some_protocols.h"
#include "cost/topology.h"
#include "doctest/doctest.h"
#include "search/exchange_floor.h"
#include "small_question.h"

using namespace meshplan;

TEST_CASE("bounds and floors that are remembered are those of a problem that remembers nothing") {
  struct World {
    std::vector<int64_t> sizes;
    std::vector<int64_t> shape;
    int64_t inside;
  };
  const std::vector<World> worlds{{{2, 3, 2}, {10, 9}, 4},   {{12}, {7, 50}, 8},   {{4, 4}, {25, 7}, 6},      {{2, 6, 8}, {97, 41}, 8},
                                  {{3, 4, 8}, {5, 1009}, 8}, {{2, 8, 3}, {31}, 5}, {{16, 6}, {50257, 12}, 8}, {{2, 5, 8}, {8190, 4099}, 8}};
  int remembered = 0;
  int cut_short = 0;
  int above = 0;
  for (const World& w : worlds) {
    test::SmallQuestion question(w.sizes, test::with_protocols(test::two_levels(w.inside, 500)), {w.shape, DType::bfloat16});
    const auto p = question.problem();
    REQUIRE(p);
    if (!has_few_states(*p)) continue;
    std::mt19937_64 random(5);
    std::map<std::string, int> asked;
    for (int k = 0; k < 600; ++k) {
      const auto pending = static_cast<uint16_t>(k % 3 == 0 ? random() & p->all : 0);
      const SearchState from = test::random_state(*p, pending, random);
      SearchState to = test::random_state(*p, pending, random);
      if (k % 6 == 0) to.pending = 0;
      CAPTURE(to_text(to_state(*p, from), w.sizes));
      CAPTURE(to_text(to_state(*p, to), w.sizes));
      if (asked[to_text(to_state(*p, from), w.sizes) + to_text(to_state(*p, to), w.sizes)]++ > 0) ++remembered;
      const PlanProblem fresh = *p;
      REQUIRE(few_peers_floor(*p, from, to).ps == few_peers_floor(fresh, from, to).ps);
      const Bounds bounds = bound_between(fresh, from, to);
      const auto check = [&](int64_t ps, int64_t all, int64_t enough) {
        REQUIRE(ps <= all);
        // Above what is enough not all of it need be said.
        const bool said = ps == all || ps > enough;
        REQUIRE(said);
        above += ps > enough;
        cut_short += ps < all;
      };
      for (const int64_t enough : {bounds.ps / 2, bounds.ps, bounds.ps / 3, INT64_MAX}) {
        check(bound_between(*p, from, to, false, enough).ps, bounds.ps, enough);
        check(bound_between(*p, from, to, true, enough).ps, bound_between(PlanProblem(fresh), from, to, true).ps, enough);
        for (const ExchangeWay way : exchange_ways) {
          if (!may_go(*p, from, to, way)) continue;
          const int64_t all = exchange_floor_ps(PlanProblem(fresh), from, to, way);
          check(exchange_floor_ps(*p, from, to, way, enough), all, enough);
        }
      }
      const Bounds again = bound_between(*p, from, to);
      CHECK(again.ps == bounds.ps);
      CHECK(again.bytes == bounds.bytes);
    }
  }
  MESSAGE(remembered << " pairs asked again, " << above << " times more than enough, " << cut_short << " of them not all");
  CHECK(remembered > 500);
  CHECK(above > 500);
}
