// The rounds of kinds that go through buckets together (planner/bundle_rounds.h).
//
//     kinds w, 2 tensors, and v, 4      bucket 0    w tensor 0, v tensors 0 1
//                                       bucket 1    w tensor 1, v tensors 2 3
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "planner/bundle_rounds.h"

namespace meshplan {

// Tensors [tensors.lo, tensors.hi) of a kind.
struct KindShare {
  size_t kind = 0;
  Interval tensors;
};

// What one launch runs: op, group, and mesh with mesh dims.
using LaunchKey = std::tuple<Op, std::string, std::string>;
[[nodiscard]] LaunchKey key_of(const Step& step);

// Bytes of a tensor of the kind, wherever they lie.
[[nodiscard]] int64_t tensor_bytes(const Way& way);

// Of each step one of all exchanges, and one of all collectives that may be launched together.
// `ends`: 0, and the sum of the shares up to each bucket, in units.
[[nodiscard]] std::vector<KindRound> rounds_of_buckets(const std::vector<Kind>& kinds,
                                                       const std::vector<size_t>& chosen,
                                                       const RoundLimits& limits,
                                                       const std::vector<KindShare>& shares,
                                                       std::vector<int64_t> ends);

}  // namespace meshplan
