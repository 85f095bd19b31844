#include "cost/chain_bound.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/int_math.h"
#include "cost/collective_time.h"
#include "cost/wave_sums.h"

namespace meshplan {
namespace {

// More waves across are told by their latencies and the bytes alone.
constexpr int most_across = 10;
// So many choices of waves inside are looked at; of others only what all choices may do is known.
constexpr int most_choices = 256;
// Waves x of the law's last row so far behind v at most: those further away tell hardly more.
constexpr size_t furthest = 3;

struct Wave {
  int64_t given = 0;  // MB/s
  int64_t entering = 0;
  int64_t arriving = 0;
};

// The rows of the law.
class Rows {
 public:
  Rows(const ChainNeed& need, std::vector<Wave> waves) : need_(need), waves_(std::move(waves)) {}

  std::vector<WaveSum> list() {
    add(need_.leaving, [&](size_t j) { return waves_[j].given; });
    add(need_.entering, [&](size_t j) { return waves_[j].entering; });
    add(need_.arriving, [&](size_t j) { return waves_[j].arriving; });
    for (size_t v = 0; v < waves_.size(); ++v) {
      add(need_.entering, [&](size_t j) {
        if (j > v) return waves_[j].entering;
        return j < v ? saturating_mul(need_.units, waves_[j].given) : waves_[j].given;
      });
      add(need_.arriving, [&](size_t j) {
        if (j > v) return waves_[j].arriving;
        return j < v ? saturating_mul(need_.copies, waves_[j].given) : waves_[j].given;
      });
      add(need_.arriving, [&](size_t j) {
        if (j > v) return waves_[j].arriving;
        return j < v ? saturating_mul(need_.in_unit, waves_[j].entering) : waves_[j].entering;
      });
      for (size_t x = v + 1; x < std::min(waves_.size(), v + 1 + furthest); ++x)
        add(need_.arriving, [&](size_t j) { return chained(j, v, x); });
    }
    return std::move(rows_);
  }

 private:
  [[nodiscard]] int64_t chained(size_t j, size_t v, size_t x) const {
    const Wave& wave = waves_[j];
    if (j >= x) return j > x ? wave.arriving : wave.entering;
    if (j > v) return saturating_mul(need_.in_unit, wave.entering);
    const int64_t units = j < v ? need_.units : 1;
    return saturating_mul(need_.in_unit, saturating_mul(units, wave.given));
  }

  template <class Rate>
  void add(int64_t bytes, Rate&& mb_per_s) {
    WaveSum row{bytes, {}};
    for (size_t j = 0; j < waves_.size(); ++j) row.mb_per_s.push_back(mb_per_s(j));
    rows_.push_back(std::move(row));
  }

  const ChainNeed& need_;
  std::vector<Wave> waves_;
  std::vector<WaveSum> rows_;
};

// Of so many waves across; bit i of `inside`: behind wave i is one inside.
int64_t bytes_ps(const ChainNeed& need, int across, uint32_t inside) {
  std::vector<Wave> waves;
  for (int i = 0; i < across; ++i) {
    waves.push_back({need.given_mb_per_s, need.entering_mb_per_s, need.arriving_mb_per_s});
    if ((inside >> i & 1U) != 0) waves.push_back({0, 0, need.inside_mb_per_s});
  }
  const size_t count = waves.size();
  return least_sum_ps(Rows(need, std::move(waves)).list(), count);
}

}  // namespace

int64_t least_chain_ps(const ChainNeed& need) {
  if (need.leaving <= 0 || need.given_mb_per_s <= 0) return 0;
  int64_t least_ps = transfer_ps(need.leaving, 1, need.given_mb_per_s);
  if (need.entering_mb_per_s > 0)
    least_ps = std::max(least_ps, transfer_ps(need.entering, 1, need.entering_mb_per_s));
  int64_t best_ps = INT64_MAX;
  int choices = 0;
  for (int across = 1; across <= most_across; ++across) {
    const int64_t latencies_ps = saturating_mul(across, need.across_ps);
    if (saturating_add(latencies_ps, least_ps) >= best_ps) return best_ps;
    const uint32_t all = (1U << across) - 1;
    // Where a wave inside is behind each, whatever some of these do, they may do in no time.
    const int64_t any_ps = std::max(least_ps, bytes_ps(need, across, all));
    for (uint32_t inside = 0; inside <= all; ++inside) {
      const int64_t waves_ps =
          saturating_add(latencies_ps, saturating_mul(std::popcount(inside), need.inside_ps));
      if (saturating_add(waves_ps, any_ps) >= best_ps) continue;
      int64_t takes_ps = any_ps;
      if (choices++ < most_choices) takes_ps = std::max(any_ps, bytes_ps(need, across, inside));
      best_ps = std::min(best_ps, saturating_add(waves_ps, takes_ps));
    }
  }
  const int64_t more_ps = saturating_mul(most_across + 1, need.across_ps);
  return std::min(best_ps, saturating_add(more_ps, least_ps));
}

}  // namespace meshplan
