// The law of shifts over random pairs of ranks, and what chunks of an exchange in shifts hold.
#include "transfer/shifts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "verify/random_world.h"

using namespace meshplan;

namespace {

int64_t most_times(const std::map<int32_t, int64_t>& times) {
  int64_t most = 0;
  for (const auto& [rank, count] : times) most = std::max(most, count);
  return most;
}

void check_law(const std::vector<Fetch>& parts, const Shifts& shifts) {
  REQUIRE(shifts.of.size() == parts.size());
  std::set<std::pair<int32_t, int32_t>> fetchers;
  std::set<std::pair<int32_t, int32_t>> holders;
  std::map<int32_t, int64_t> fetched;
  std::map<int32_t, int64_t> served;
  for (size_t i = 0; i < parts.size(); ++i) {
    CHECK(shifts.of[i] >= 0);
    CHECK(shifts.of[i] < shifts.count);
    CHECK(fetchers.insert({parts[i].fetcher, shifts.of[i]}).second);
    CHECK(holders.insert({parts[i].holder, shifts.of[i]}).second);
    ++fetched[parts[i].fetcher];
    ++served[parts[i].holder];
  }
  CHECK(shifts.count == std::max(most_times(fetched), most_times(served)));
}

}  // namespace

TEST_CASE("parts of one shift have no rank in common, in as many shifts as one rank has parts") {
  constexpr uint64_t seed = 61;
  CAPTURE(seed);
  test::Random random(seed);
  for (int64_t round = 0; round < 3'000; ++round) {
    CAPTURE(round);
    const int64_t fetchers = 1 + random.below(12);
    const int64_t holders = 1 + random.below(12);
    std::vector<Fetch> parts;
    // Some dense, with several parts between two ranks, which leaves no shift free at either.
    for (int64_t i = random.below(random.one_in(3) ? 200 : 30); i > 0; --i)
      parts.push_back({static_cast<int32_t>(random.below(fetchers)), static_cast<int32_t>(random.below(holders))});
    const auto shifts = put_in_shifts(parts);
    REQUIRE(shifts);
    check_law(parts, *shifts);
  }
  CHECK(put_in_shifts({})->count == 0);
}

TEST_CASE("two that ask the same two ranks in the same order ask them in turn") {
  const std::vector<Fetch> parts{{4, 0}, {4, 1}, {5, 2}, {5, 3}, {6, 0}, {6, 1}, {7, 2}, {7, 3}};
  const auto shifts = put_in_shifts(parts);
  REQUIRE(shifts);
  CHECK(shifts->count == 2);
  CHECK(!put_in_shifts(parts, 3));  // two pairs of parts change places
  CHECK(put_in_shifts(parts, 4));
  CHECK(shifts->of == std::vector<int32_t>{1, 0, 1, 0, 0, 1, 0, 1});
}

TEST_CASE("stages are of near-equal size, of so many shifts at most") {
  CHECK(stages_of(0, 2) == 1);
  CHECK(stages_of(3, 8) == 1);
  for (int64_t shifts = 1; shifts < 40; ++shifts) {
    for (int64_t at_once = 1; at_once <= 8; ++at_once) {
      std::vector<int64_t> sizes(static_cast<size_t>(stages_of(shifts, at_once)), 0);
      for (int64_t t = 0; t < shifts; ++t) ++sizes.at(static_cast<size_t>(stage_of(t, shifts, at_once)));
      const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
      CHECK(*most <= at_once);
      CHECK(*most - *least <= 1);
    }
  }
}

TEST_CASE("what was found or given up before is answered alike, with any limit") {
  test::Random random(62);
  std::vector<std::vector<Fetch>> lists;
  for (int64_t k = 0; k < 40; ++k) {
    std::vector<Fetch> parts;
    for (int64_t i = 0; i < 1'500; ++i) parts.push_back({static_cast<int32_t>(random.below(20)), static_cast<int32_t>(random.below(20))});
    if (k % 2 == 1) parts = lists.back();
    if (k % 4 == 3) parts.back().holder ^= 1;  // all but one the same
    lists.push_back(std::move(parts));
  }
  bool given_up = false;
  for (int64_t round = 0; round < 400; ++round) {
    const auto& parts = lists[static_cast<size_t>(random.below(static_cast<int64_t>(lists.size())))];
    const int64_t most = random.one_in(2) ? 1'500 : most_changes;
    const auto shifts = put_in_shifts(parts, most);
    given_up = given_up || !shifts;
    if (most == most_changes) REQUIRE(shifts);
    if (shifts) check_law(parts, *shifts);
    std::vector<Fetch> fresh(parts);
    for (Fetch& part : fresh) part.fetcher += static_cast<int32_t>(100 + round);  // not asked before; the same but for names
    const auto anew = put_in_shifts(fresh, most);
    REQUIRE(shifts.has_value() == anew.has_value());
    if (shifts) CHECK(shifts->of == anew->of);
  }
  CHECK(given_up);
}
