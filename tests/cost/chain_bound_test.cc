// The law of chains against every schedule of small worlds: which chunks arrive at which ranks in
// each wave, from givers, from ranks of other units, or inside.
#include "cost/chain_bound.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "cost/collective_time.h"

namespace meshplan {
namespace {

constexpr int64_t chunk = 1'000'000;  // bytes

// Units of ranks alike, each with an outer and an inner link; givers give away together.
struct World {
  int units = 2;
  int ranks = 2;  // in each unit
  int chunks = 2;
  int64_t givers_mb_per_s = 1;
  int64_t outer_mb_per_s = 1;  // into a rank
  int64_t inner_mb_per_s = 1;
  int64_t across_ps = 0;
  int64_t inside_ps = 0;
  uint32_t wanted = 0;  // bit chunks * rank + chunk, ranks numbered through the units

  [[nodiscard]] int all_ranks() const { return units * ranks; }
  [[nodiscard]] uint32_t of_rank(uint32_t state, int rank) const { return state >> (rank * chunks) & ((1U << chunks) - 1); }
  [[nodiscard]] uint32_t of_unit(uint32_t state, int unit) const {
    uint32_t there = 0;
    for (int r = 0; r < ranks; ++r) there |= of_rank(state, unit * ranks + r);
    return there;
  }
  [[nodiscard]] uint32_t anywhere(uint32_t state) const {
    uint32_t there = 0;
    for (int u = 0; u < units; ++u) there |= of_unit(state, u);
    return there;
  }
};

struct Loads {
  int64_t given = 0;
  std::vector<int64_t> outer;  // by rank
  std::vector<int64_t> inner;
};

// The least time of a wave that brings `comes`, item by item from where it may come.
class LeastWave {
 public:
  LeastWave(const World& world, uint32_t state, uint32_t comes) : world_(world), state_(state) {
    for (int i = 0; i < world.all_ranks() * world.chunks; ++i) {
      if ((comes >> i & 1U) != 0) items_.push_back(i);
    }
    loads_.outer.assign(static_cast<size_t>(world.all_ranks()), 0);
    loads_.inner = loads_.outer;
    choose(0);
  }
  [[nodiscard]] int64_t ps() const { return best_; }

 private:
  void choose(size_t at) {
    if (at == items_.size()) {
      take();
      return;
    }
    const int rank = items_[at] / world_.chunks;
    const uint32_t item = 1U << (items_[at] % world_.chunks);
    const auto r = static_cast<size_t>(rank);
    const bool in_unit = (world_.of_unit(state_, rank / world_.ranks) & item) != 0;
    if (in_unit) {
      loads_.inner[r] += chunk;
      choose(at + 1);
      loads_.inner[r] -= chunk;
    }
    loads_.outer[r] += chunk;
    if ((world_.anywhere(state_) & item) != 0) {
      choose(at + 1);
    } else {
      loads_.given += chunk;
      choose(at + 1);
      loads_.given -= chunk;
    }
    loads_.outer[r] -= chunk;
  }

  void take() {
    int64_t most = transfer_ps(loads_.given, 1, world_.givers_mb_per_s);
    int64_t outer = 0;
    for (size_t r = 0; r < loads_.outer.size(); ++r) {
      outer += loads_.outer[r];
      most =
          std::max({most, transfer_ps(loads_.outer[r], 1, world_.outer_mb_per_s), transfer_ps(loads_.inner[r], 1, world_.inner_mb_per_s)});
    }
    best_ = std::min(best_, most + (outer > 0 ? world_.across_ps : world_.inside_ps));
  }

