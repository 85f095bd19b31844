// Integer arithmetic with overflow checks. Sizes, ranks and strides are int64_t everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace meshplan {

__extension__ using int128 = __int128;  // intermediate products of bytes and picoseconds

[[nodiscard]] inline std::optional<int64_t> checked_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

[[nodiscard]] inline std::optional<int64_t> checked_mul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// Product of all values; 1 for none; nullopt on overflow.
[[nodiscard]] std::optional<int64_t> checked_product(std::span<const int64_t> values);

// The value, held at INT64_MAX.
[[nodiscard]] constexpr int64_t saturated(int128 value) {
  return value > INT64_MAX ? INT64_MAX : static_cast<int64_t>(value);
}

// floor(a / b) for a >= 0, b > 0, for inner loops: processors divide doubles several times as fast
// as 64-bit integers. Integers below 2^53 are doubles; their rounded quotient reaches floor(a / b)
// always, as that is a double too, and passes it by one at most.
[[nodiscard]] constexpr int64_t floor_div(int64_t a, int64_t b) {
  if ((a | b) >> 53 != 0) return a / b;
  const auto quotient = static_cast<int64_t>(static_cast<double>(a) / static_cast<double>(b));
  return quotient - (quotient * b > a ? 1 : 0);
}

// a modulo b for a >= 0, b > 0.
[[nodiscard]] constexpr int64_t floor_mod(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }

// ceil(a / b) for a >= 0, b > 0.
[[nodiscard]] constexpr int64_t ceil_div(int64_t a, int64_t b) {
  const int64_t floor = floor_div(a, b);
  return floor + (floor * b != a ? 1 : 0);
}

// The sum or product clamped to the range of int64 instead of overflowing. For costs and totals,
// where only "too large" matters then.
[[nodiscard]] constexpr int64_t saturating_add(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}
[[nodiscard]] constexpr int64_t saturating_mul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
}

}  // namespace meshplan
