// From measured times to a topology of protocols that predicts them.
//
//     rows       all_reduce of 32 MiB, 8 ranks in a host of 80 in all: 182.9 us, ...
//     fit        the numbers of the base topology's protocols and levels; where it has no
//                protocols, new ones of each op (cost/seed_protocols.h), then all numbers together,
//                each moved as long as the rows are predicted better (cost/fit_numbers.h)
//     hold out   the same from every other size of each curve; what it says of the sizes left out
//                tells how well the fit generalises
//
// The result has no tables, so that bounds hold as for any topology. Laws: more bytes never cost
// less; no lower bound exceeds a prediction (tests/cost/calibrate_test.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"
#include "transfer/traffic.h"

namespace meshplan {

// One measured collective or exchange.
struct MeasuredRow {
  std::string place;  // "all_reduce.log:17"
  Op op = Op::all_reduce;
  std::vector<int64_t> members;  // of the group in one unit of each level; the last: its ranks
  int64_t size_bytes = 0;        // nccl-tests' size; of an exchange what the busiest rank receives
  int64_t ns = 0;                // median
  int64_t samples = 1;
  Traffic traffic;  // of an exchange
};

// What the topology says of the row, in nanoseconds, rounded up; at least 1.
[[nodiscard]] int64_t predicted_ns(const Topology& topology, const MeasuredRow& row);
// The larger of predicted and measured by the smaller.
[[nodiscard]] double factor_of(int64_t predicted_ns, const MeasuredRow& row);

// How near predictions are: of `rows` factors the median, the geometric mean and the largest.
struct FitQuality {
  int64_t rows = 0;
  double median = 1;
  double mean = 1;
  double largest = 1;
};
[[nodiscard]] FitQuality quality_of(std::vector<double> factors);

struct CalibratedRow {
  MeasuredRow row;  // of rows that are alike in all but time: the median
  int64_t predicted_ns = 0;
  std::optional<int64_t> held_out_ns;  // predicted from the other sizes alone
};
struct Calibration {
  Topology topology;
  std::vector<CalibratedRow> rows;  // by op, group and size
  FitQuality all;
  FitQuality held_out;  // no rows: too few sizes to hold any out
};

// Rows that are alike in op, group, traffic and size as one of the median time, by op, group and
// size.
[[nodiscard]] std::vector<MeasuredRow> merge_rows(std::vector<MeasuredRow> rows);

// Errors (bad_input): no row, members of a row that do not fit the levels of `base`.
[[nodiscard]] Result<Calibration> calibrate(const Topology& base, std::vector<MeasuredRow> rows);
// The rows beside a topology as it is.
[[nodiscard]] Result<Calibration> compare_rows(const Topology& topology,
                                               std::vector<MeasuredRow> rows);

}  // namespace meshplan
