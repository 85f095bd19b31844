#include "cost/relay_bound.h"

#include <algorithm>

#include "base/int_math.h"
#include "cost/collective_time.h"

namespace meshplan {
namespace {

// Products of a rate and a time stay below 2^125.
constexpr int64_t most_ps = int64_t{1} << 62;
// Times are found to one part in so many, from below.
constexpr int64_t precision = int64_t{1} << 24;

// Whether waves of `all_ps` together may bring N bytes (times a million). With X the time of those
// before, as the law has it where m B >= b, else of those behind, which is the same with both rates
// exchanged, a wave takes t at most, where
//     N <= low all + (high - low) X - (low - B) t      low, high = b, m B in order
// which allows the more the larger X is: so waves as long as they may be come furthest.
bool brings(const RelayNeed& need, int64_t waves, int64_t all_ps, int128 bytes) {
  const int64_t spread = std::min(most_ps, saturating_mul(need.copies, need.given_mb_per_s));
  const int64_t low = std::min(spread, need.taken_mb_per_s);
  const int64_t high = std::max(spread, need.taken_mb_per_s);
  int64_t before = 0;
  for (int64_t wave = 0; wave < waves && before < all_ps; ++wave) {
    const int128 room = int128{low} * all_ps + int128{high - low} * before - bytes;
    if (room < 0) return false;
    if (low <= need.given_mb_per_s) return true;
    before = std::min(all_ps, saturated(before + room / (low - need.given_mb_per_s) + 1));
  }
  return before >= all_ps;
}

}  // namespace

// With s the waves of the law have T and N - c s to bring: their time falls in proportion to what
// they bring until it is W / B. So either s is nothing, or they have W / B alone.
int64_t least_relay_ps(const RelayNeed& need, int64_t waves, int64_t among_takers_mb_per_s) {
  if (need.arriving <= 0 || need.given_mb_per_s <= 0) return 0;
  const int64_t leaving_ps = transfer_ps(need.leaving, 1, need.given_mb_per_s);
  const auto enough = [&](int64_t ps) {
    const int128 arriving = int128{need.arriving} * 1'000'000;  // MB/s times picoseconds
    if (ps >= leaving_ps && brings(need, waves, ps, arriving)) return true;
    const int64_t others_ps = std::max<int64_t>(0, ps - leaving_ps + 1);
    return brings(need, waves, leaving_ps, arriving - int128{among_takers_mb_per_s} * others_ps);
  };
  int64_t low = std::max<int64_t>(0, leaving_ps - 1);
  int64_t high = std::min(most_ps, transfer_ps(need.arriving, 1, need.given_mb_per_s));
  while (high - low > 1 + low / precision) {
    const int64_t middle = low + (high - low) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return low;
}

}  // namespace meshplan
