#include <algorithm>

#include "layout/by_stride.h"
#include "layout/layout.h"

namespace meshplan {

// Shifted copies of a set tile an interval from 0 only like mixed-radix digits: sorted by stride,
// each stride is a multiple of the span of the finer modes and the copies between them. So every
// layout that has a complement is accepted.
Result<Layout> complement(const Layout& layout, int64_t world) {
  if (world < 1)
    return bad_input("the complement of " + to_text(layout) + " in a world of " +
                     std::to_string(world) + " does not exist");
  int64_t span = 1;
  Layout copies;
  for (const auto& [mode, weight] : modes_by_stride(layout)) {
    if (mode.stride % span != 0) {
      const bool overlaps = !is_injective(layout);
      return bad_input("the copies of " + to_text(layout) + " cannot tile a world: " +
                       (overlaps ? "it reaches an offset twice"
                                 : "stride " + std::to_string(mode.stride) +
                                       " is not a multiple of the " + std::to_string(span) +
                                       " offsets below it"));
    }
    if (mode.stride > span) copies.modes.push_back({mode.stride / span, span});
    if (mode.size > world / mode.stride) {
      return bad_input("the layout " + to_text(layout) + " reaches offset " +
                       std::to_string(cosize(layout) - 1) + ", beyond its world of " +
                       std::to_string(world));
    }
    span = mode.size * mode.stride;
  }
  if (world % span != 0) {
    return bad_input("the copies of " + to_text(layout) + " fill multiples of " +
                     std::to_string(span) + " offsets; the world has " + std::to_string(world));
  }
  if (world > span) copies.modes.push_back({world / span, span});
  std::reverse(copies.modes.begin(), copies.modes.end());
  return coalesce(copies);
}

}  // namespace meshplan
