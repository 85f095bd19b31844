#include "search/last_step.h"

#include <algorithm>

#include "base/int_math.h"

namespace meshplan {

int64_t last_collective_floor_ps(const PlanProblem& p, const PackedWorld& world,
                                 const SearchState& at, int64_t least) {
  if (!world.usable() || at.pending != p.target.pending || p.target.made != 0 || p.kept != 0)
    return least;
  // What stands at a list's end where the target has another sub-axis or none must leave it in that
  // step.
  unsigned leaving = 0;
  int leaving_dims = 0;
  int leaving_dim = 0;
  int64_t shared = 1;    // parts that the lists cut and that may stay
  int64_t held = 1;      // parts that they cut now
  int64_t to_slice = 1;  // parts that slices may put in place before the step
  const unsigned free = p.all & ~at.pending & ~sharding(at, p.dims);
  for (int d = 0; d < p.dims; ++d) {
    const int begin = at.begin_of(d);
    const int length = at.length(d);
    const int target_begin = p.target.begin_of(d);
    const int target_length = p.target.length(d);
    int k = common_prefix(at, p.target, d);
    for (int i = 0; i < k; ++i) shared *= p.size[at.sub_axis[as_index(begin + i)]];
    if (k < length) {
      ++leaving_dims;
      leaving_dim = d;
      for (; k < length; ++k) {
        leaving |= 1U << at.sub_axis[as_index(begin + k)];
        held *= p.size[at.sub_axis[as_index(begin + k)]];
      }
      continue;
    }
    for (; k < target_length && (free >> p.target.sub_axis[as_index(target_begin + k)] & 1) != 0;
         ++k)
      to_slice *= p.size[p.target.sub_axis[as_index(target_begin + k)]];
  }
  if (leaving_dims == 0) return least;
  // A gather leaves at most what is shared and sliced into place: larger boxes, of which a rank
  // holds what it held, sliced alike.
  const int64_t whole = floor_div(p.digit_bytes, shared * to_slice);
  const int64_t gather =
      whole > p.state_limit
          ? INT64_MAX
          : std::max(least, world.least_step_ps(whole - floor_div(whole, held), held));
  // An all_to_all empties one list's end into others, and has the other members of its group as
  // peers.
  if (leaving_dims != 1) return gather;
  unsigned elsewhere = sharding(p.target, p.dims);
  for (int i = p.target.begin_of(leaving_dim); i < p.target.end_of(leaving_dim); ++i)
    elsewhere &= ~(1U << p.target.sub_axis[as_index(i)]);
  if ((leaving & ~elsewhere) != 0) return gather;
  return std::min(gather, saturating_add(least, world.peers_ps(held - 1)));
}

int64_t rest_floor_ps(const PlanProblem& p, PackedWorld& world, const SearchState& at,
                      const Packed& packed, const Packed& target, int64_t least,
                      bool steps_take_time, const OutsideLeft& outside) {
  if (!world.usable() || least == 0) return least;
  // Of everything but the steps over the outer links one by one.
  const int64_t at_once = std::max(least, world.reordered_ps(packed, target));
  least = std::max(at_once, std::min(outside.one_ps, outside.several_ps));
  if (!steps_take_time) return least;
  int64_t last = last_collective_floor_ps(p, world, at, std::max(at_once, outside.one_ps));
  if (last <= least) return least;
  const bool reduces = at.pending != p.target.pending;
  last = std::min(last, world.exchange_floors(packed, target).least_ps(reduces));
  // Where latencies do not grow, a second step adds one latency to whatever is left.
  int64_t several = 0;
  if (p.times.grow()) {
    several = std::max(world.several_ps(packed, target), world.reordered_ps(packed, target, true));
  } else {
    several = std::max(
        saturating_add(at_once, world.another_step_ps()),
        std::min(saturating_add(outside.one_ps, world.another_step_ps()), outside.several_ps));
  }
  return std::max(least, std::min(last, several));
}

}  // namespace meshplan
