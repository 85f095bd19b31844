// From measured times to a topology that predicts them.
//
// A collective gets a table for each (op, level, ranks): the median time at each size, made never
// to fall with size (a larger message that came out faster is noise: neighbours are pooled,
// weighted by their samples). Exchanges and levels without tables are priced by their levels, whose
// latency and bandwidth are fitted too: of the lines through two of the exchanges' points, or else
// of all collectives' points of that level, the one with the least mean plus median relative error,
// less what peers cost. No peer costs more than its share of the fastest exchange. Law: a table
// passes through its points; more bytes never cost less (tests/cost/calibrate_test.cc).
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"

namespace meshplan {

// One measured step.
struct CalibrationPoint {
  Op op = Op::all_reduce;
  int64_t level = 0;  // outermost level used
  int64_t ranks = 2;  // of the group
  // as reports give it: nccl-tests' size; for exchange what the busiest rank receives
  int64_t size_bytes = 0;
  int64_t ns = 0;  // median
  int64_t samples = 1;
  int64_t peers = -1;  // exchange: that the prediction counts; -1: all others of the group
};

// `base` with its tables replaced where points cover them, and its levels fitted where two or more
// sizes do. Errors (bad_input): no usable point, a level that the base lacks.
[[nodiscard]] Result<Topology> calibrate(const Topology& base,
                                         const std::vector<CalibrationPoint>& points);

}  // namespace meshplan
