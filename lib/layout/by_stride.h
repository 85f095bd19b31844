// The modes of a layout sorted by stride, as complement, the inverses and the overlap test need
// them.
#pragma once

#include <vector>

#include "layout/layout.h"

namespace meshplan {

struct WeightedMode {
  Mode mode;
  // added to the index by one step of this mode: product of the sizes to its right
  int64_t weight = 1;
};

// Modes of size > 1, finest stride first.
[[nodiscard]] std::vector<WeightedMode> modes_by_stride(const Layout& layout);

}  // namespace meshplan
