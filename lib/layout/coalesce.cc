// The canonical form, and the two ways to regroup modes without changing offsets: split and splice;
// and the order of the offsets.

#include <algorithm>

#include "base/int_math.h"
#include "layout/layout.h"

namespace meshplan {

Layout coalesce(const Layout& layout) {
  Layout result;
  result.modes.reserve(layout.modes.size());
  for (const Mode& mode : layout.modes) {
    if (mode.size == 1) continue;
    if (!result.modes.empty()) {
      Mode& left = result.modes.back();
      const auto reach = checked_mul(mode.size, mode.stride);
      if (reach && left.stride == *reach) {
        left = {left.size * mode.size, mode.stride};
        continue;
      }
    }
    result.modes.push_back(mode);
  }
  return result;
}

Layout in_ascending_order(const Layout& layout) {
  Layout sorted = coalesce(layout);
  std::sort(sorted.modes.begin(), sorted.modes.end(),
            [](const Mode& a, const Mode& b) { return a.stride > b.stride; });
  return coalesce(sorted);
}

bool has_same_offsets(const Layout& a, const Layout& b) {
  if (a == b) return true;
  return size(a) == size(b) && in_ascending_order(a) == in_ascending_order(b);
}

Result<std::vector<Layout>> split_layout(const Layout& layout, const std::vector<int64_t>& sizes) {
  for (const int64_t wanted : sizes) {
    if (wanted < 1)
      return bad_input("cannot split " + to_text(layout) + " by a factor of " +
                       std::to_string(wanted));
  }
  const auto product = checked_product(sizes);
  if (!product || *product != size(layout)) {
    return bad_input("cannot split " + to_text(layout) + ": the factors multiply to " +
                     (product ? std::to_string(*product) : "more than 64 bits") + ", not to " +
                     std::to_string(size(layout)));
  }
  std::vector<Layout> parts(sizes.size());
  // modes that are not assigned yet, taken from the back
  std::vector<Mode> rest = coalesce(layout).modes;
  for (size_t i = sizes.size(); i-- > 0;) {
    int64_t wanted = sizes[i];
    while (wanted > 1) {
      Mode& mode = rest.back();
      if (wanted % mode.size == 0) {
        wanted /= mode.size;
        parts[i].modes.insert(parts[i].modes.begin(), mode);
        rest.pop_back();
      } else if (mode.size % wanted == 0) {
        parts[i].modes.insert(parts[i].modes.begin(), {wanted, mode.stride});
        mode = {mode.size / wanted, mode.stride * wanted};
        wanted = 1;
      } else {
        return bad_input("cannot split " + to_text(layout) + ": a factor of " +
                         std::to_string(sizes[i]) + " cuts its mode " + std::to_string(mode.size) +
                         ":" + std::to_string(mode.stride) + " unevenly");
      }
    }
  }
  return parts;
}

Result<Layout> splice(const Layout& layout, size_t first, size_t count, const Layout& part) {
  const size_t modes = layout.modes.size();
  if (first > modes || count > modes - first) {
    return bad_input("cannot replace modes " + std::to_string(first) + " to " +
                     std::to_string(first + count) + " of " + to_text(layout) + ", which has " +
                     std::to_string(modes));
  }
  std::vector<Mode> result(layout.modes.begin(),
                           layout.modes.begin() + static_cast<std::ptrdiff_t>(first));
  result.insert(result.end(), part.modes.begin(), part.modes.end());
  result.insert(result.end(), layout.modes.begin() + static_cast<std::ptrdiff_t>(first + count),
                layout.modes.end());
  return make_layout(std::move(result));
}

}  // namespace meshplan
