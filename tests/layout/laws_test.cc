// The laws of layout.h over all layouts of up to four modes of sizes 1, 2, 3, 4 and 6, each against the plain list of offsets. A partial
// operation must also be right where it refuses: then no right answer exists.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "layout/layout.h"
#include "worlds.h"

namespace meshplan {
namespace {

// Compares without a doctest assertion per layout, of which there are millions; says which one broke the law.
class Law {
 public:
  explicit Law(const char* name) : name_(name) {}
  Law(const Law&) = delete;
  Law& operator=(const Law&) = delete;
  ~Law() { CHECK_MESSAGE(checked_ > 0, std::string(name_) << " was never put to the test"); }
  void hold(bool holds, const Layout& layout, const std::string& detail = "") {
    ++checked_;
    if (!holds && ++broken_ <= 5) FAIL_CHECK(std::string(name_) << " is broken by " << to_text(layout) << " " << detail);
  }

 private:
  const char* name_;
  int64_t checked_ = 0;
  int64_t broken_ = 0;
};

template <class Visit>
void for_each_tiling_up_to(size_t modes, bool gaps, const Visit& visit) {
  for (size_t n = 0; n <= modes; ++n) for_each_tiling(n, gaps, visit);
}

template <class Visit>
void for_each_layout_up_to(size_t modes, const std::vector<int64_t>& strides, const Visit& visit) {
  for (size_t n = 0; n <= modes; ++n) for_each_layout(n, strides, visit);
}

const std::vector<int64_t> few_strides{1, 2, 3, 6};
const std::vector<int64_t> more_strides{1, 2, 3, 4, 5, 6, 8, 12, 24};

}  // namespace

TEST_CASE("offsets, offset_at, size and cosize agree") {
  Law listed("offsets[i] == offset_at(i)");
  Law largest("cosize == 1 + the largest offset");
  const auto check = [&](const Layout& layout) {
    const std::vector<int64_t> all = offsets(layout);
    bool same = static_cast<int64_t>(all.size()) == size(layout);
    for (size_t i = 0; same && i < all.size(); ++i) same = all[i] == offset_at(layout, static_cast<int64_t>(i));
    listed.hold(same, layout);
    largest.hold(cosize(layout) == *std::max_element(all.begin(), all.end()) + 1, layout);
  };
  for_each_layout_up_to(3, few_strides, check);
  for_each_tiling_up_to(4, false, [&](const Layout& layout, int64_t) { check(layout); });
}

TEST_CASE("in_ascending_order and has_same_offsets") {
  Law ascending("offsets(in_ascending_order(L)) == offsets(L), sorted");
  Law canonical("in_ascending_order(L) is canonical");
  std::map<std::vector<int64_t>, Layout> known;  // by sorted offsets
  Law equal("layouts of the same offsets have them");
  for_each_tiling_up_to(3, true, [&](const Layout& layout, int64_t) {
    const std::vector<int64_t> all = offsets(layout);
    std::vector<int64_t> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    const Layout result = in_ascending_order(layout);
    ascending.hold(offsets(result) == sorted, layout, "-> " + to_text(result));
    canonical.hold(coalesce(result) == result, layout, "-> " + to_text(result));
    const Layout& first = known.emplace(sorted, layout).first->second;
    equal.hold(has_same_offsets(first, layout) && has_same_offsets(layout, first), layout, "and " + to_text(first));
  });
  Law other("layouts of other offsets do not");
  for (const auto& [left_offsets, left] : known) {
    for (const auto& [right_offsets, right] : known)
      other.hold(has_same_offsets(left, right) == (left_offsets == right_offsets), left, to_text(right));
  }
}

TEST_CASE("coalesce") {
  Law same("offsets(coalesce(L)) == offsets(L)");
  Law canonical("coalesce(L) is the one canonical layout with L's offsets");
  Law idempotent("coalesce(coalesce(L)) == coalesce(L)");
  const auto check = [&](const Layout& layout) {
    const std::vector<int64_t> all = offsets(layout);
    const Layout result = coalesce(layout);
    same.hold(offsets(result) == all, layout);
    idempotent.hold(coalesce(result) == result, layout);
    if (all_distinct(all)) canonical.hold(layout_with_offsets(all) == result, layout, "-> " + to_text(result));
  };
  for_each_layout_up_to(3, few_strides, check);
  for_each_tiling_up_to(4, false, [&](const Layout& layout, int64_t) { check(layout); });
}

TEST_CASE("text") {
  Law round_trip("parse_layout(to_text(L)) == L");
  const auto check = [&](const Layout& layout) {
    const auto parsed = parse_layout(to_text(layout));
    round_trip.hold(parsed.ok() && *parsed == layout, layout);
  };
  for_each_layout_up_to(3, few_strides, check);
  for_each_tiling_up_to(4, false, [&](const Layout& layout, int64_t) { check(layout); });
}

TEST_CASE("is_injective is exact") {
  Law exact("is_injective(L) == no offset twice");
  for_each_layout_up_to(3, more_strides,
                        [&](const Layout& layout) { exact.hold(is_injective(layout) == all_distinct(offsets(layout)), layout); });
  for_each_layout(4, few_strides, [&](const Layout& layout) { exact.hold(is_injective(layout) == all_distinct(offsets(layout)), layout); });
}

TEST_CASE("complement of what tiles") {
  Law partition("offsets(join(complement(L, w), L)) is a permutation of 0..w-1");
  Law sorted("the complement is sorted and canonical");
  Law refused("no complement in a world that is not a multiple of the span");
  std::vector<char> seen;
  for_each_tiling_up_to(4, true, [&](const Layout& layout, int64_t span) {
    // The span of trailing size-1 modes may exceed what the copies need; with gaps the world is large, so one multiple is enough there.
    const int64_t world = span * (span < 100 ? 3 : 1);
    const auto copies = complement(layout, world);
    partition.hold(copies.ok() && size(*copies) * size(layout) == world, layout, "in " + std::to_string(world));
    if (!copies) return;
    sorted.hold(is_sorted(*copies) && coalesce(*copies) == *copies, layout);
    if (world > 2000) return;
    seen.assign(static_cast<size_t>(world), 0);
    const std::vector<int64_t> members = offsets(layout);
    bool once = true;
    for (const int64_t base : offsets(*copies)) {
      for (const int64_t member : members) {
        char& mark = seen[static_cast<size_t>(base + member)];
        once = once && mark == 0;
        mark = 1;
      }
    }
    partition.hold(once, layout, "in " + std::to_string(world));
    if (!coalesce(layout).modes.empty()) refused.hold(!complement(layout, world + 1).ok(), layout);
  });
}

TEST_CASE("complement refuses exactly what cannot tile") {
  Law exact("complement(L, w) exists exactly where copies of L tile 0..w-1");
  for (const int64_t world : {1, 2, 6, 12, 24, 36}) {
    for_each_layout_up_to(3, {1, 2, 3, 4, 6, 12}, [&](const Layout& layout) {
      // The first offset not yet covered must be the base of the next copy, so that trying is deciding.
      const std::vector<int64_t> members = offsets(layout);
      std::vector<char> seen(static_cast<size_t>(world), 0);
      bool tiles = world % size(layout) == 0;
      for (int64_t base = 0; tiles && base < world; ++base) {
        if (seen[static_cast<size_t>(base)] != 0) continue;
        for (const int64_t member : members) {
          tiles = tiles && base + member < world && seen[static_cast<size_t>(base + member)] == 0;
          if (tiles) seen[static_cast<size_t>(base + member)] = 1;
        }
      }
      exact.hold(complement(layout, world).ok() == tiles, layout, "in " + std::to_string(world));
    });
  }
}

TEST_CASE("composition") {
  Law values("offset_at(composition(A, B), i) == offset_at(A, offset_at(B, i))");
  Law refused("composition is refused only outside A's domain or where A along a mode of B is no layout or these do not add up");
  const auto check = [&](const Layout& outer, const Layout& inner) {
    const auto result = composition(outer, inner);
    const bool inside = cosize(inner) <= size(outer);
    if (!inside) return refused.hold(!result.ok(), outer, "with " + to_text(inner));
    std::vector<int64_t> expected = offsets(inner);
    for (int64_t& value : expected) value = offset_at(outer, value);
    if (result) {
      values.hold(offsets(*result) == expected && coalesce(*result) == *result, outer, "with " + to_text(inner));
    } else {
      bool each = true;  // composing mode by mode: each gives a layout, and they add up
      std::vector<int64_t> sums{0};
      const Layout canonical = coalesce(inner);
      for (size_t k = canonical.modes.size(); k-- > 0;) {
        std::vector<int64_t> along = offsets(Layout{{canonical.modes[k]}});
        for (int64_t& value : along) value = offset_at(outer, value);
        each = each && layout_with_offsets(along).has_value();
        const std::vector<int64_t> finer = sums;
        sums.clear();
        for (const int64_t value : along) {
          for (const int64_t base : finer) sums.push_back(value + base);
        }
      }
      refused.hold(!each || sums != expected, outer, "with " + to_text(inner));
    }
  };
  // Outer layouts of every nesting with every inner of up to two modes; and those of four modes with every single mode and with themselves.
  std::vector<Layout> inners;
  for_each_layout_up_to(2, {1, 2, 3, 4, 6, 8, 12}, [&](const Layout& inner) { inners.push_back(inner); });
  for_each_tiling_up_to(3, false, [&](const Layout& outer, int64_t) {
    for (const Layout& inner : inners) check(outer, inner);
  });
  for_each_tiling(4, false, [&](const Layout& outer, int64_t) {
    for (const int64_t stride : {1, 2, 3, 4, 6, 12, 24}) check(outer, Layout{{{small_sizes[static_cast<size_t>(stride) % 5], stride}}});
    check(outer, outer);
    check(outer, Layout{});
  });
}

TEST_CASE("inverses of what tiles") {
  Law left("offset_at(left_inverse(L), offset_at(L, i)) == i");
  Law right("offset_at(L, offset_at(right_inverse(L), k)) == k");
  Law both("a dense layout has one inverse on both sides");
  for_each_tiling_up_to(4, true, [&](const Layout& layout, int64_t span) {
    const bool dense = span == size(layout);
    if (!dense && size(layout) > 150) return;
    const std::vector<int64_t> all = offsets(layout);
    const auto l = left_inverse(layout);
    const auto r = right_inverse(layout);
    if (!l || !r) return left.hold(false, layout, l ? r.error().message : l.error().message);
    bool holds = true;
    for (size_t i = 0; i < all.size(); ++i) holds = holds && offset_at(*l, all[i]) == static_cast<int64_t>(i);
    left.hold(holds, layout, to_text(*l));
    holds = true;
    for (int64_t k = 0; k < size(*r); ++k)
      holds = holds && offset_at(*r, k) < size(layout) && all[static_cast<size_t>(offset_at(*r, k))] == k;
    right.hold(holds, layout, to_text(*r));
    if (dense) both.hold(*l == *r && size(*r) == size(layout), layout);
  });
}

TEST_CASE("inverses of any layout") {
  Law left("offset_at(left_inverse(L), offset_at(L, i)) == i");
  Law left_refused("left_inverse is refused only for an offset reached twice or strides that do not divide up");
  Law right("offset_at(L, offset_at(right_inverse(L), k)) == k");
  Law longest("right_inverse covers the longest run of offsets from 0");
  Law right_refused("right_inverse is refused only for an offset reached twice");
  for_each_layout_up_to(3, {1, 2, 3, 4, 6, 8}, [&](const Layout& layout) {
    const std::vector<int64_t> all = offsets(layout);
    const bool injective = all_distinct(all);
    const auto l = left_inverse(layout);
    if (l) {
      bool holds = injective;
      for (size_t i = 0; i < all.size(); ++i) holds = holds && offset_at(*l, all[i]) == static_cast<int64_t>(i);
      left.hold(holds, layout, to_text(*l));
    } else {
      std::vector<int64_t> strides;
      for (const Mode& mode : layout.modes) {
        if (mode.size > 1) strides.push_back(mode.stride);
      }
      std::sort(strides.begin(), strides.end());
      bool divide = true;
      for (size_t i = 1; i < strides.size(); ++i) divide = divide && strides[i] % strides[i - 1] == 0;
      left_refused.hold(!injective || !divide, layout);
    }
    const auto r = right_inverse(layout);
    right_refused.hold(r.ok() == injective, layout);
    if (!r) return;
    bool holds = true;
    for (int64_t k = 0; k < size(*r); ++k)
      holds = holds && offset_at(*r, k) < size(layout) && all[static_cast<size_t>(offset_at(*r, k))] == k;
    right.hold(holds, layout, to_text(*r));
    longest.hold(std::find(all.begin(), all.end(), size(*r)) == all.end(), layout, to_text(*r));
  });
}

TEST_CASE("split and splice") {
  Law joined("coalesce(join(split(L, sizes))) == coalesce(L)");
  Law sized("size(part i) == sizes[i]");
  Law refused("split is refused only where a factor has no layout");
  Law spliced("splice of a split mode has the offsets of L");
  for_each_tiling_up_to(4, false, [&](const Layout& layout, int64_t) {
    const int64_t count = size(layout);
    const std::vector<int64_t> all = offsets(layout);
    for (int64_t inner = 1; inner <= count; ++inner) {
      if (count % inner != 0) continue;
      const std::vector<int64_t> sizes{count / inner, inner};
      const auto parts = split_layout(layout, sizes);
      if (parts) {
        joined.hold(coalesce(join_layouts(*parts)) == coalesce(layout), layout, "by " + std::to_string(inner));
        sized.hold(parts->size() == 2 && size((*parts)[0]) == sizes[0] && size((*parts)[1]) == inner, layout);
        continue;
      }
      std::vector<int64_t> fine(all.begin(), all.begin() + inner);
      std::vector<int64_t> coarse;
      bool adds = true;
      for (int64_t i = 0; i < count; ++i) {
        if (i % inner == 0) coarse.push_back(all[static_cast<size_t>(i)]);
        adds = adds && all[static_cast<size_t>(i)] == coarse.back() + fine[static_cast<size_t>(i % inner)];
      }
      refused.hold(!adds || !layout_with_offsets(fine) || !layout_with_offsets(coarse), layout, "by " + std::to_string(inner));
    }
    for (size_t i = 0; i < layout.modes.size(); ++i) {
      for (size_t k = 0; i + k <= layout.modes.size(); ++k) {
        const Layout part{
            {layout.modes.begin() + static_cast<std::ptrdiff_t>(i), layout.modes.begin() + static_cast<std::ptrdiff_t>(i + k)}};
        const auto whole = splice(layout, i, k, coalesce(part));
        spliced.hold(whole.ok() && coalesce(*whole) == coalesce(layout), layout);
        const auto halves = split_layout(part, {size(part), 1});
        if (!halves) continue;
        const auto again = splice(layout, i, k, join_layouts(*halves));
        spliced.hold(again.ok() && coalesce(*again) == coalesce(layout), layout);
      }
    }
  });
}

TEST_CASE("orthogonal and sorted") {
  Law orthogonal("is_orthogonal(L) == L has a complement in some world");
  Law sorted("is_sorted(L) and orthogonal == offsets ascend");
  for_each_layout_up_to(3, more_strides, [&](const Layout& layout) {
    int64_t world = 1;
    for (const Mode& mode : layout.modes) world = std::lcm(world, mode.size > 1 ? mode.size * mode.stride : 1);
    orthogonal.hold(is_orthogonal(layout) == complement(layout, world).ok(), layout);
    const std::vector<int64_t> all = offsets(layout);
    const bool ascends = std::adjacent_find(all.begin(), all.end(), [](int64_t a, int64_t b) { return a >= b; }) == all.end();
    if (is_orthogonal(layout)) sorted.hold(is_sorted(layout) == ascends, layout);
  });
  // PyTorch asks the canonical form, where (3:16, 8:2) is 24:2.
  CHECK(is_sorted(Layout{{{4, 4}, {3, 16}, {8, 2}}}));
  CHECK_FALSE(is_sorted(Layout{{{4, 4}, {3, 17}, {8, 2}}}));
}

}  // namespace meshplan
