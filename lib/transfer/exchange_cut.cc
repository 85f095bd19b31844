#include "transfer/exchange_cut.h"

#include "base/check.h"

namespace meshplan {

Fetchers fetchers_of(const Step& step) {
  if (!step.fetched_by_all) return step.laps > 1 ? Fetchers::wanting_in_laps : Fetchers::wanting;
  return step.laps > 1 ? Fetchers::all_in_laps : Fetchers::all;
}
void set_fetchers(Fetchers fetchers, Step& step) {
  step.fetched_by_all = all_fetch(fetchers);
  step.laps = laps_of(fetchers);
}

Box even_part(const Box& box, int64_t parts, int64_t index) {
  if (box.empty()) {
    MESHPLAN_CHECK(index == 0, "a scalar is one slice: there is no part but the first");
    return box;
  }
  size_t longest = 0;
  for (size_t d = 1; d < box.size(); ++d) {
    if (width(box[d]) > width(box[longest])) longest = d;
  }
  return part_along(box, static_cast<int>(longest), parts, index);
}

Box part_along(Box box, int dim, int64_t parts, int64_t index) {
  Interval& side = box[static_cast<size_t>(dim)];
  const int64_t w = width(side);
  const int64_t lo = side.lo + near_equal_begin(w, parts, index);
  side = {lo, lo + near_equal(w, parts, index)};
  return box;
}

Box slices_of(Box box, int dim, int64_t first, int64_t slices) {
  if (box.empty()) return box;
  Interval& side = box[static_cast<size_t>(dim)];
  side = {side.lo + first, side.lo + first + slices};
  return box;
}

}  // namespace meshplan
