#include "layout/layout.h"

#include <algorithm>

#include "base/int_math.h"
#include "layout/by_stride.h"

namespace meshplan {

Result<Layout> make_layout(std::vector<Mode> modes) {
  int64_t count = 1;
  int64_t last = 0;
  for (const Mode& mode : modes) {
    if (mode.size < 1)
      return bad_input("a layout mode has size " + std::to_string(mode.size) +
                       "; sizes are 1 or more");
    if (mode.stride < (mode.size == 1 ? 0 : 1)) {
      return bad_input("a layout mode of size " + std::to_string(mode.size) + " has stride " +
                       std::to_string(mode.stride) + "; strides are 1 or more");
    }
    const auto product = checked_mul(count, mode.size);
    if (!product) return bad_input("the product of a layout's sizes does not fit 64 bits");
    const auto reach = checked_mul(mode.size - 1, mode.stride);
    const auto sum = reach ? checked_add(last, *reach) : std::nullopt;
    if (!sum || !checked_add(*sum, 1))
      return bad_input("the largest offset of a layout does not fit 64 bits");
    count = *product;
    last = *sum;
  }
  return Layout{std::move(modes)};
}

int64_t size(const Layout& layout) {
  int64_t count = 1;
  for (const Mode& mode : layout.modes) count *= mode.size;
  return count;
}

int64_t cosize(const Layout& layout) {
  int64_t last = 0;
  for (const Mode& mode : layout.modes) last += (mode.size - 1) * mode.stride;
  return last + 1;
}

int64_t offset_at(const Layout& layout, int64_t index) {
  int64_t offset = 0;
  for (size_t i = layout.modes.size(); i-- > 0;) {
    const Mode& mode = layout.modes[i];
    offset += index % mode.size * mode.stride;
    index /= mode.size;
  }
  return offset;
}

std::vector<int64_t> offsets(const Layout& layout) {
  std::vector<int64_t> all{0};
  all.reserve(static_cast<size_t>(size(layout)));
  // From the innermost mode out: each mode repeats what is there so far, shifted by its stride.
  for (size_t i = layout.modes.size(); i-- > 0;) {
    const size_t block = all.size();
    for (int64_t k = 1; k < layout.modes[i].size; ++k) {
      for (size_t j = 0; j < block; ++j) all.push_back(all[j] + k * layout.modes[i].stride);
    }
  }
  return all;
}

Layout join_layouts(const std::vector<Layout>& parts) {
  Layout joined;
  for (const Layout& part : parts)
    joined.modes.insert(joined.modes.end(), part.modes.begin(), part.modes.end());
  return joined;
}

std::vector<WeightedMode> modes_by_stride(const Layout& layout) {
  std::vector<WeightedMode> sorted;
  int64_t weight = 1;
  for (size_t i = layout.modes.size(); i-- > 0;) {
    const Mode& mode = layout.modes[i];
    if (mode.size > 1) sorted.push_back({mode, weight});
    weight *= mode.size;
  }
  std::sort(sorted.begin(), sorted.end(), [](const WeightedMode& a, const WeightedMode& b) {
    return a.mode.stride != b.mode.stride ? a.mode.stride < b.mode.stride : a.weight < b.weight;
  });
  return sorted;
}

}  // namespace meshplan
