// Integer layouts: the offsets of a group of devices, as sizes and strides.
//
//     8:1          0 1 2 3 4 5 6 7
//     4:2          0 2 4 6
//     (2,4):(8,1)  0 1 2 3 8 9 10 11       right-most mode fastest, as in PyTorch (CuTe: left)
//     1:0          0                       the trivial layout
//
// A layout is a function from an index in 0..size-1 to an offset: write the index in mixed radix
// over the sizes, right-most digit fastest, and sum digit * stride. Each dim of a mesh has one;
// dims are composed, split and joined by arithmetic on layouts, never on lists of ranks.
//
// A layout has no base offset (every copy of a mesh has the same layout) and no rank map (see
// mesh/mesh.h).
//
// Sizes and strides are >= 1; the trivial layout has no modes. Operations without a correct answer
// return an error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace meshplan {

struct Mode {
  int64_t size = 1;
  int64_t stride = 0;
  bool operator==(const Mode&) const = default;
  auto operator<=>(const Mode&) const = default;
};

struct Layout {
  std::vector<Mode> modes;  // outermost first; empty: the trivial layout, one element at offset 0
  bool operator==(const Layout&) const = default;
  auto operator<=>(const Layout&) const = default;
};

// Checks the preconditions of all other operations: sizes and strides >= 1 (a mode of size 1 may
// have stride 0), size and cosize fit in int64.
[[nodiscard]] Result<Layout> make_layout(std::vector<Mode> modes);

// Number of elements: the product of the sizes.
[[nodiscard]] int64_t size(const Layout& layout);
// One past the largest offset: 1 + sum of (size - 1) * stride.
[[nodiscard]] int64_t cosize(const Layout& layout);
// The offset of element `index`, 0 <= index < size(layout).
[[nodiscard]] int64_t offset_at(const Layout& layout, int64_t index);
// All offsets in index order. O(size): for printing, replay and tests, never for planning.
[[nodiscard]] std::vector<int64_t> offsets(const Layout& layout);

// The canonical form: modes of size 1 are dropped, and adjacent modes are fused if left stride =
// right size * right stride. Law: offsets(coalesce(L)) == offsets(L); coalesce is idempotent;
// injective layouts that are equal as functions have equal canonical forms.
[[nodiscard]] Layout coalesce(const Layout& layout);

// Whether no two indices share an offset. Exact: the modes are sorted, and searched where they
// interleave; offsets are never enumerated.
[[nodiscard]] bool is_injective(const Layout& layout);
// Whether each stride is a multiple of size * stride of the next finer mode. These are exactly the
// layouts whose copies tile some world (PyTorch's check_orthogonal).
[[nodiscard]] bool is_orthogonal(const Layout& layout);
// Whether the strides of the modes of size > 1 descend, of the canonical form (PyTorch's
// check_sorted).
[[nodiscard]] bool is_sorted(const Layout& layout);

// The canonical layout of the same offsets with the strides descending. Law: offsets of the result
// are those of L sorted, for an orthogonal L, as all layouts are whose copies tile a world.
[[nodiscard]] Layout in_ascending_order(const Layout& layout);
// Whether layouts whose copies tile a world have the same offsets, in whatever order: communicators
// of them join the same ranks.
[[nodiscard]] bool has_same_offsets(const Layout& a, const Layout& b);

// The concatenated modes of `parts`; make_layout checks that they fit in 64 bits. Law:
// offset_at(join, i * size(b) + j) = offset_at(a, i) + offset_at(b, j).
[[nodiscard]] Layout join_layouts(const std::vector<Layout>& parts);

// Law: offset_at(composition(outer, inner), i) == offset_at(outer, offset_at(inner, i)) for every i
// < size(inner). Error if an offset of `inner` is outside the domain of `outer`, or if the
// composition is not a layout.
[[nodiscard]] Result<Layout> composition(const Layout& outer, const Layout& inner);

// The layout of the copies of `layout` in a world of `world` offsets. Law:
// offsets(join(complement(L, w), L)) is a permutation of 0..w-1, and the complement is sorted.
// Error if L is not injective or its copies cannot tile the world (the error names both numbers).
[[nodiscard]] Result<Layout> complement(const Layout& layout, int64_t world);

// Law: offset_at(left_inverse(L), offset_at(L, i)) == i; for offsets outside of L the value is
// unspecified. Error if L is not injective, if a sorted stride does not divide the next one, or if
// the inverse does not fit in int64.
[[nodiscard]] Result<Layout> left_inverse(const Layout& layout);
// Law: offset_at(L, offset_at(right_inverse(L), k)) == k for every k < size(right_inverse(L)), the
// longest such run from 0. Error if L is not injective.
[[nodiscard]] Result<Layout> right_inverse(const Layout& layout);

// Splits a layout into consecutive factors, outermost first: `sizes` must multiply to size(layout).
// Law: coalesce(join(split(L, sizes))) == coalesce(L), and size(part i) == sizes[i]. Error if a
// factor splits a mode unevenly.
[[nodiscard]] Result<std::vector<Layout>> split_layout(const Layout& layout,
                                                       const std::vector<int64_t>& sizes);

// Replaces the modes [first, first + count) of `layout` by those of `part`.
// Law: splice(L, i, k, the modes of coalesce(L[i..i+k))) has the offsets of L.
[[nodiscard]] Result<Layout> splice(const Layout& layout, size_t first, size_t count,
                                    const Layout& part);

// "8:1", "(2,4):(8,1)", "1:0". Law: parse_layout(to_text(L)) == L for every layout that make_layout
// accepts (the trivial one from "1:0").
[[nodiscard]] std::string to_text(const Layout& layout);
[[nodiscard]] Result<Layout> parse_layout(std::string_view text);

}  // namespace meshplan
