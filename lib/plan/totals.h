// What the steps of a redistribution cost together, and sums of that over redistributions.
//
//     redistribution   count   collectives   peak_bytes
//     wq                  32             2          100
//     embedding            1             1          300
//     all                               65          300    sums are weighted, the peak is not
#pragma once

#include <cstdint>

namespace meshplan {

// Communicating steps, a two-phase exchange counted twice, a step whose groups have one rank not at
// all.
struct Totals {
  int64_t collectives = 0;
  int64_t wire_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t predicted_ps = 0;  // picoseconds; predicted_ns in the file
  int64_t lower_bound_bytes = 0;
  int64_t lower_bound_ps = 0;
  bool operator==(const Totals&) const = default;
};

// Adds what happens `count` times; saturates.
void add_weighted(int64_t& sum, int64_t part, int64_t count);
void add_weighted(Totals& sum, const Totals& part, int64_t count);

}  // namespace meshplan
