#include "replay/number.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace meshplan {
namespace {

// Significand bits including the hidden bit; 0 for dtypes that are not floats.
int significand_bits(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return 53;
    case DType::float32:
      return 24;
    case DType::bfloat16:
      return 8;
    case DType::float16:
      return 11;
    case DType::float8_e4m3:
      return 4;
    case DType::float8_e5m2:
      return 3;
    default:
      return 0;
  }
}

int smallest_exponent(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return -1022;
    case DType::float16:
      return -14;
    case DType::float8_e4m3:
      return -6;
    case DType::float8_e5m2:
      return -14;
    default:
      return -126;
  }
}

}  // namespace

int64_t exact_limit(DType dtype) {
  switch (dtype) {
    case DType::int64:
      return int64_t{1} << 53;
    case DType::int32:
      return std::numeric_limits<int32_t>::max();
    case DType::int16:
      return std::numeric_limits<int16_t>::max();
    case DType::int8:
      return std::numeric_limits<int8_t>::max();
    case DType::uint8:
      return std::numeric_limits<uint8_t>::max();
    case DType::boolean:
      return 1;
    default:
      return int64_t{1} << significand_bits(dtype);
  }
}

double largest_value(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return std::numeric_limits<double>::max();
    case DType::float32:
      return static_cast<double>(std::numeric_limits<float>::max());
    case DType::bfloat16:
      return static_cast<double>(BFloat16::wide(0x7f7f));
    case DType::float16:
      return 65504;
    case DType::float8_e4m3:
      return 448;
    case DType::float8_e5m2:
      return 57344;
    default:
      return static_cast<double>(exact_limit(dtype));
  }
}

bool is_signed(DType dtype) { return dtype != DType::uint8 && dtype != DType::boolean; }

double load_number(DType dtype, const std::byte* element) {
  return visit_dtype(dtype, [&](auto codec) {
    using Codec = decltype(codec);
    typename Codec::Storage stored{};
    std::memcpy(&stored, element, sizeof(stored));
    return static_cast<double>(Codec::wide(stored));
  });
}

void store_number(DType dtype, std::byte* element, double value) {
  visit_dtype(dtype, [&](auto codec) {
    using Codec = decltype(codec);
    const typename Codec::Storage stored = Codec::narrow(static_cast<typename Codec::Wide>(value));
    std::memcpy(element, &stored, sizeof(stored));
  });
}

std::string element_text(DType dtype, const std::byte* element) {
  char text[40];
  if (dtype == DType::int64) {
    int64_t value = 0;
    std::memcpy(&value, element, sizeof(value));
    return std::to_string(value);
  }
  std::snprintf(text, sizeof(text), "%.17g", load_number(dtype, element));
  // The shortest text that parses to the same number.
  const double value = load_number(dtype, element);
  for (int digits = 1; digits < 17; ++digits) {
    char shorter[40];
    std::snprintf(shorter, sizeof(shorter), "%.*g", digits, value);
    if (std::strtod(shorter, nullptr) == value) return shorter;
  }
  return text;
}

double ulp_at(DType dtype, double value) {
  const int bits = significand_bits(dtype);
  if (bits == 0) return 1;
  int exponent = smallest_exponent(dtype);
  if (value != 0 && std::isfinite(value)) exponent = std::max(exponent, std::ilogb(value));
  return std::ldexp(1.0, exponent - bits + 1);
}

}  // namespace meshplan
