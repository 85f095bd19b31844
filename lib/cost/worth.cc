#include "cost/worth.h"

#include "base/int_math.h"

namespace meshplan {

int64_t communicator_start_ps(int64_t ranks) {
  constexpr int64_t start = 1'000'000'000'000;
  constexpr int64_t a_rank = 2'700'000'000;
  return saturating_add(start, saturating_mul(a_rank, ranks));
}

int64_t communicator_bytes(int64_t ranks) {
  constexpr int64_t mebibyte = 1 << 20;
  return (ranks > 2 ? 688 : 544) * mebibyte;
}

int64_t model_error_percent(const Topology& topology) {
  // Beside the 150 rows of testdata/network/logs: h100 1.18, 4.27 at most. Of protocols
  // testdata/results/network.txt: 1.036, 1.40 at most.
  return topology.protocols.empty() ? 118 : 104;
}

}  // namespace meshplan
