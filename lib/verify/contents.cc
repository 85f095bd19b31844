// same_contents of coverage.h.
//
// A rank's box is empty where one of its intervals is; call N the set of ranks whose box is not. N
// is a product over the tensor dims, of the coordinates whose interval is not empty, once for each
// state. A set that is a product over two partitions of the digits is one over their common
// refinement (all digits zero, where nothing is empty, belongs to it), so N is the same in both
// states exactly where, for every tensor dim of either, its non-empty coordinates are the product
// of their sections along the cells that the other state's tensor dims cut it into, and both states
// have the same section in every cell. On N an interval may then depend only on digits that shard
// the same tensor dim in both states, and must agree there. All of this needs the chunks of single
// tensor dims only.
#include <algorithm>

#include "verify/coverage.h"

namespace meshplan::verification {
namespace {

constexpr int32_t other_cell = -1;  // digits that shard nothing in the other state

// One tensor dim of one state, against the other state.
struct DimView {
  ShardList list;
  std::vector<Interval> chunks;
  std::vector<int64_t> strides;  // of the mixed-radix index, per entry of the list
  std::vector<int32_t> cells;    // tensor dim in the other state, per entry
};

bool build_view(const Digits& digits, const DigitState& state, const DigitState& other,
                size_t tensor_dim, int64_t extent, DimView& view) {
  view.list = state.shard_list(tensor_dim);
  auto chunks = chunks_of(digits, view.list, extent);
  if (!chunks) return false;
  view.chunks = std::move(*chunks);
  view.strides.assign(view.list.count, 1);
  view.cells.assign(view.list.count, other_cell);
  int64_t stride = 1;
  for (size_t i = view.list.count; i-- > 0;) {
    view.strides[i] = stride;
    stride *= digits.list[view.list.digits[i]].size;
    const int32_t role = other.role[view.list.digits[i]];
    if (role >= 0) view.cells[i] = role;
  }
  return true;
}

bool is_empty(const DimView& view, int64_t index) { return width(view.chunks[index]) == 0; }

// The index with all coordinates outside of the cell set to zero.
int64_t within_cell(const Digits& digits, const DimView& view, int32_t cell, int64_t index) {
  int64_t kept = 0;
  for (size_t i = 0; i < view.list.count; ++i) {
    if (view.cells[i] == cell)
      kept += index / view.strides[i] % digits.list[view.list.digits[i]].size * view.strides[i];
  }
  return kept;
}

// The index in `to` of the coordinates that `index` of `from` has on the digits in `shared`, all
// others zero.
int64_t carried_over(const Digits& digits, const DimView& from, const DimView& to, DigitSet shared,
                     int64_t index) {
  int64_t result = 0;
  for (size_t i = 0; i < from.list.count; ++i) {
    const size_t digit = from.list.digits[i];
    if (!has(shared, digit)) continue;
    const int64_t coordinate = index / from.strides[i] % digits.list[digit].size;
    for (size_t j = 0; j < to.list.count; ++j) {
      if (to.list.digits[j] == digit) result += coordinate * to.strides[j];
    }
  }
  return result;
}

// What one tensor dim of one state must satisfy against all tensor dims of the other.
bool agrees(const Digits& digits, const std::vector<DimView>& views,
            const std::vector<DimView>& others, size_t tensor_dim) {
  const DimView& view = views[tensor_dim];
  std::vector<int32_t> cells = view.cells;
  std::sort(cells.begin(), cells.end());
  cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
  const auto dim = static_cast<int32_t>(tensor_dim);
  const DimView& twin = others[tensor_dim];
  for (size_t chunk = 0; chunk < view.chunks.size(); ++chunk) {
    const auto index = static_cast<int64_t>(chunk);
    bool all_sections = true;
    for (int32_t cell : cells) {
      const int64_t part = within_cell(digits, view, cell, index);
      const bool empty = is_empty(view, part);
      all_sections = all_sections && !empty;
      if (cell == other_cell) {
        if (empty) return false;
      } else {
        const DimView& other = others[cell];
        if (empty != is_empty(other, carried_over(digits, view, other,
                                                  view.list.set & other.list.set, part)))
          return false;
      }
    }
    if (is_empty(view, index) == all_sections) return false;
    if (!all_sections) continue;
    const int64_t own = within_cell(digits, view, dim, index);
    const int64_t twins = carried_over(digits, view, twin, view.list.set & twin.list.set, own);
    if (view.chunks[chunk] != twin.chunks[twins]) return false;
  }
  return true;
}

bool equal_lists(const ShardList& a, const ShardList& b) {
  if (a.count != b.count) return false;
  for (size_t i = 0; i < a.count; ++i) {
    if (a.digits[i] != b.digits[i] || (i != 0 && ((a.continues ^ b.continues) >> i & 1) != 0))
      return false;
  }
  return true;
}

}  // namespace

bool same_contents(const Digits& digits, const DigitState& a, const DigitState& b,
                   std::span<const int64_t> shape) {
  if (a.pending != b.pending) return false;
  for (size_t i = 0; i < digits.count; ++i) {
    if (has(a.pending, i) && a.role[i] != b.role[i]) return false;
  }
  bool equal = true;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return true;
    if (equal_lists(a.shard_list(d), b.shard_list(d))) continue;
    equal = false;
  }
  if (equal) return true;
  // Where nothing is empty, digits that cut evenly make different boxes unless the lists are the
  // same.
  bool even = true;
  for (size_t d = 0; d < shape.size() && even; ++d) {
    even = cuts_evenly(digits, a.shard_list(d), shape[d]) &&
           cuts_evenly(digits, b.shard_list(d), shape[d]);
  }
  if (even) {
    for (size_t d = 0; d < shape.size(); ++d) {
      const ShardList in_a = a.shard_list(d);
      const ShardList in_b = b.shard_list(d);
      if (!std::equal(in_a.digits, in_a.digits + in_a.count, in_b.digits, in_b.digits + in_b.count))
        return false;
    }
    return true;
  }
  std::vector<DimView> of_a(shape.size());
  std::vector<DimView> of_b(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!build_view(digits, a, b, d, shape[d], of_a[d]) ||
        !build_view(digits, b, a, d, shape[d], of_b[d]))
      return false;
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!agrees(digits, of_a, of_b, d) || !agrees(digits, of_b, of_a, d)) return false;
  }
  return true;
}

}  // namespace meshplan::verification
