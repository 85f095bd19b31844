// Shifts of parts over random pairs of ranks, and the example of lib/transfer/README.md.
#include "verify/shifts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/seed.h"
#include "verify/random_world.h"
#include "verify/shift_oracle.h"
#include "verify/stages.h"

namespace meshplan {
namespace {

using test::OraclePart;
using test::Random;
using verification::FetchingPair;
using verification::ListedPhases;

constexpr uint64_t shifts_seed = 20251126;

std::vector<FetchingPair> pairs_of(const std::vector<OraclePart>& parts) {
  std::vector<FetchingPair> pairs;
  for (const auto& [fetcher, holder] : parts) pairs.push_back({fetcher, holder});
  return pairs;
}

// In as many shifts as some rank needs, none with two parts at one rank.
void check_shifts(const std::vector<OraclePart>& parts, const verification::Shifts& shifts) {
  std::map<std::pair<bool, size_t>, std::set<int64_t>> taken;
  int64_t needed = 0;
  REQUIRE(shifts.of.size() == parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    CHECK(shifts.of[i] >= 0);
    CHECK(shifts.of[i] < shifts.count);
    for (const bool serves : {false, true}) {
      auto& there = taken[{serves, serves ? parts[i].second : parts[i].first}];
      CHECK(there.insert(shifts.of[i]).second);
      needed = std::max(needed, static_cast<int64_t>(there.size()));
    }
  }
  CHECK(shifts.count == needed);
}

TEST_CASE("any parts are in as many shifts as the rank needs that has the most, in order") {
  Random random(test::seed_or(shifts_seed));
  int64_t changed = 0;
  for (int64_t round = 0; round < test::rounds_or(2'000); ++round) {
    const int64_t fetchers = 1 + random.below(9);
    const int64_t holders = 1 + random.below(9);
    std::vector<OraclePart> parts;
    for (int64_t i = random.below(60); i > 0; --i) {
      const OraclePart part{static_cast<size_t>(random.below(fetchers)), static_cast<size_t>(random.below(holders))};
      for (int64_t times = random.one_in(4) ? 2 : 1; times > 0; --times) parts.push_back(part);
    }
    if (random.one_in(2)) std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const auto shifts = verification::shifts_of(pairs_of(parts), 9);
    REQUIRE(shifts);
    CAPTURE(round);
    check_shifts(parts, *shifts);
    CHECK(shifts->of == test::oracle_shifts(parts));
    // Whether parts change places: the lowest shift that both ends have free would be another.
    bool simple = true;
    std::vector<std::set<int64_t>> taken(18);
    for (size_t i = 0; i < parts.size(); ++i) {
      int64_t free = 0;
      while (taken[parts[i].first].count(free) + taken[9 + parts[i].second].count(free) > 0) ++free;
      taken[parts[i].first].insert(free);
      taken[9 + parts[i].second].insert(free);
      simple = simple && shifts->of[i] == free;
    }
    changed += !simple;
  }
  CHECK(changed > test::rounds_or(2'000) / 2);
  CHECK(verification::shifts_of({}, 0)->count == 0);
}

TEST_CASE("each of many ranks fetches from each of many: as many shifts as ranks") {
  std::vector<OraclePart> parts;
  for (size_t fetcher = 0; fetcher < 96; ++fetcher) {
    for (size_t holder = 0; holder < 96; ++holder) parts.emplace_back(fetcher, holder);
  }
  const auto shifts = verification::shifts_of(pairs_of(parts), 96);
  REQUIRE(shifts);
  CHECK(shifts->count == 96);
  check_shifts(parts, *shifts);
}

TEST_CASE("the example: two parts of each of four ranks, from four") {
  const std::vector<OraclePart> parts{{4, 0}, {4, 1}, {5, 2}, {5, 3}, {6, 0}, {6, 1}, {7, 2}, {7, 3}};
  const auto shifts = verification::shifts_of(pairs_of(parts), 8);
  REQUIRE(shifts);
  CHECK(shifts->count == 2);
  // First 4 fetches from 1 and 6 from 0, then the reverse.
  CHECK(shifts->of == std::vector<int64_t>{1, 0, 1, 0, 0, 1, 0, 1});
}

TEST_CASE("a chunk is as full as the fullest stage, with what members held before in every one") {
  // Rank 0 fetches 8 B from 3, then 2 B from 4, and passes both on to 1, to which it sends 5 B that it held; 2 sends 1 B to 1.
  ListedPhases listed;
  listed.ranks = 5;
  listed.wanting = {{0, 1}};
  listed.fetched = {{3, 0, 1, 8, 0}, {4, 0, 2, 2, 0}};
  listed.held = {{0, 1, 5}, {2, 1, 1}};
  const auto one = verification::traffic_in_stages(listed, 1);
  REQUIRE(one);
  CHECK(one->stages == 2);
  CHECK(one->phase[0].bytes[1] == 2 * 8);
  CHECK(one->phase[0].bytes[2] == 2 * 2);
  CHECK(one->phase[0].peers[1] == 1);
  CHECK(one->phase[0].peers[2] == 1);
  CHECK(one->phase[1].bytes[0] == 2 * 8 + 5 + 1);
  CHECK(one->phase[1].peers[0] == 2);
  const auto two = verification::traffic_in_stages(listed, 2);
  REQUIRE(two);
  CHECK(two->stages == 1);
  CHECK(two->phase[0].bytes[1] == 8);
  CHECK(two->phase[1].bytes[0] == 8 + 2 + 5 + 1);
  CHECK(two->phase[1].peers[0] == 2);
  listed.fetched.clear();
  const auto none = verification::traffic_in_stages(listed, 1);
  REQUIRE(none);
  CHECK(none->stages == 1);
  CHECK(none->phase[0].peers[1] == 0);
  CHECK(none->phase[1].bytes[0] == 6);
}

}  // namespace
}  // namespace meshplan
