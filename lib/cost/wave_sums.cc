#include "cost/wave_sums.h"

#include <algorithm>

#include "base/int_math.h"

namespace meshplan {
namespace {

// Fixed point: so many bits behind the point.
constexpr int fraction_bits = 40;
constexpr int128 one = int128{1} << fraction_bits;
// What is smaller is rounding.
constexpr int128 least_pivot = one >> 24;
constexpr int most_pivots = 200;
// Weights have so many bits, so that no sum of theirs exceeds 128.
constexpr int weight_bits = 24;
constexpr int64_t most_mb_per_s = int64_t{1} << 44;
// Beyond it products of two do not fit.
constexpr int128 most_value = int128{1} << 62;

int128 times(int128 a, int128 b) { return a * b >> fraction_bits; }

// Kinds as columns, waves as rows: the largest sum of shares of which no wave has more than one.
class Simplex {
 public:
  Simplex(const std::vector<WaveSum>& sums, size_t waves) : kinds_(sums.size()), waves_(waves) {
    // Of what must come of a kind, the part that a wave brings in its time; the largest is one.
    int128 most_mb = 1;  // of a second, of so many bytes
    int64_t of_bytes = INT64_MAX;
    for (const WaveSum& sum : sums) {
      for (const int64_t mb_per_s : sum.mb_per_s) {
        if (int128{mb_per_s} * of_bytes <= most_mb * sum.bytes) continue;
        most_mb = mb_per_s;
        of_bytes = sum.bytes;
      }
    }
    rows_.assign(waves, std::vector<int128>(kinds_ + waves + 1, 0));
    for (size_t w = 0; w < waves; ++w) {
      for (size_t k = 0; k < kinds_; ++k) {
        const int128 scaled = int128{sums[k].mb_per_s[w]} * of_bytes << fraction_bits / 2;
        rows_[w][k] = (scaled / sums[k].bytes << fraction_bits / 2) / most_mb;
      }
      rows_[w][kinds_ + w] = rows_[w].back() = one;
      basis_.push_back(kinds_ + w);
    }
    gains_.assign(kinds_ + waves + 1, 0);
    std::fill_n(gains_.begin(), kinds_, one);
  }

  // Of each kind.
  std::vector<int128> shares() {
    for (int pivot = 0; pivot < most_pivots && improve(); ++pivot) {
    }
    std::vector<int128> shares(kinds_, 0);
    for (size_t w = 0; w < waves_; ++w) {
      if (basis_[w] < kinds_)
        shares[basis_[w]] = std::clamp<int128>(rows_[w].back(), 0, most_value);
    }
    return shares;
  }

 private:
  bool improve() {
    const auto best = std::max_element(gains_.begin(), gains_.end() - 1);
    if (*best < least_pivot) return false;
    const auto enters = static_cast<size_t>(best - gains_.begin());
    size_t leaves = waves_;
    for (size_t w = 0; w < waves_; ++w) {
      if (rows_[w][enters] < least_pivot) continue;
      if (leaves == waves_ || times(rows_[w].back(), rows_[leaves][enters]) <
                                  times(rows_[leaves].back(), rows_[w][enters]))
        leaves = w;
    }
    if (leaves == waves_) {  // all of it is rounding
      gains_[enters] = 0;
      return true;
    }
    std::vector<int128>& row = rows_[leaves];
    const int128 by = row[enters];
    bool fits = true;
    const auto set = [&](int128& value, int128 to) {
      value = to;
      fits = fits && to <= most_value && to >= -most_value;
    };
    for (int128& value : row) set(value, (value << fraction_bits) / by);
    const auto take = [&](std::vector<int128>& from) {
      const int128 part = from[enters];
      for (size_t i = 0; fits && part != 0 && i < from.size(); ++i)
        set(from[i], from[i] - times(part, row[i]));
    };
    for (size_t w = 0; w < waves_; ++w) {
      if (w != leaves) take(rows_[w]);
    }
    take(gains_);
    basis_[leaves] = enters;
    return fits;
  }

  size_t kinds_;
  size_t waves_;
  std::vector<std::vector<int128>> rows_;
  std::vector<int128> gains_;
  std::vector<size_t> basis_;
};

// What weights prove: exactly, from below.
int64_t proven_ps(const std::vector<WaveSum>& sums, size_t waves,
                  const std::vector<int64_t>& weights) {
  int128 bytes = 0;
  for (size_t k = 0; k < sums.size(); ++k) bytes += int128{weights[k]} * sums[k].bytes;
  int128 most = 0;
  for (size_t w = 0; w < waves; ++w) {
    int128 mb_per_s = 0;
    for (size_t k = 0; k < sums.size(); ++k) mb_per_s += int128{weights[k]} * sums[k].mb_per_s[w];
    most = std::max(most, mb_per_s);
  }
  return most > 0 ? saturated(bytes * 1'000'000 / most) : 0;
}

}  // namespace

int64_t least_sum_ps(const std::vector<WaveSum>& all, size_t waves) {
  std::vector<WaveSum> sums;
  for (const WaveSum& sum : all) {
    const auto fastest = std::max_element(sum.mb_per_s.begin(), sum.mb_per_s.end());
    if (sum.bytes > 0 && *fastest > 0 && *fastest < most_mb_per_s) sums.push_back(sum);
  }
  if (sums.empty()) return 0;
  const std::vector<int128> shares = Simplex(sums, waves).shares();
  if (std::all_of(shares.begin(), shares.end(), [](int128 share) { return share == 0; })) return 0;
  // A byte's share, the largest in so many bits.
  size_t largest = 0;
  for (size_t k = 1; k < sums.size(); ++k) {
    if (shares[k] * sums[largest].bytes > shares[largest] * sums[k].bytes) largest = k;
  }
  std::vector<int64_t> weights;
  for (size_t k = 0; k < sums.size(); ++k) {
    const int128 relative = (shares[k] << weight_bits) / shares[largest];
    weights.push_back(saturated(relative * sums[largest].bytes / sums[k].bytes));
  }
  return proven_ps(sums, waves, weights);
}

}  // namespace meshplan
