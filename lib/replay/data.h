// Data whose right answer is known, element by element.
//
// Every rank's source values come from one table: contribution k of tensor element i (its row-major number in the whole tensor) is
//     table[(i + offset_k + shift) mod period]
// and the right answer, the reduction over all k, is answer[(i + shift) mod period]. So filling and checking are copies and comparisons of
// whole runs, and no element is ever computed twice. `shift` differs per redistribution, copy of the mesh and repetition.
//
// exact: integers of the dtype, bounded so that every order of summation is exact, sign mixed, products never 0. Where the dtype holds too
// few
//   integers for all contributions (bfloat16: 256), only some are not neutral, `live` of them for every element, chosen by its number.
//   Averages start from multiples of the sizes they divide by.
// random: any values (floats in -1..1); the answer is also kept in float64, to measure the error against.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "replay/region.h"
#include "tensor/dtype.h"
#include "tensor/placement.h"

namespace meshplan {

enum class DataKind : uint8_t { exact, random };

struct DataQuestion {
  DType dtype = DType::float32;
  DType reduce_dtype = DType::float32;  // what reductions run in
  DataKind kind = DataKind::exact;
  ReduceOp op = ReduceOp::sum;  // how contributions combine; sum where sum and avg are mixed
  int64_t contributions = 1;    // ranks that hold a different part of the reduction
  int64_t divisor = 1;          // what the reduced value is divided by: the sizes of the averaging mesh dims
  int64_t growth = 1;           // how often a step may add the answer to itself before dividing (an average over equal values)
  uint64_t seed = 0;
  bool operator==(const DataQuestion&) const = default;
  auto operator<=>(const DataQuestion&) const = default;
};

class DataTable {
 public:
  explicit DataTable(const DataQuestion& question);

  [[nodiscard]] const DataQuestion& question() const { return question_; }
  [[nodiscard]] int64_t period() const { return period_; }
  // Elements that are not neutral, of `contributions`, for each element of the tensor.
  [[nodiscard]] int64_t live() const { return live_; }
  // The dtype is too narrow for anything else: sums of multiples of the divisor would overflow it.
  [[nodiscard]] bool all_zero() const { return all_zero_; }
  // A shift for this copy and repetition; any number gives a valid one.
  [[nodiscard]] int64_t shift_for(uint64_t salt) const;

  // Position in the table of contribution `k` of element number 0.
  [[nodiscard]] int64_t source_start(int64_t k, int64_t shift) const;
  [[nodiscard]] const std::byte* source() const { return source_.data(); }     // `period` elements
  [[nodiscard]] const std::byte* answer() const { return answer_.data(); }     // `period` elements, from position `shift`
  [[nodiscard]] const std::vector<double>& oracle() const { return oracle_; }  // random only: the answer in float64

 private:
  DataQuestion question_;
  int64_t period_ = 1;
  int64_t live_ = 1;
  bool all_zero_ = false;
  std::vector<int64_t> offsets_;  // one a contribution
  std::vector<std::byte> source_;
  std::vector<std::byte> answer_;
  std::vector<double> oracle_;
};

// Writes element i of `table`, at position (start + i) mod period, for every element i of `box` of a tensor of this shape; row-major.
void fill_box(std::byte* to, const Box& box, std::span<const int64_t> shape, const std::byte* table, int64_t period, int64_t start,
              int64_t element_size);

// Elements of a buffer that differ from the table.
struct Comparison {
  int64_t wrong = 0;
  std::vector<int64_t> first;  // element numbers within the box, at most `keep`
};
[[nodiscard]] Comparison compare_box(const std::byte* found, const Box& box, std::span<const int64_t> shape, const std::byte* table,
                                     int64_t period, int64_t start, int64_t element_size, size_t keep);

// The largest errors of a buffer against the float64 answer, and the elements that no order of summation explains: those further than
// `tolerance` off.
struct ErrorMeasure {
  double ulp = 0;
  double relative = 0;
  Comparison beyond;
};
[[nodiscard]] ErrorMeasure measure_error(const std::byte* found, const Box& box, std::span<const int64_t> shape, const DataTable& table,
                                         int64_t start, size_t keep);
// How far a sum of `contributions` values of -1..1 may be off, whatever the order: each addition rounds by half an ulp of the largest sum.
[[nodiscard]] double random_tolerance(const DataQuestion& question);

// A well mixed 64-bit number from two others (splitmix64).
[[nodiscard]] uint64_t mix(uint64_t a, uint64_t b);

}  // namespace meshplan
