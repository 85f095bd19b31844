#include "replay/data.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "replay/all_dtypes.h"
#include "replay/arithmetic.h"
#include "replay/number.h"

using namespace meshplan;

namespace {

const std::vector<ReduceOp> all_ops{ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::max, ReduceOp::product};

// The reduction of element `i` in the dtype's own arithmetic, contributions in the order given.
std::vector<std::byte> reduce_one(const DataTable& table, int64_t i, int64_t shift, const std::vector<int64_t>& order) {
  const DataQuestion& q = table.question();
  const int64_t size = element_bytes(q.dtype);
  std::vector<std::byte> total(static_cast<size_t>(size));
  for (size_t n = 0; n < order.size(); ++n) {
    const std::byte* value = table.source() + (table.source_start(order[n], shift) + i) % table.period() * size;
    if (n == 0) {
      std::copy(value, value + size, total.begin());
    } else {
      combine(q.dtype, q.op, total.data(), value, 1);
    }
  }
  divide_by(q.dtype, total.data(), 1, q.divisor);
  return total;
}

}  // namespace

TEST_CASE("exact data reduces to the answer in any order, in every dtype and under every op") {
  for (DType dtype : test::all_dtypes) {
    for (ReduceOp op : all_ops) {
      for (int64_t contributions : {1, 2, 3, 6, 8, 24, 64}) {
        DataQuestion q;
        q.dtype = dtype;
        q.reduce_dtype = dtype;
        q.op = op;
        q.contributions = contributions;
        q.divisor = op == ReduceOp::avg ? contributions : 1;
        const DataTable table(q);
        CAPTURE(to_text(dtype));
        CAPTURE(to_text(op));
        CAPTURE(contributions);
        std::vector<int64_t> order(static_cast<size_t>(contributions));
        for (size_t k = 0; k < order.size(); ++k) order[k] = static_cast<int64_t>(k);
        std::vector<int64_t> backwards(order.rbegin(), order.rend());
        std::vector<int64_t> interleaved;
        for (size_t k = 0; k < order.size(); ++k)
          interleaved.push_back(static_cast<int64_t>(k % 2 == 0 ? k / 2 : order.size() - 1 - k / 2));
        const int64_t shift = table.shift_for(7);
        const int64_t size = element_bytes(dtype);
        int wrong = 0;
        for (int64_t i = 0; i < 500; ++i) {
          const std::byte* answer = table.answer() + (shift + i) % table.period() * size;
          for (const auto& o : {order, backwards, interleaved}) {
            const auto total = reduce_one(table, i, shift, o);
            if (!std::equal(total.begin(), total.end(), answer)) ++wrong;
          }
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("exact products are never 0 and no exact value is a negative zero") {
  for (DType dtype : test::all_dtypes) {
    if (dtype == DType::boolean) continue;
    for (ReduceOp op : all_ops) {
      DataQuestion q;
      q.dtype = dtype;
      q.reduce_dtype = dtype;
      q.op = op;
      q.contributions = 8;
      const DataTable table(q);
      for (int64_t p = 0; p < table.period(); ++p) {
        const double answer = load_number(dtype, table.answer() + p * element_bytes(dtype));
        if (op == ReduceOp::product) CHECK(answer != 0);
        CHECK_FALSE((answer == 0 && std::signbit(answer)));
      }
    }
  }
}

TEST_CASE("every contribution matters: leaving one out changes many answers") {
  for (DType dtype : {DType::float32, DType::bfloat16, DType::float8_e5m2, DType::int8}) {
    DataQuestion q;
    q.dtype = dtype;
    q.reduce_dtype = dtype;
    q.contributions = 8;
    const DataTable table(q);
    for (int64_t out = 0; out < 8; ++out) {
      std::vector<int64_t> others;
      for (int64_t k = 0; k < 8; ++k) {
        if (k != out) others.push_back(k);
      }
      int changed = 0;
      for (int64_t i = 0; i < 800; ++i) {
        const auto total = reduce_one(table, i, 0, others);
        if (!std::equal(total.begin(), total.end(), table.answer() + i % table.period() * element_bytes(dtype))) ++changed;
      }
      CHECK(changed >= 800 * table.live() / 8 - 8);
    }
  }
}

TEST_CASE("neighbours, repetitions and ranks hold different values") {
  DataQuestion q;
  q.contributions = 4;
  const DataTable table(q);
  const auto value = [&](int64_t k, int64_t i, int64_t shift) {
    return load_number(q.dtype, table.source() + (table.source_start(k, shift) + i) % table.period() * 4);
  };
  int same_rank = 0;
  int same_index = 0;
  int same_turn = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    same_index += value(0, i, 0) == value(0, i + 1, 0);
    same_rank += value(0, i, 0) == value(1, i, 0);
    same_turn += value(0, i, table.shift_for(1)) == value(0, i, table.shift_for(2));
  }
  CHECK(same_index < 5);
  CHECK(same_rank < 5);
  CHECK(same_turn < 5);
  CHECK(table.shift_for(1) % 4 == 0);
}

TEST_CASE("what fill writes compare accepts, and every changed element is found") {
  const std::vector<int64_t> shape{5, 7, 300};
  const Box box{{1, 4}, {2, 7}, {10, 290}};
  for (DType dtype : test::all_dtypes) {
    DataQuestion q;
    q.dtype = dtype;
    q.reduce_dtype = dtype;
    const DataTable table(q);
    const int64_t size = element_bytes(dtype);
    std::vector<std::byte> data(static_cast<size_t>(volume(box) * size));
    fill_box(data.data(), box, shape, table.answer(), table.period(), 99, size);
    CHECK(compare_box(data.data(), box, shape, table.answer(), table.period(), 99, size, 4).wrong == 0);
    CHECK(compare_box(data.data(), box, shape, table.answer(), table.period(), 100, size, 4).wrong > volume(box) / 4);
    for (int64_t at : {int64_t{0}, int64_t{1234}, volume(box) - 1}) data[static_cast<size_t>(at * size)] ^= std::byte{1};
    const Comparison found = compare_box(data.data(), box, shape, table.answer(), table.period(), 99, size, 2);
    CHECK(found.wrong == 3);
    CHECK(found.first == std::vector<int64_t>{0, 1234});
  }
}

TEST_CASE("random data stays within the tolerance of any order") {
  for (DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16, DType::float8_e4m3}) {
    DataQuestion q;
    q.dtype = dtype;
    q.reduce_dtype = dtype;
    q.kind = DataKind::random;
    q.contributions = 8;
    const DataTable table(q);
    const std::vector<int64_t> shape{400};
    const Box box{{0, 400}};
    std::vector<std::byte> data;
    for (int64_t i = 0; i < 400; ++i) {
      const auto one = reduce_one(table, i, 0, {7, 3, 5, 1, 0, 2, 4, 6});
      data.insert(data.end(), one.begin(), one.end());
    }
    const ErrorMeasure error = measure_error(data.data(), box, shape, table, 0, 4);
    CHECK(error.beyond.wrong == 0);
    CHECK(error.ulp > 0);
    CHECK(error.relative > 0);
    CHECK(error.relative < 0.5);
    if (dtype != DType::float64) {
      // One contribution missing is further off than any order explains, in most places, for dtypes fine enough.
      std::vector<std::byte> lacking;
      for (int64_t i = 0; i < 400; ++i) {
        const auto one = reduce_one(table, i, 0, {7, 3, 5, 1, 0, 2, 4});
        lacking.insert(lacking.end(), one.begin(), one.end());
      }
      if (dtype == DType::float32) CHECK(measure_error(lacking.data(), box, shape, table, 0, 4).beyond.wrong > 380);
    }
  }
}

TEST_CASE("random integers are such that sums and products of all contributions do not wrap") {
  for (const DType dtype : {DType::int8, DType::uint8, DType::int16, DType::int32, DType::int64}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::max}) {
      for (const int64_t contributions : {2, 7, 48, 600}) {
        CAPTURE(to_text(dtype));
        CAPTURE(to_text(op));
        CAPTURE(contributions);
        DataQuestion q;
        q.dtype = q.reduce_dtype = dtype;
        q.kind = DataKind::random;
        q.op = op;
        q.contributions = contributions;
        const DataTable table(q);
        const int64_t extent = 300;
        const std::vector<int64_t> shape{extent};
        std::vector<int64_t> order(static_cast<size_t>(contributions));
        std::iota(order.begin(), order.end(), int64_t{0});
        std::vector<std::byte> data;
        for (int64_t i = 0; i < extent; ++i) {
          const auto one = reduce_one(table, i, 0, order);
          data.insert(data.end(), one.begin(), one.end());
        }
        CHECK(measure_error(data.data(), {{0, extent}}, shape, table, 0, 4).beyond.wrong == 0);
        CHECK(std::set<double>(table.oracle().begin(), table.oracle().end()).size() > 1);
      }
    }
  }
}

TEST_CASE("an error where 0 is expected is told by the largest of all results") {
  DataQuestion q;
  q.kind = DataKind::random;
  q.contributions = 2;
  q.dtype = q.reduce_dtype = DType::float8_e4m3;  // so coarse that sums of two cancel
  const DataTable table(q);
  int64_t zero = 0;
  while (table.oracle()[zero] != 0) ++zero;
  const int64_t extent = zero + 1;
  const std::vector<int64_t> shape{extent};
  std::vector<std::byte> data(table.answer(), table.answer() + extent);
  const double off = 0.25;
  store_number(q.dtype, data.data() + zero, off);
  const ErrorMeasure error = measure_error(data.data(), {{0, extent}}, shape, table, 0, 4);
  CHECK(table.largest() > 0.5);
  CHECK(error.relative >= off / table.largest());
  CHECK(error.relative <= 1);
}

TEST_CASE("a dtype too narrow for an average says so") {
  DataQuestion q;
  q.dtype = DType::int8;
  q.reduce_dtype = DType::int8;
  q.op = ReduceOp::avg;
  q.contributions = 128;
  q.divisor = 128;
  CHECK(DataTable(q).all_zero());
  q.contributions = q.divisor = 8;
  CHECK_FALSE(DataTable(q).all_zero());
}
