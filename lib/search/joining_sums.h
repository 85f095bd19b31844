// Sums that join others on the way: a shard or a copy becomes a contribution as well, so that one
// reduction does what would be a step more.
//
//     S(0)P(sum) -> P(sum)P(sum) -> RR    one all_reduce, not an all_reduce and an all_gather
#pragma once

#include <cstdint>
#include <vector>

#include "search/search.h"

namespace meshplan {

// What each sub-axis that joins is counted at while plans are compared, though the step is local,
// ps: bytes that take less are not worth one step more to read.
constexpr int64_t joining_ps = 1'000;
// Of all of a plan at most.
[[nodiscard]] inline int64_t most_joining_ps(const PlanProblem& p) {
  return joining_ps * __builtin_popcount(p.joins);
}
// Takes that out of a plan that was found; what it took out.
int64_t drop_joining_ps(std::vector<Edge>& edges);

// PlanProblem::joins of a problem whose ends are set: none beside other ops than sum and avg, where
// the target has sums of its own, or in a bundle.
[[nodiscard]] uint16_t joining_sub_axes(const PlanProblem& p);

// Calls visit(state, sub-axis as a bit) where one more sub-axis becomes pending, to be reduced with
// what is (PlanProblem::joins): from R, or zero-filled from the last shard of a dim.
template <class Visit>
void each_joining_sum(const PlanProblem& p, const SearchState& at, Visit visit) {
  if (at.pending == 0 || p.joins == 0) return;
  const auto joined = [&](SearchState to, unsigned sub_axis) {
    to.pending = static_cast<uint16_t>(to.pending | sub_axis);
    visit(to, static_cast<uint16_t>(sub_axis));
  };
  const unsigned free = p.joins & ~unsigned{at.pending} & ~unsigned{sharding(at, p.dims)};
  for (unsigned left = free; left != 0; left &= left - 1) joined(at, left & ~(left - 1));
  for (int d = 0; d < p.dims; ++d) {
    if (at.length(d) <= p.frozen[as_index(d)]) continue;
    const unsigned last = 1U << at.sub_axis[as_index(at.end_of(d) - 1)];
    if ((p.joins & last) == 0) continue;
    SearchState cut = at;
    drop_last(cut, p.dims, d, 1);
    joined(cut, last);
  }
}

}  // namespace meshplan
