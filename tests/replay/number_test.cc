#include "replay/number.h"

#include <doctest/doctest.h>

#include "replay/all_dtypes.h"
#include "replay/arithmetic.h"

using namespace meshplan;

namespace {

template <class Codec>
void check_round_trip(uint32_t codes) {
  for (uint32_t code = 0; code < codes; ++code) {
    const auto stored = static_cast<typename Codec::Storage>(code);
    const float value = Codec::wide(stored);
    if (std::isnan(value)) {
      CHECK(std::isnan(Codec::wide(Codec::narrow(value))));
    } else {
      CHECK(Codec::narrow(value) == stored);
    }
  }
}

// Between two neighbours everything rounds to the nearer one, and the middle to the even code.
template <class Codec>
void check_rounding(uint32_t largest) {
  for (uint32_t code = 0; code < largest; ++code) {
    const float low = Codec::wide(static_cast<typename Codec::Storage>(code));
    const float high = Codec::wide(static_cast<typename Codec::Storage>(code + 1));
    const float middle = low + (high - low) / 2;
    CHECK(Codec::narrow(middle) == (code % 2 == 0 ? code : code + 1));
    CHECK(Codec::narrow(std::nextafter(middle, low)) == code);
    CHECK(Codec::narrow(std::nextafter(middle, high)) == code + 1);
  }
}

}  // namespace

TEST_CASE("every code of the small floats survives the way to float and back") {
  check_round_trip<BFloat16>(1U << 16U);
  check_round_trip<Float16>(1U << 16U);
  check_round_trip<Float8E4M3>(1U << 8U);
  check_round_trip<Float8E5M2>(1U << 8U);
}

TEST_CASE("small floats round to nearest, ties to even") {
  check_rounding<Float16>(0x7bff);
  check_rounding<BFloat16>(0x7f7f);
  check_rounding<Float8E4M3>(0x7e);
  check_rounding<Float8E5M2>(0x7b);
}

TEST_CASE("known codes") {
  CHECK(Float16::narrow(1.0F) == 0x3c00);
  CHECK(Float16::narrow(65504.0F) == 0x7bff);
  CHECK(Float16::narrow(65520.0F) == 0x7c00);
  CHECK(Float16::narrow(-0.0F) == 0x8000);
  CHECK(Float8E4M3::narrow(448.0F) == 0x7e);
  CHECK(Float8E4M3::narrow(1.0F) == 0x38);
  CHECK(Float8E4M3::narrow(1000.0F) == 0x7f);
  CHECK(Float8E5M2::narrow(57344.0F) == 0x7b);
  CHECK(Float8E5M2::narrow(1e9F) == 0x7c);
  CHECK(BFloat16::narrow(1.0F) == 0x3f80);
}

TEST_CASE("all integers up to the exact limit are values and the next is not, in floats") {
  for (DType dtype : test::all_dtypes) {
    CAPTURE(to_text(dtype));
    const int64_t limit = exact_limit(dtype);
    for (int64_t n : {int64_t{0}, int64_t{1}, limit / 2, limit - 1, limit}) {
      std::byte element[8];
      store_number(dtype, element, static_cast<double>(n));
      CHECK(load_number(dtype, element) == static_cast<double>(n));
    }
    if (is_floating(dtype) && dtype != DType::float64) {
      std::byte element[8];
      store_number(dtype, element, static_cast<double>(limit + 1));
      CHECK(load_number(dtype, element) != static_cast<double>(limit + 1));
      CHECK(ulp_at(dtype, static_cast<double>(limit)) == 2);
      CHECK(ulp_at(dtype, static_cast<double>(limit - 1)) == 1);
    }
  }
}

TEST_CASE("combining, dividing and casting agree with arithmetic on numbers") {
  for (DType dtype : test::all_dtypes) {
    CAPTURE(to_text(dtype));
    const int64_t size = element_bytes(dtype);
    std::vector<std::byte> a(static_cast<size_t>(3 * size));
    std::vector<std::byte> b(a.size());
    const double left[] = {1, 0, 1};
    const double right[] = {1, 1, 0};
    for (int i = 0; i < 3; ++i) {
      store_number(dtype, a.data() + i * size, left[i]);
      store_number(dtype, b.data() + i * size, right[i]);
    }
    for (ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::max, ReduceOp::product}) {
      std::vector<std::byte> into = a;
      combine(dtype, op, into.data(), b.data(), 3);
      for (int i = 0; i < 3; ++i) {
        double want = left[i] + right[i];
        if (op == ReduceOp::min) want = std::min(left[i], right[i]);
        if (op == ReduceOp::max) want = std::max(left[i], right[i]);
        if (op == ReduceOp::product) want = left[i] * right[i];
        if (dtype == DType::boolean) want = std::min(want, 1.0);
        CHECK(load_number(dtype, into.data() + i * size) == want);
      }
      // The identity changes nothing.
      std::vector<std::byte> same = a;
      std::vector<std::byte> identity(a.size());
      fill_identity(dtype, op, identity.data(), 3);
      combine(dtype, op, same.data(), identity.data(), 3);
      CHECK(same == a);
    }
  }
  std::byte four[8];
  store_number(DType::bfloat16, four, 4);
  divide_by(DType::bfloat16, four, 1, 8);
  CHECK(load_number(DType::bfloat16, four) == 0.5);
  std::byte cast[8];
  cast_elements(DType::bfloat16, four, DType::float32, cast, 1);
  CHECK(load_number(DType::float32, cast) == 0.5);
  CHECK(element_text(DType::float32, cast) == "0.5");
  store_number(DType::int64, cast, -12);
  CHECK(element_text(DType::int64, cast) == "-12");
}
