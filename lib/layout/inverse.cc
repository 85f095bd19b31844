#include <algorithm>

#include "layout/by_stride.h"
#include "layout/layout.h"

namespace meshplan {

Result<Layout> left_inverse(const Layout& layout) {
  const std::vector<WeightedMode> sorted = modes_by_stride(layout);
  std::vector<Mode> inverse;
  // offsets outside of the layout
  if (!sorted.empty() && sorted.front().mode.stride > 1)
    inverse.push_back({sorted.front().mode.stride, 1});
  for (size_t i = 0; i < sorted.size(); ++i) {
    // steps of this stride before the next mode begins; steps past the size are outside of the
    // layout
    int64_t room = sorted[i].mode.size;
    if (i + 1 < sorted.size()) {
      const int64_t next = sorted[i + 1].mode.stride;
      if (next % sorted[i].mode.stride != 0 || next / sorted[i].mode.stride < room) {
        return bad_input("the layout " + to_text(layout) + " has no left inverse: " +
                         (is_injective(layout)
                              ? "stride " + std::to_string(sorted[i].mode.stride) +
                                    " does not divide stride " + std::to_string(next)
                              : std::string("it reaches an offset twice")));
      }
      room = next / sorted[i].mode.stride;
    }
    inverse.push_back({room, sorted[i].weight});
  }
  std::reverse(inverse.begin(), inverse.end());
  auto checked = make_layout(std::move(inverse));
  if (!checked)
    return bad_input("the layout " + to_text(layout) +
                     " has no left inverse: " + checked.error().message);
  return coalesce(*checked);
}

Result<Layout> right_inverse(const Layout& layout) {
  if (!is_injective(layout))
    return bad_input("the layout " + to_text(layout) +
                     " has no right inverse: it reaches an offset twice");
  int64_t run = 1;  // offsets 0..run-1 are reached by the modes so far
  Layout inverse;
  for (const auto& [mode, weight] : modes_by_stride(layout)) {
    if (mode.stride != run) break;
    inverse.modes.insert(inverse.modes.begin(), {mode.size, weight});
    run *= mode.size;
  }
  return coalesce(inverse);
}

}  // namespace meshplan
