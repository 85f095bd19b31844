// All small layouts, for laws that must hold on every one of them.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "layout/layout.h"

namespace meshplan {

inline constexpr std::array<int64_t, 5> small_sizes{1, 2, 3, 4, 6};

// Every layout of `modes` modes of the sizes above with every stride of `strides`: overlapping, interleaving and tiling ones.
template <class Visit>
void for_each_layout(size_t modes, const std::vector<int64_t>& strides, const Visit& visit, Layout prefix = {}) {
  if (prefix.modes.size() == modes) return visit(prefix);
  for (const int64_t extent : small_sizes) {
    for (const int64_t stride : strides) {
      prefix.modes.push_back({extent, stride});
      for_each_layout(modes, strides, visit, prefix);
      prefix.modes.pop_back();
    }
  }
}

// Every layout of `modes` modes whose copies tile a world: the modes nested in every order, each right after the span below it or with a
// gap of a factor 2. visit(layout, span): its copies fill every multiple of span.
template <class Visit>
void for_each_tiling(size_t modes, bool gaps, const Visit& visit) {
  std::vector<size_t> nesting(modes);  // of the modes, finest first
  for (size_t i = 0; i < modes; ++i) nesting[i] = i;
  size_t size_choices = 1;
  for (size_t i = 0; i < modes; ++i) size_choices *= small_sizes.size();
  do {
    for (size_t choice = 0; choice < size_choices; ++choice) {
      for (size_t gap = 0; gap < (gaps ? size_t{1} << modes : 1); ++gap) {
        Layout layout;
        layout.modes.resize(modes);
        int64_t span = 1;
        size_t rest = choice;
        for (size_t i = 0; i < modes; ++i) {
          if ((gap >> i & 1) != 0) span *= 2;
          const int64_t extent = small_sizes[rest % small_sizes.size()];
          rest /= small_sizes.size();
          layout.modes[nesting[i]] = {extent, span};
          span *= extent;
        }
        visit(layout, span);
      }
    }
  } while (std::next_permutation(nesting.begin(), nesting.end()));
}

// The canonical layout with exactly these offsets, found from the list alone; nullopt where no layout has them.
inline std::optional<Layout> layout_with_offsets(std::vector<int64_t> values) {
  Layout layout;
  if (values.empty() || values[0] != 0) return std::nullopt;
  while (values.size() > 1) {
    const int64_t stride = values[1];
    size_t run = 1;
    while (run < values.size() && values[run] == static_cast<int64_t>(run) * stride) ++run;
    if (stride < 1 || values.size() % run != 0) return std::nullopt;
    std::vector<int64_t> coarse;
    for (size_t i = 0; i < values.size(); i += run) {
      for (size_t j = 0; j < run; ++j) {
        if (values[i + j] != values[i] + static_cast<int64_t>(j) * stride) return std::nullopt;
      }
      coarse.push_back(values[i]);
    }
    layout.modes.insert(layout.modes.begin(), {static_cast<int64_t>(run), stride});
    values = std::move(coarse);
  }
  return layout;
}

inline bool all_distinct(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) == values.end();
}

}  // namespace meshplan
