#include "transfer/list_exchange.h"

#include "../cost/small_mesh.h"
#include "cost/topology.h"
#include "doctest/doctest.h"

using namespace meshplan;

TEST_CASE("what was listed before answers again, and what ended early only where it is enough") {
  const std::vector<int64_t> sizes{2, 5, 3};
  const Mesh mesh = test::mesh_of(sizes);
  const Topology topology = test::two_levels(7, 500);
  const LevelMap levels(mesh, topology);
  State src;
  State dst;
  src.shards = {{{1, 1, 5}}, {{2, 1, 3}}};
  dst.shards = {{}, {{2, 1, 3}}};
  const std::vector<int64_t> shape{30, 9};
  ListQuestion q;
  q.levels = &levels;
  q.shape = shape;
  q.element_bytes = 4;
  q.src = &src;
  q.dst = &dst;
  const auto fresh = [&] {
    const LevelMap others(mesh, topology);
    ListQuestion anew = q;
    anew.levels = &others;
    return list_exchange(anew);
  };
  const auto same = [](const std::optional<ListedPhase>& a, const std::optional<ListedPhase>& b) {
    return a && b && a->even == b->even && a->whole == b->whole;
  };
  // Ended after the first class, which is remembered, but not as the whole.
  int asked = 0;
  q.is_enough = [&](const ExchangeTraffic&, const ExchangeTraffic&) { return ++asked == 1; };
  const auto early = list_exchange(q);
  REQUIRE(early);
  CHECK(asked == 1);
  q.is_enough = [&](const ExchangeTraffic&, const ExchangeTraffic&) { return true; };
  CHECK(same(list_exchange(q), early));
  q.is_enough = {};
  const auto all = list_exchange(q);
  CHECK(!same(all, early));
  CHECK(same(all, fresh()));
  CHECK(same(list_exchange(q), all));
  CHECK(levels.listings().entries.size() == 1);
  // Class by class it comes to the same, and nothing is listed twice.
  const int64_t work = all->even.work + all->whole->work;
  for (const bool twice : {false, true}) {
    levels.forget_listings();
    int64_t before = 0;
    int classes = 0;
    do {
      before = levels.listings().entries.empty() ? 0 : levels.listings().looked;
      asked = 0;
      q.is_enough = [&](const ExchangeTraffic&, const ExchangeTraffic&) { return ++asked == (before == 0 ? 1 : 2) + (twice ? 1 : 0); };
      REQUIRE(list_exchange(q));
      classes += levels.listings().looked > before;
    } while (levels.listings().looked > before);
    CHECK(classes == (twice ? 2 : 3));
    q.is_enough = {};
    CHECK(same(list_exchange(q), all));
    CHECK(levels.listings().entries.begin()->second.listed->even.work + levels.listings().entries.begin()->second.listed->whole->work ==
          work);
  }
  CHECK(levels.listings().entries.size() == 1);
  // Of other bytes, another target, two phases: other questions.
  q.element_bytes = 2;
  CHECK(same(list_exchange(q), fresh()));
  q.dst = &src;
  CHECK(same(list_exchange(q), fresh()));
  q.dst = &dst;
  REQUIRE(list_exchange_in_two_phases(q));
  CHECK(levels.listings().entries.size() == 4);
  // Where less may be listed the answer is that it does not suffice, remembered or not.
  q.most_listed = 10;
  CHECK(!list_exchange(q));
  q.shape = std::span(shape).first(2);
  levels.forget_listings();
  CHECK(!list_exchange(q));
  CHECK(!list_exchange(q));
  q.most_listed = listed_limit;
  CHECK(same(list_exchange(q), fresh()));
}

