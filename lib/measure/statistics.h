// Medians, percentiles and intervals of samples, without assuming a distribution.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace meshplan {

// All in nanoseconds; of no samples: zeros.
struct Summary {
  int64_t samples = 0;
  int64_t min = 0;
  int64_t median = 0;
  // 95 % confidence interval of the median, from order statistics; the whole range below 6 samples
  int64_t median_low = 0;
  int64_t median_high = 0;
  int64_t p95 = 0;
  std::optional<int64_t> p99;  // from 100 samples on
  double variation = 0;        // coefficient of variation: standard deviation / mean
};
[[nodiscard]] Summary summarise(std::vector<int64_t> samples);

// The ranks (from 0, inclusive) of the order statistics that enclose the median of n samples with
// 95 % confidence, exactly by the binomial distribution; {0, n - 1} where no pair does.
[[nodiscard]] std::pair<int64_t, int64_t> median_ranks(int64_t n);

// Paired samples a[i], b[i]: the median of a - b with its interval. Significant: the interval
// leaves out 0 (and there are 6 pairs or more).
struct PairedDifference {
  int64_t median = 0;
  int64_t low = 0;
  int64_t high = 0;
  bool significant = false;
};
[[nodiscard]] PairedDifference compare_paired(const std::vector<int64_t>& a,
                                              const std::vector<int64_t>& b);

}  // namespace meshplan
