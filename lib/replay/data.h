// Test data whose correct result is known for every element.
//
// The source values of all ranks come from one table: contribution k of tensor element i (its
// row-major number in the whole tensor) is
//     table[(i + offset_k + shift) mod period]
// and the correct result, the reduction over all k, is answer[(i + shift) mod period]. So filling
// and checking are copies and comparisons of whole runs, and no element is ever computed twice.
// `shift` differs per redistribution, copy of the mesh and repetition.
//
// exact: integers in the dtype, bounded so that every order of summation is exact, mixed signs,
// products never 0. If the dtype has too few
//   integers for all contributions (bfloat16: up to 256), only `live` of them per element, chosen
//   by its number, are not neutral.
//   Values to average are multiples of the divisors.
// random: arbitrary values (floats in -1..1, integers whose results do not wrap); the result is
//   also computed in float64 as reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/box.h"
#include "tensor/dtype.h"
#include "tensor/placement.h"

namespace meshplan {

enum class DataKind : uint8_t { exact, random };

struct DataQuestion {
  DType dtype = DType::float32;
  DType reduce_dtype = DType::float32;  // dtype of reductions
  DataKind kind = DataKind::exact;
  ReduceOp op = ReduceOp::sum;  // how contributions combine; sum if sum and avg are mixed
  int64_t contributions = 1;    // number of ranks with different contributions
  int64_t divisor = 1;          // product of the sizes of the averaged mesh dims
  // factor by which a step may multiply the result before dividing (average of equal values)
  int64_t growth = 1;
  uint64_t seed = 0;
  bool operator==(const DataQuestion&) const = default;
  auto operator<=>(const DataQuestion&) const = default;
};

class DataTable {
 public:
  explicit DataTable(const DataQuestion& question);

  [[nodiscard]] const DataQuestion& question() const { return question_; }
  [[nodiscard]] int64_t period() const { return period_; }
  // Number of contributions per element that are not neutral.
  [[nodiscard]] int64_t live() const { return live_; }
  // All values are zero, because sums of multiples of the divisor would overflow the dtype.
  [[nodiscard]] bool all_zero() const { return all_zero_; }
  // A shift for this copy and repetition; valid for every number.
  [[nodiscard]] int64_t shift_for(uint64_t salt) const;

  // Position in the table of contribution `k` of element number 0.
  [[nodiscard]] int64_t source_start(int64_t k, int64_t shift) const;
  [[nodiscard]] const std::byte* source() const { return source_.data(); }  // `period` elements
  // `period` elements, from position `shift`
  [[nodiscard]] const std::byte* answer() const { return answer_.data(); }
  // random only: the answer in float64
  [[nodiscard]] const std::vector<double>& oracle() const { return oracle_; }
  [[nodiscard]] double largest() const { return largest_; }  // magnitude of those

 private:
  DataQuestion question_;
  int64_t period_ = 1;
  int64_t live_ = 1;
  bool all_zero_ = false;
  std::vector<int64_t> offsets_;  // one a contribution
  std::vector<std::byte> source_;
  std::vector<std::byte> answer_;
  std::vector<double> oracle_;
  double largest_ = 0;
};

// Writes element i of `table`, at position (start + i) mod period, for every element i of `box` of
// a tensor of this shape; row-major.
void fill_box(std::byte* to, const Box& box, std::span<const int64_t> shape, const std::byte* table,
              int64_t period, int64_t start, int64_t element_size);

// Counts elements of a buffer that differ from the table.
struct Comparison {
  int64_t wrong = 0;
  std::vector<int64_t> first;  // element numbers within the box, at most `keep`
};
[[nodiscard]] Comparison compare_box(const std::byte* found, const Box& box,
                                     std::span<const int64_t> shape, const std::byte* table,
                                     int64_t period, int64_t start, int64_t element_size,
                                     size_t keep);

// The largest errors of a buffer against the float64 result, and the elements with an error above
// `tolerance`, which no order of summation explains.
struct ErrorMeasure {
  double ulp = 0;  // of the element's own magnitude
  // To the largest magnitude of all results: to its own one an element's is without bound, as a sum
  // may cancel to 0.
  double relative = 0;
  Comparison beyond;
};
[[nodiscard]] ErrorMeasure measure_error(const std::byte* found, const Box& box,
                                         std::span<const int64_t> shape, const DataTable& table,
                                         int64_t start, size_t keep);
// A 64-bit hash of two numbers (splitmix64).
[[nodiscard]] uint64_t mix(uint64_t a, uint64_t b);

}  // namespace meshplan
