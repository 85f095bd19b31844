// Elements of every dtype as numbers: stored form, working form, and the range of exact integers.
//
//     stored                                  works in
//     float64                                 double
//     float32, bfloat16, float16, float8_*    float
//     int*, uint8                             itself, wrapping
//     bool                                    or / and
//
// Law: narrow<D>(wide<D>(bits)) == bits for every stored value except NaN; narrow rounds to
// nearest, ties to even.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "tensor/dtype.h"

namespace meshplan {

// A float with `exponent` and `mantissa` bits in the low bits of Storage; `finite`: values with
// all-ones exponent are numbers, except one NaN (e4m3).
template <class StorageT, int exponent_bits, int mantissa_bits, bool finite_only>
struct SmallFloat {
  using Storage = StorageT;
  using Wide = float;
  static constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  static constexpr uint32_t exponent_mask = (1U << exponent_bits) - 1;
  static constexpr uint32_t mantissa_mask = (1U << mantissa_bits) - 1;
  // first code past the finite ones unless finite_only
  static constexpr uint32_t infinity = exponent_mask << mantissa_bits;
  // e4m3: the only NaN
  static constexpr uint32_t nan_code = infinity | mantissa_mask;
  // largest finite magnitude
  static constexpr uint32_t largest = finite_only ? nan_code - 1 : infinity - 1;

  static float wide(Storage stored) {
    const uint32_t bits = stored;
    const uint32_t exponent = (bits >> mantissa_bits) & exponent_mask;
    const uint32_t mantissa = bits & mantissa_mask;
    const float sign = (bits >> (exponent_bits + mantissa_bits)) != 0 ? -1.0F : 1.0F;
    if (exponent == exponent_mask && (!finite_only || mantissa == mantissa_mask)) {
      if (!finite_only && mantissa == 0) return sign * std::numeric_limits<float>::infinity();
      return std::numeric_limits<float>::quiet_NaN();
    }
    if (exponent == 0)
      return sign * std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits);
    // Same significand in float, with the exponent rebased.
    return sign * std::bit_cast<float>(((exponent + 127 - bias) << 23) |
                                       (mantissa << (23 - mantissa_bits)));
  }

  static Storage narrow(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (bits >> 31) << (exponent_bits + mantissa_bits);
    const uint32_t magnitude = bits & 0x7fffffffU;
    if (magnitude > 0x7f800000U) return static_cast<Storage>(sign | nan_code);
    if (magnitude == 0x7f800000U)
      return static_cast<Storage>(sign | (finite_only ? nan_code : infinity));
    const int32_t exponent = static_cast<int32_t>(magnitude >> 23) - 127 + bias;
    uint32_t code = 0;
    if (exponent >= 1) {
      const uint32_t all =
          ((magnitude & 0x7fffffU) | 0x800000U) + ((static_cast<uint32_t>(exponent - 1)) << 23);
      constexpr int drop = 23 - mantissa_bits;
      code = (all + ((1U << (drop - 1)) - 1) + ((all >> drop) & 1U)) >> drop;
    } else {
      // Below the smallest normal: the value in units of the smallest subnormal, rounded to nearest
      // even.
      code = static_cast<uint32_t>(
          std::nearbyint(std::ldexp(std::bit_cast<float>(magnitude), bias - 1 + mantissa_bits)));
    }
    if (code > largest) code = finite_only ? nan_code : infinity;
    return static_cast<Storage>(sign | code);
  }
};

struct BFloat16 {  // the upper half of a float: converted without branches, so that loops vectorize
  using Storage = uint16_t;
  using Wide = float;
  static float wide(Storage stored) {
    return std::bit_cast<float>(static_cast<uint32_t>(stored) << 16);
  }
  static Storage narrow(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    return static_cast<Storage>((bits & 0x7fffffffU) > 0x7f800000U ? (bits >> 16) | 0x40U
                                                                   : rounded);
  }
};
using Float16 = SmallFloat<uint16_t, 5, 10, false>;
using Float8E4M3 = SmallFloat<uint8_t, 4, 3, true>;
using Float8E5M2 = SmallFloat<uint8_t, 5, 2, false>;

template <class T>
struct Native {
  using Storage = T;
  using Wide = T;
  static T wide(T stored) { return stored; }
  static T narrow(T value) { return value; }
};
struct Boolean {
  using Storage = uint8_t;
  using Wide = uint8_t;
  static uint8_t wide(uint8_t stored) { return stored; }
  static uint8_t narrow(uint8_t value) { return value; }
};

// Calls `visit` with a value of the codec of `dtype`.
template <class Visitor>
decltype(auto) visit_dtype(DType dtype, Visitor&& visit) {
  switch (dtype) {
    case DType::float64:
      return visit(Native<double>{});
    case DType::float32:
      return visit(Native<float>{});
    case DType::bfloat16:
      return visit(BFloat16{});
    case DType::float16:
      return visit(Float16{});
    case DType::float8_e4m3:
      return visit(Float8E4M3{});
    case DType::float8_e5m2:
      return visit(Float8E5M2{});
    case DType::int64:
      return visit(Native<int64_t>{});
    case DType::int32:
      return visit(Native<int32_t>{});
    case DType::int16:
      return visit(Native<int16_t>{});
    case DType::int8:
      return visit(Native<int8_t>{});
    case DType::uint8:
      return visit(Native<uint8_t>{});
    case DType::boolean:
      break;
  }
  return visit(Boolean{});
}

// The largest n such that every integer of 0..n is a value of the dtype (int64: limited to the
// exact range of double). bool: 1.
[[nodiscard]] int64_t exact_limit(DType dtype);
// The largest finite value (int64: 2^53).
[[nodiscard]] double largest_value(DType dtype);
[[nodiscard]] bool is_signed(DType dtype);

// Loads one stored element as a double, and stores one (rounded to nearest; integers truncate
// towards zero).
[[nodiscard]] double load_number(DType dtype, const std::byte* element);
void store_number(DType dtype, std::byte* element, double value);
// "3", "-0.5", "nan": for messages.
[[nodiscard]] std::string element_text(DType dtype, const std::byte* element);
// The distance between neighbouring values of a float dtype at `value`; 1 for the others.
[[nodiscard]] double ulp_at(DType dtype, double value);

}  // namespace meshplan
