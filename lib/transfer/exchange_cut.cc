#include "transfer/exchange_cut.h"

#include <algorithm>

#include "base/check.h"

namespace meshplan {

Box even_part(const Box& box, int64_t parts, int64_t index) {
  Box part = box;
  if (box.empty()) {
    MESHPLAN_CHECK(index == 0, "a scalar is one slice: there is no part but the first");
    return part;
  }
  size_t longest = 0;
  for (size_t d = 1; d < box.size(); ++d) {
    if (width(box[d]) > width(box[longest])) longest = d;
  }
  const int64_t w = width(box[longest]);
  const int64_t lo = box[longest].lo + index * (w / parts) + std::min(index, w % parts);
  part[longest] = {lo, lo + near_equal(w, parts, index)};
  return part;
}

}  // namespace meshplan
