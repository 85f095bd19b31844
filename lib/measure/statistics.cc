#include "measure/statistics.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace meshplan {

std::pair<int64_t, int64_t> median_ranks(int64_t n) {
  // The largest k with P(fewer than k of n samples below the median) <= 2.5 %.
  const double log_all = static_cast<double>(n) * std::log(2.0);
  double cumulative = 0;
  int64_t k = 0;
  for (int64_t i = 0; i < n / 2; ++i) {
    const auto x = static_cast<double>(i);
    const auto m = static_cast<double>(n);
    cumulative +=
        std::exp(std::lgamma(m + 1) - std::lgamma(x + 1) - std::lgamma(m - x + 1) - log_all);
    if (cumulative > 0.025) break;
    k = i + 1;
  }
  if (k == 0) return {0, std::max<int64_t>(0, n - 1)};
  return {k - 1, n - k};
}

Summary summarise(std::vector<int64_t> samples) {
  Summary s;
  if (samples.empty()) return s;
  std::sort(samples.begin(), samples.end());
  const auto n = std::ssize(samples);
  auto at = [&](int64_t i) { return samples[i]; };
  // Nearest rank: the smallest sample that at least p percent do not exceed.
  auto percentile = [&](int64_t p) { return at(std::max<int64_t>(0, (n * p + 99) / 100 - 1)); };
  s.samples = n;
  s.min = at(0);
  s.median = n % 2 == 1 ? at(n / 2) : at(n / 2 - 1) + (at(n / 2) - at(n / 2 - 1)) / 2;
  const auto [low, high] = median_ranks(n);
  s.median_low = at(low);
  s.median_high = at(high);
  s.p95 = percentile(95);
  if (n >= 100) s.p99 = percentile(99);
  double mean = 0;
  for (int64_t x : samples) mean += static_cast<double>(x) / static_cast<double>(n);
  double variance = 0;
  for (int64_t x : samples)
    variance +=
        (static_cast<double>(x) - mean) * (static_cast<double>(x) - mean) / static_cast<double>(n);
  s.variation = mean > 0 ? std::sqrt(variance) / mean : 0;
  return s;
}

PairedDifference compare_paired(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  MESHPLAN_CHECK(a.size() == b.size(), "pairs have two members");
  std::vector<int64_t> differences;
  for (size_t i = 0; i < a.size(); ++i) differences.push_back(a[i] - b[i]);
  const Summary s = summarise(differences);
  return {s.median, s.median_low, s.median_high,
          s.samples >= 6 && (s.median_low > 0 || s.median_high < 0)};
}

}  // namespace meshplan
