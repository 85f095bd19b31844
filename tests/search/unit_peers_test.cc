#include "search/unit_peers.h"

#include "doctest/doctest.h"
#include "search/exchange_floor.h"
#include "search/search_state.h"
#include "small_question.h"

using namespace meshplan;

namespace {

// A tensor on 4 hosts of 8, a 4 x b 8: its rows over `rows`, and then its columns over all ranks.
struct FourHosts {
  FourHosts(const std::vector<int64_t>& shape, const std::vector<SubAxis>& rows)
      : question({4, 8}, test::two_levels(8, 14'000), {shape, DType::bfloat16}) {
    question.request.src.shards = {rows, {}};
    question.request.dst.shards = {{}, {{0, 1, 4}, {1, 1, 8}}};
    p = question.problem();
    REQUIRE(p);
    REQUIRE(!p->units.empty());
  }
  // Of the unit that rank 0 is in, which is the first that is looked at.
  [[nodiscard]] const UnitRanks& host() const { return p->units.front(); }
  const UnitNeed& need() { return unit_need(*p, host(), p->source, p->target); }
  PeersOutside peers(ExchangeWay way) {
    const UnitNeed& of_host = need();
    return peers_outside(*p, host(), of_host, p->unit_pair, way);
  }
  [[nodiscard]] ExchangeCost price(ExchangeWay way) const { return price_between(*p, p->source, p->target, way); }
  test::SmallQuestion question;
  std::optional<PlanProblem> p;
};

}  // namespace

TEST_CASE("fetched by all, a member whose stretch is one box has a peer for each of its shards") {
  // Every rank wants 3 of 96 columns; 31 have one row each. Each member of the first host misses 23
  // rows of its columns.
  FourHosts asked({31, 96}, {{0, 1, 4}, {1, 1, 8}});
  CHECK(asked.host().members() == 8);
  CHECK(asked.need().wants.size() == 8);
  CHECK(asked.need().wants.front().fetched == 23 * 3);
  CHECK(asked.peers(ExchangeWay::by_all).whole == 23);
  const ExchangeCost cost = asked.price(ExchangeWay::by_all);
  CHECK(cost.traffic.phase[0].peers[1] == 24);  // the last host has 7 rows
  // The floor pays for them: 14 us a peer.
  const int64_t floor = close_exchange_floor_ps(*asked.p, asked.p->source, asked.p->target, ExchangeWay::by_all);
  CHECK(floor <= cost.predicted_ps);
  CHECK(floor > 24 * int64_t{14'000'000});
}

TEST_CASE("who holds a shard alone is asked for it by all that want it elsewhere") {
  // One row a host but for the last, of 8 holders; all 32 ranks want 3 columns of it.
  FourHosts asked({3, 96}, {{0, 1, 4}});
  REQUIRE(asked.need().alone.size() == 1);
  CHECK(asked.need().alone.front().asking == 8);
  CHECK(asked.need().alone.front().wanted == 24);
  CHECK(asked.need().sent_outside == (96 - 24) / 8);
  CHECK(asked.peers(ExchangeWay::one_phase).whole == 3);  // 24 others ask 8 holders
  // One row in all, on rank 0: 24 ranks elsewhere ask it for 3 columns each, in two phases as well.
  FourHosts first({1, 96}, {{0, 1, 4}, {1, 1, 8}});
  REQUIRE(first.need().alone.size() == 1);
  CHECK(first.need().sent_outside == 96 - 24);
  CHECK(first.peers(ExchangeWay::one_phase).whole == 24);
  CHECK(first.price(ExchangeWay::one_phase).traffic.phase[0].peers[1] == 24);
  const SentOut sent = sent_out(*first.p, first.host(), first.need(), first.p->unit_pair, ExchangeWay::two_phases);
  CHECK(sent.elements == 96 - 24);
  CHECK(sent.peers == 24);
  CHECK(first.price(ExchangeWay::two_phases).traffic.phase[0].peers[1] == 24);
}
