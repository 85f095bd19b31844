#include "base/int_math.h"

namespace meshplan {

std::optional<int64_t> checked_product(std::span<const int64_t> values) {
  int64_t product = 1;
  for (int64_t value : values) {
    if (__builtin_mul_overflow(product, value, &product)) return std::nullopt;
  }
  return product;
}

}  // namespace meshplan