  const World& world_;
  uint32_t state_;
  std::vector<int> items_;
  Loads loads_;
  int64_t best_ = INT64_MAX;
};

// What another unit has comes from there, as givers are loaded less: it is never worse.
int64_t best_schedule(const World& world) {
  std::vector<int64_t> times(world.wanted + 1, INT64_MAX);
  times[0] = 0;
  for (uint32_t state = 0; state < world.wanted; ++state) {
    if ((state & ~world.wanted) != 0 || times[state] == INT64_MAX) continue;
    const uint32_t missing = world.wanted & ~state;
    for (uint32_t comes = missing; comes != 0; comes = (comes - 1) & missing) {
      int64_t& best = times[state | comes];
      best = std::min(best, times[state] + LeastWave(world, state, comes).ps());
    }
  }
  return times[world.wanted];
}

ChainNeed need_of(const World& world) {
  ChainNeed need;
  const int64_t ranks = world.all_ranks();
  for (int c = 0; c < world.chunks; ++c) {
    int64_t units = 0;
    int64_t copies = 0;
    for (int u = 0; u < world.units; ++u) {
      int64_t in_unit = 0;
      for (int r = 0; r < world.ranks; ++r) in_unit += world.of_rank(world.wanted, u * world.ranks + r) >> c & 1U;
      units += in_unit > 0 ? 1 : 0;
      copies += in_unit;
      need.in_unit = std::max(need.in_unit, in_unit);
    }
    need.units = std::max(need.units, units);
    need.copies = std::max(need.copies, copies);
    need.leaving += copies > 0 ? chunk : 0;
    need.entering += units * chunk;
    need.arriving += copies * chunk;
  }
  need.entering_mb_per_s = ranks * world.outer_mb_per_s;
  need.given_mb_per_s = std::min(world.givers_mb_per_s, need.entering_mb_per_s);
  need.inside_mb_per_s = ranks * world.inner_mb_per_s;
  need.arriving_mb_per_s = need.entering_mb_per_s + need.inside_mb_per_s;
  need.across_ps = world.across_ps;
  need.inside_ps = world.inside_ps;
  return need;
}

// How far the best schedule is above the law; never below.
double checked(const World& world) {
  const int64_t best = best_schedule(world);
  const int64_t bound = least_chain_ps(need_of(world));
  CHECK_MESSAGE(bound <= best, world.units << " units of " << world.ranks << ", " << world.chunks << " chunks, wanted " << world.wanted
                                           << ", givers " << world.givers_mb_per_s << " outer " << world.outer_mb_per_s << " inner "
                                           << world.inner_mb_per_s);
  CHECK(bound > 0);
  return static_cast<double>(best) / static_cast<double>(bound);
}

ChainNeed eight_to_two_hosts() {
  ChainNeed need;
  need.leaving = int64_t{1} << 27;
  need.entering = 2 * need.leaving;
  need.arriving = 16 * need.leaving;
  need.units = 2;
  need.in_unit = 8;
  need.copies = 16;
  need.given_mb_per_s = 8 * 45'000;
  need.entering_mb_per_s = 16 * 45'000;
  need.arriving_mb_per_s = int64_t{16} * 415'000;
  need.inside_mb_per_s = int64_t{16} * 370'000;
  need.across_ps = 25'000'000;
  need.inside_ps = 10'000'000;
  return need;
}

}  // namespace

TEST_CASE("no schedule of a small world beats the law of chains") {
  double closest = 10;
  for (const auto& [units, ranks, chunks] : {std::tuple{2, 2, 2}, {1, 3, 2}, {2, 1, 3}, {3, 1, 2}, {1, 2, 4}}) {
    for (const int64_t givers : {1, 2, 3}) {
      for (const int64_t outer : {1, 2}) {
        for (const int64_t inner : {1, 4}) {
          for (const int64_t latency : {0, 300'000}) {
            World world{units, ranks, chunks, givers, outer, inner, latency * 1'000, latency * 200, 0};
            world.wanted = (1U << (units * ranks * chunks)) - 1;
            closest = std::min(closest, checked(world));
            // The first rank wants one chunk less, and the last one only one.
            world.wanted &= ~1U;
            world.wanted &= ~(((1U << chunks) - 2) << ((units * ranks - 1) * chunks));
            checked(world);
          }
        }
      }
    }
  }
  CHECK(closest < 1.01);
}

TEST_CASE("one host of 8 to two hosts of 8: the header's example") {
  // 627 us by a step, and two phases behind it, in pieces; 373 us of bytes leave, and at least 25 us are latencies.
  const int64_t bound = least_chain_ps(eight_to_two_hosts());
  CHECK(bound > 600'000'000);
  CHECK(bound < 630'000'000);
}

TEST_CASE("what is slower, or more to bring, never takes less") {
  const ChainNeed need = eight_to_two_hosts();
  const int64_t bound = least_chain_ps(need);
  const auto with = [&](auto&& change) {
    ChainNeed changed = need;
    change(changed);
    return least_chain_ps(changed);
  };
  const int64_t rounding = bound / 100'000;
  CHECK(with([](ChainNeed& n) { n.across_ps *= 2; }) >= bound);
  CHECK(with([](ChainNeed& n) { n.inside_ps *= 2; }) >= bound - rounding);
  CHECK(with([](ChainNeed& n) { n.given_mb_per_s /= 2; }) >= bound - rounding);
  CHECK(with([](ChainNeed& n) { n.arriving *= 2; }) >= bound - rounding);
  CHECK(with([](ChainNeed& n) { n.across_ps = n.inside_ps = 0; }) <= bound);
  CHECK(with([](ChainNeed& n) { n.leaving = 0; }) == 0);
}

TEST_CASE("without latencies pieces may be as small as they like: bytes alone count") {
  ChainNeed need = eight_to_two_hosts();
  need.across_ps = need.inside_ps = 0;
  const int64_t bytes_ps = transfer_ps(need.leaving, 1, need.given_mb_per_s);
  CHECK(least_chain_ps(need) >= bytes_ps);
  CHECK(least_chain_ps(need) < bytes_ps + bytes_ps / 100);
}

}  // namespace meshplan
