// How long one collective takes in one group, recounted: by the levels (traffic.h), or by a finer
// tier where one covers it: protocols to the picosecond; a measured table to the picosecond at
// its points and beyond them, and in a narrow range between two of them, as what lies on a line
// through logarithms is no fraction.
#pragma once

#include "verify/units.h"

namespace meshplan::verification {

struct TimeRange {
  int64_t least_ps = 0;
  int64_t most_ps = 0;
};

// What a collective moves: `whole` is cut into one piece a member.
struct Moved {
  int64_t whole = 0;
  int64_t piece = 0;
  int64_t copied = 0;
};

[[nodiscard]] TimeRange group_time(const Topology& topology, Op op, const GroupPattern& pattern,
                                   const Moved& moved);

}  // namespace meshplan::verification