TEST_CASE("two phases that end after some units go on with twice as many, and come to the same") {
  // Twelve hosts of 4, all of them in one class.
  const Mesh mesh = test::mesh_of({16, 3});
  const Topology topology = test::two_levels(4, 500);
  const std::vector<int64_t> shape{96, 10};
  State src;
  State dst;
  src.shards = {{{0, 1, 16}, {1, 1, 3}}, {}};
  dst.shards = {{{1, 1, 3}}, {{0, 1, 16}}};
  for (const Fetchers fetchers : {Fetchers::wanting, Fetchers::all}) {
    const LevelMap levels(mesh, topology);
    const LevelMap others(mesh, topology);
    ListQuestion q;
    q.levels = &others;
    q.shape = shape;
    q.element_bytes = 4;
    q.src = &src;
    q.dst = &dst;
    q.fetchers = fetchers;
    const auto whole = list_exchange_in_two_phases(q);
    REQUIRE(whole);
    q.levels = &levels;
    // Asked of the first unit before what is held inside is listed, then of what was known before
    // and of twice as many units; at last of all, and whether that is all.
    ExchangeTraffic before;
    std::vector<int> units;
    for (int round = 0; round < 8; ++round) {
      int asked = 0;
      q.is_enough = [&](const ExchangeTraffic& so_far, const ExchangeTraffic&) {
        for (size_t phase = 0; phase < 2; ++phase) {
          Traffic all = so_far.phase[phase];
          raise_traffic(all, before.phase[phase]);
          CHECK(all == so_far.phase[phase]);  // units never make it less
          raise_traffic(all, whole->phase[phase]);
          CHECK(all == whole->phase[phase]);
        }
        before = so_far;
        return ++asked == (round == 0 ? 1 : 2);
      };
      REQUIRE(list_exchange_in_two_phases(q));
      const ListingMemory::Entry& known = levels.listings().entries.begin()->second;
      units.push_back(static_cast<int>(known.units));
      if (known.complete) break;
    }
    std::string ended_after;
    for (const int u : units) ended_after += std::to_string(u) + " ";
    CHECK(ended_after == "1 2 4 8 0 0 ");
    q.is_enough = {};
    auto all = list_exchange_in_two_phases(q);
    REQUIRE(all);
    CHECK(all->work > whole->work);  // some units were listed again
    all->work = whole->work;
    CHECK(*all == *whole);
    CHECK(levels.listings().entries.size() == 1);
  }
}

TEST_CASE("turns of very many ranks that ask for more and for less are not listed") {
  // 65,536 contributions to [100] are reduced to six parts of 17, 17, ..., 15 elements: each is asked for
  // by all other ranks, 26 thousand million times together.
  const auto listed = [](int64_t contributions) {
    const Mesh mesh = test::mesh_of({contributions, 6});
    const Topology topology = uniform_topology();
    const LevelMap levels(mesh, topology);
    const std::vector<int64_t> shape{100};
    State src;
    State dst;
    src.shards = {{}};
    src.partial = {{{0, 1, contributions}, ReduceOp::min}};
    dst.shards = {{{1, 1, 6}}};
    ListQuestion q;
    q.levels = &levels;
    q.shape = shape;
    q.src = &src;
    q.dst = &dst;
    return list_exchange(q).has_value();
  };
  CHECK(listed(512));
  CHECK(!listed(65'536));
}

TEST_CASE("with no far share the even cut is listed, with more links inside units carry less and others more") {
  // 6 x 4 ranks in hosts of 4, and 12 of them that want other parts; 25 slices over 3 ranks are uneven.
  const Mesh mesh = test::mesh_of({6, 4});
  const Mesh target = test::mesh_of({4, 3});
  const Topology topology = test::two_levels(4, 500);
  const LevelMap levels(mesh, topology);
  const std::vector<int64_t> shape{100, 9};
  State src;
  State dst;
  src.shards = {{{1, 1, 4}}, {}};
  dst.shards = {{{0, 1, 4}}, {{1, 1, 3}}};
  ListQuestion q;
  q.levels = &levels;
  q.dst_mesh = &target;
  q.shape = shape;
  q.element_bytes = 2;
  q.src = &src;
  q.dst = &dst;
  const auto even = list_exchange(q);
  REQUIRE(even);
  CHECK(even->far);
  const bool listed = list_far_shares(q, [&](const FarShareLister& list) {
    ExchangeTraffic before = list(0);
    before.work = even->even.work;
    CHECK(before == even->even);
    for (int64_t far = 1; far <= 64; ++far) {
      const ExchangeTraffic more = list(far);
      CHECK(more.wire_bytes == before.wire_bytes);
      CHECK(more.phase[0].bytes[0] <= before.phase[0].bytes[0]);
      CHECK(more.phase[0].bytes[1] >= before.phase[0].bytes[1]);
      before = more;
    }
    CHECK(before.phase[0].bytes[0] == 0);
  });
  CHECK(listed);
  q.most_listed = 20;
  CHECK(!list_far_shares(q, [](const FarShareLister&) { FAIL("too many to list"); }));
  // Shards that lie in one host each have no far holders.
  src.shards = {{{0, 1, 6}}, {}};
  q.most_listed = listed_limit;
  CHECK(!list_exchange(q)->far);
}
