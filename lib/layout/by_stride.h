// The modes of a layout in the order of the offsets they reach: what complement, inverses and the overlap test walk along.
#pragma once

#include <vector>

#include "layout/layout.h"

namespace meshplan {

struct PlacedMode {
  Mode mode;
  int64_t weight = 1;  // what one step of this mode adds to the index: the product of the sizes to its right
};

// Modes of size > 1, finest stride first.
[[nodiscard]] std::vector<PlacedMode> modes_by_stride(const Layout& layout);

}  // namespace meshplan
