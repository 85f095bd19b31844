// The law of passing on against every schedule of small worlds: which chunks arrive at which takers
// in each wave, from the giver or from takers that had them before.
#include "cost/relay_bound.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "cost/collective_time.h"

namespace meshplan {
namespace {

constexpr int64_t chunk_bytes = 1'000'000;

// One giver, some takers alike. What it sends to one has a link of its own where `apart`.
struct RelayMeshes {
  int takers = 2;
  int chunks = 2;
  int64_t giver_mb_per_s = 1;  // out
  int64_t given_mb_per_s = 1;  // into a taker from the giver
  int64_t among_mb_per_s = 1;  // into a taker from others; not apart: from all
  bool apart = false;
  std::vector<uint32_t> wanted;  // chunks of each taker, as bits

  [[nodiscard]] uint32_t of_taker(uint32_t state, int taker) const { return state >> (taker * chunks) & ((1U << chunks) - 1); }
  [[nodiscard]] uint32_t all() const {
    uint32_t state = 0;
    for (int t = takers; t-- > 0;) state = state << chunks | wanted[static_cast<size_t>(t)];
    return state;
  }
};

int64_t slowest(const RelayMeshes& world, uint32_t given, uint32_t passed) {
  int64_t most = transfer_ps(std::popcount(given) * chunk_bytes, 1, world.giver_mb_per_s);
  for (int t = 0; t < world.takers; ++t) {
    const int64_t from_giver = std::popcount(world.of_taker(given, t)) * chunk_bytes;
    const int64_t others = std::popcount(world.of_taker(passed, t)) * chunk_bytes;
    most = std::max({most, transfer_ps(from_giver, 1, world.given_mb_per_s),
                     transfer_ps(others + (world.apart ? 0 : from_giver), 1, world.among_mb_per_s)});
  }
  return most;
}

// The least time by waves in which the giver sends, 0 to `most_waves`, all others beside them.
std::vector<int64_t> least_times(const RelayMeshes& world, int most_waves) {
  const uint32_t all = world.all();
  std::vector<std::vector<int64_t>> times(static_cast<size_t>(most_waves) + 1, std::vector<int64_t>(all + 1, INT64_MAX));
  times[0][0] = 0;
  for (uint32_t state = 0; state < all; ++state) {
    if ((state & ~all) != 0) continue;
    uint32_t somewhere = 0;
    for (int t = 0; t < world.takers; ++t) somewhere |= world.of_taker(state, t);
    uint32_t at_others = 0;
    for (int t = 0; t < world.takers; ++t) at_others |= somewhere << (t * world.chunks);
    const uint32_t missing = all & ~state;
    for (uint32_t comes = missing; comes != 0; comes = (comes - 1) & missing) {
      const uint32_t forced = comes & ~at_others;
      const uint32_t either = comes & at_others;
      for (uint32_t also = either;; also = (also - 1) & either) {
        const uint32_t given = forced | also;
        const int64_t takes = slowest(world, given, comes & ~given);
        for (size_t waves = given != 0 ? 1 : 0; waves < times.size(); ++waves) {
          const int64_t before = times[waves - (given != 0 ? 1 : 0)][state];
          if (before == INT64_MAX) continue;
          int64_t& best = times[waves][state | comes];
          best = std::min(best, before + takes);
        }
        if (also == 0) break;
      }
    }
  }
  std::vector<int64_t> least;
  for (const auto& of_waves : times) least.push_back(of_waves[all]);
  return least;
}

// As the law has it, each chunk counted for `copies` takers at most.
RelayNeed need_of(const RelayMeshes& world, int64_t copies) {
  RelayNeed need;
  need.copies = copies;
  for (int c = 0; c < world.chunks; ++c) {
    int64_t times = 0;
    for (const uint32_t wanted : world.wanted) times += wanted >> c & 1U;
    need.leaving += times > 0 ? chunk_bytes : 0;
    need.arriving += std::min(times, copies) * chunk_bytes;
  }
  need.given_mb_per_s = std::min(world.giver_mb_per_s, world.takers * world.given_mb_per_s);
  need.taken_mb_per_s = world.takers * (world.among_mb_per_s + (world.apart ? world.given_mb_per_s : 0));
  return need;
}

// How far the best schedule is above the law, the least over numbers of waves; never below.
double checked(const RelayMeshes& world, bool others) {
  const std::vector<int64_t> times = least_times(world, 4);
  double least = 1e9;
  for (int64_t waves = 1; waves <= 4; ++waves) {
    const int64_t reached = *std::min_element(times.begin(), times.begin() + waves + 1);
    for (int64_t copies = 1; copies <= world.takers; ++copies) {
      const int64_t among = world.takers * world.among_mb_per_s;
      const int64_t bound = least_relay_ps(need_of(world, copies), waves, among);
      CHECK_MESSAGE(bound <= reached, world.takers << " takers of " << world.chunks << " chunks in " << waves << " waves");
      if (others) continue;
      if (copies == world.takers) least = std::min(least, static_cast<double>(reached) / static_cast<double>(bound));
    }
  }
  return least;
}

}  // namespace

TEST_CASE("one giver of two takers: the header's example") {
  const RelayNeed need{16, 32, 2, 1, 2};
  for (const int64_t waves : {1, 2, 3, 10}) {
    const int64_t exact = 16'000'000 * 2 * waves / (2 * waves - 1);
    CHECK(least_relay_ps(need, waves, 0) <= exact);
    CHECK(least_relay_ps(need, waves, 0) >= exact - 5);
  }
  CHECK(least_relay_ps(need, 1, 0) >= 31'999'997);
}

TEST_CASE("no schedule of a small world beats the law of passing on") {
  for (const auto& [takers, chunks] : {std::pair{2, 2}, {2, 4}, {2, 5}, {3, 3}, {4, 2}}) {
    for (const int64_t giver : {1, 2, 3}) {
      for (const int64_t given : {1, 2}) {
        for (const int64_t among : {1, 2, 4}) {
          for (const bool apart : {false, true}) {
            if (!apart && given > among) continue;
            RelayMeshes world{takers, chunks, giver, given, among, apart, {}};
            world.wanted.assign(static_cast<size_t>(takers), (1U << chunks) - 1);
            checked(world, false);
            // The first taker wants one chunk less than the others, the last one only one.
            world.wanted.front() &= ~1U;
            world.wanted.back() = 2;
            checked(world, true);
          }
        }
      }
    }
  }
}

TEST_CASE("some schedule reaches the law of passing on") {
  RelayMeshes world{2, 4, 1, 1, 1, false, {15, 15}};
  CHECK(checked(world, false) < 1.2);
}

TEST_CASE("more waves, and takers that send more, never take longer") {
  for (const int64_t given : {10, 100, 1000}) {
    for (const int64_t taken : {1000, 1100, 5000}) {
      for (const int64_t copies : {1, 2, 8, 64}) {
        const RelayNeed need{1 << 20, copies << 20, copies, given, taken};
        int64_t before = INT64_MAX;
        for (int64_t waves = 1; waves <= 20; ++waves) {
          const int64_t ps = least_relay_ps(need, waves, 0);
          CHECK(ps <= before);
          CHECK(least_relay_ps(need, waves, taken - given) <= ps);
          CHECK(ps + 1 >= transfer_ps(1 << 20, 1, given));
          before = ps;
        }
        const int64_t at_once = transfer_ps(copies << 20, 1, given);
        CHECK(least_relay_ps(need, 1, 0) >= at_once - at_once / 10'000);
      }
    }
  }
}

}  // namespace meshplan
