// Predicates on the modes of a layout: disjoint (injective), nested (orthogonal), descending
// (sorted).
#include <algorithm>
#include <numeric>

#include "base/int_math.h"
#include "layout/by_stride.h"
#include "layout/layout.h"

namespace meshplan {
namespace {

int128 magnitude(int128 value) { return value < 0 ? -value : value; }

// Whether digit differences t_i in [-(size_i - 1), size_i - 1], for the modes 0..count-1, can make
// sum(t_i * stride_i) == -sum. Two indices share an offset if differences that are not all zero sum
// to zero. `reach[i]` and `common[i]`: the sum of (size-1)*stride and the greatest common divisor
// of the strides of the modes below i; a branch ends when the finer modes cannot reach the sum or
// it is not divisible.
bool can_cancel(const std::vector<WeightedMode>& sorted, const std::vector<int128>& reach,
                const std::vector<int64_t>& common, size_t count, int128 sum) {
  if (magnitude(sum) > reach[count] || (count == 0 ? sum != 0 : sum % common[count] != 0))
    return false;
  if (count == 0 || sum == 0) return true;
  const Mode& mode = sorted[count - 1].mode;
  // Only t with |sum + t * stride| <= reach of the finer modes can cancel.
  const int128 stride = mode.stride;
  const int128 limit = mode.size - 1;
  int128 low = (-reach[count - 1] - sum) / stride;
  int128 high = (reach[count - 1] - sum) / stride;
  low = std::max(low, -limit);
  high = std::min(high, limit);
  for (int128 t = low; t <= high; ++t) {
    if (can_cancel(sorted, reach, common, count - 1, sum + t * stride)) return true;
  }
  return false;
}

}  // namespace

bool is_injective(const Layout& layout) {
  const std::vector<WeightedMode> sorted = modes_by_stride(layout);
  std::vector<int128> reach{0};
  std::vector<int64_t> common{0};
  for (const auto& [mode, weight] : sorted) {
    reach.push_back(reach.back() + static_cast<int128>(mode.size - 1) * mode.stride);
    common.push_back(std::gcd(common.back(), mode.stride));
  }
  for (size_t i = 1; i < sorted.size(); ++i) {
    const Mode& mode = sorted[i].mode;
    if (mode.stride > reach[i]) continue;  // beyond all finer modes
    // A collision whose coarsest difference is in this mode: the finer modes cancel t of its steps.
    // This is impossible if t * stride is beyond their reach or not a multiple of their common
    // divisor.
    const int64_t unit = common[i] / std::gcd(common[i], mode.stride);
    const int64_t most =
        static_cast<int64_t>(std::min<int128>(mode.size - 1, reach[i] / mode.stride));
    for (int64_t t = unit; t <= most; t += unit) {
      if (can_cancel(sorted, reach, common, i, static_cast<int128>(t) * mode.stride)) return false;
      if (most - t < unit) break;
    }
  }
  return true;
}

bool is_orthogonal(const Layout& layout) {
  int128 span = 1;
  for (const auto& [mode, weight] : modes_by_stride(layout)) {
    if (mode.stride % span != 0) return false;
    span = static_cast<int128>(mode.size) * mode.stride;
  }
  return true;
}

bool is_sorted(const Layout& layout) {
  int64_t last = INT64_MAX;
  for (const Mode& mode : coalesce(layout).modes) {
    if (mode.size == 1) continue;
    if (mode.stride > last) return false;
    last = mode.stride;
  }
  return true;
}

}  // namespace meshplan
