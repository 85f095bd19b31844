// How much more may be looked at: what would take longer is refused, not begun.
#pragma once

#include <cstdint>

namespace meshplan::verification {

struct WorkLeft {
  int64_t left = 0;
  // Counts down; false where it is used up.
  [[nodiscard]] bool take(int64_t units) {
    left = units > left ? -1 : left - units;
    return left >= 0;
  }
  [[nodiscard]] bool used_up() const { return left < 0; }
};

}  // namespace meshplan::verification
