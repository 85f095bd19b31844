#include "base/int_math.h"

#include <limits>

namespace meshplan {

std::optional<int64_t> checked_product(std::span<const int64_t> values) {
  int64_t product = 1;
  for (int64_t value : values) {
    if (__builtin_mul_overflow(product, value, &product)) return std::nullopt;
  }
  return product;
}

int64_t saturating_add(int64_t a, int64_t b) {
  if (auto sum = checked_add(a, b)) return *sum;
  return a < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

int64_t saturating_mul(int64_t a, int64_t b) {
  if (auto product = checked_mul(a, b)) return *product;
  return (a < 0) != (b < 0) ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

}  // namespace meshplan
