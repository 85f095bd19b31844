// What steps take at least: by hand, its laws, and that no collective and no two of them in a row beat it.
#include "cost/least_times.h"

#include <doctest/doctest.h>

#include "cost/protocols.h"
#include "cost/topology.h"
#include "small_mesh.h"
#include "some_protocols.h"
#include "verify/random_world.h"

using namespace meshplan;

namespace {

// Rings of one protocol on hosts of 8.
Topology rings() {
  Topology t = test::two_levels(8, 14'000);
  t.protocols = {{"LL", 6'600, false, 0, {{1'000, 10'000}, {2'700, 10'000}}}};
  return t;
}

}  // namespace

TEST_CASE("a ring of 8 takes less than rings of 4 and 2, of 64 one ring more than two") {
  const LeastTimes times(rings(), false);
  REQUIRE(times.kinds() == 2);  // and exchanges
  const auto ns = [&](const LeastTimes::Asked& asked) { return times.latencies_ns(asked)[0]; };
  CHECK(ns({2}) == 7'600);
  CHECK(ns({8}) == 6'600 + 7 * 1'000);
  CHECK(ns({64}) == 2 * 6'600 + 14 * 1'000);
  CHECK(ns({8, 1}) == 6'600 + 6 * 1'000 + 2'700);
  CHECK(ns({8, 1, true}) == 6'600 + 6 * 1'000 + 2'700);
  CHECK(ns({8, 0, false, true}) == 2 * 6'600 + 4 * 1'000);  // of 4 and 2
  // One ring over all of a large group may be beaten by several.
  CHECK(ns({1'024}) < 6'600 + 1'023 * 1'000);
}

TEST_CASE("of the hops outside of the innermost units one reaches the outermost level, the others lie between") {
  Topology t;
  t.levels = {{"in", 2, 370'000, 10'000, 0, 100}, {"rack", 4, 100'000, 15'000, 0, 100}, {"out", 1'048'576, 45'000, 25'000, 0, 100}};
  t.protocols = {{"LL", 6'600, false, 0, {{700, 10'000}, {2'800, 10'000}, {11'200, 10'000}}}};
  const LeastTimes times(t, false);
  const auto ring = [&](const std::vector<int64_t>& members, int level) {
    const int64_t least = times.latencies_ns({members.back(), level, true})[0];
    CHECK(times.ps({members.back(), level}, 1, 1, 7) <= protocols_ps(t, members, {Op::all_gather, members.back(), 1, 0}));
    return least;
  };
  CHECK(ring({2, 4, 4}, 1) == 6'600 + 2 * 700 + 2'800);
  CHECK(ring({2, 2, 4}, 2) == 6'600 + 2 * 700 + 11'200);
  CHECK(ring({2, 4, 8}, 2) == 6'600 + 4 * 700 + 2 * 2'800 + 11'200);
  CHECK(ring({1, 1, 2}, 2) == 6'600 + 11'200);
}

TEST_CASE("levels alone are one kind, whose latency does not grow") {
  const Topology t = test::two_levels(8, 500);
  const LeastTimes times(t, true);
  CHECK(times.kinds() == 1);
  CHECK(!times.grow());
  CHECK(times.latencies_ns({1'024})[0] == t.levels[0].latency_ns);
  CHECK(times.latencies_ns({2, 1})[0] == t.levels[1].latency_ns);
  CHECK(times.latencies_ns({2, 1, true, true})[0] == t.levels[0].latency_ns + t.levels[1].latency_ns);
  CHECK(times.ps({8, 1}, 1'000'000, 1, 3) ==
        t.levels[1].latency_ns * 1'000 + transfer_ps(1'000'000, 1, t.levels[0].mb_per_s + t.levels[1].mb_per_s));
}

TEST_CASE("no collective and no two in a row take less, and more that is asked takes no less") {
  test::Random random(19);
  for (int round = 0; round < 3'000; ++round) {
    const Topology t = test::with_random_protocols(random, test::two_levels(8, 500));
    const bool reduces = random.one_in(2);
    const LeastTimes times(t, reduces);
    const auto group = [&] {
      const int64_t inside = 1 + random.below(8);
      const int64_t hosts = (inside == 1 ? 2 : 1) + random.below(20);
      return std::vector<int64_t>{inside, inside * hosts};
    };
    const Op op = reduces && random.one_in(2) ? Op::all_reduce : Op::all_gather;
    const int64_t whole = random.below(1 << 24);
    const auto price = [&](const std::vector<int64_t>& members) {
      return protocols_ps(t, members, {op, whole, whole / members.back(), 0});
    };
    const auto level = [](const std::vector<int64_t>& members) { return members[0] < members[1] ? 1 : 0; };
    const std::vector<int64_t> a = group();
    const std::vector<int64_t> b = group();
    // What a rank receives at least, and over the outer links what a host does, shared by its ranks.
    const int64_t received = whole - whole / a.back() - 1;
    CAPTURE(round);
    if (received > 0) {
      CHECK(times.ps({a[1], level(a)}, received, 1, 3) <= price(a));
      const int64_t fetched = whole - (whole + a[1] - 1) / a[1] * a[0];
      if (level(a) == 1 && fetched > 0) CHECK(times.ps({a[1], 1, true}, fetched, a[0], 2) <= price(a));
      CHECK(times.ps({a[1] * b[1], std::max(level(a), level(b))}, received, 1, 3) <= price(a) + price(b));
      CHECK(times.ps({a[1], level(a), false, true}, received, 1, 3) <= price(a) + price(b));
    }
    // The least over kinds, of which those are passed over that no bytes need.
    const LeastTimes::Asked any{1 + random.below(500), static_cast<int>(random.below(2)), random.one_in(2), random.one_in(3)};
    for (const uint32_t levels : {1U, 2U, 3U}) {
      int64_t least = INT64_MAX;
      for (size_t k = 0; k < times.kinds(); ++k) {
        const int64_t mb_per_s = (levels & 1 ? times.mb_per_s(k, 0) : 0) + (levels & 2 ? times.mb_per_s(k, 1) : 0);
        least = std::min(least, times.latencies_ns(any)[k] * 1'000 + transfer_ps(whole, 3, mb_per_s));
      }
      CHECK(times.ps(any, whole, 3, levels) == least);
    }
    LeastTimes::Asked asked{2 + random.below(500), static_cast<int>(random.below(2)), random.one_in(2), false};
    const int64_t ps = times.ps(asked, whole, 3, 3);
    LeastTimes::Asked more = asked;
    more.ranks += random.below(500);
    CHECK(times.ps(more, whole, 3, 3) >= ps);
    more = asked;
    more.several = true;
    CHECK(times.ps(more, whole, 3, 3) >= ps);
    if (!asked.kind_does) {
      more = asked;
      more.level = 1;
      CHECK(times.ps(more, whole, 3, 3) >= ps);
      more.kind_does = true;
      CHECK(times.ps(more, whole, 3, 3) >= ps);
    }
  }
}
