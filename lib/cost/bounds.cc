#include "cost/bounds.h"

#include <algorithm>

#include "base/int_math.h"
#include "cost/finer_tiers.h"
#include "cost/listed_bounds.h"
#include "cost/protocols.h"

namespace meshplan {
namespace {

// Bytes that so many ranks carry together.
struct Need {
  int64_t bytes = 0;
  int64_t ranks = 1;
};

// Of so many elements at most one has a contribution in a unit that wants it: where a digit cuts
// the tensor before and after, but at another position, its value is one number of the element
// before and another after, and only where both are the same a unit has both. Digits that go round
// in a circle say no more than all but one of them.
//
//     a 2 x b 2, S(0)[a]P[b] -> S(1)[a]S(0)[b]    what a rank holds for a are rows, what it wants
//                                                 are columns: half of the elements are summed by
//                                                 a rank that does not want them
int64_t share_apart(const DigitWorld& world, const DigitChange& p, DigitMask outside) {
  DigitMask leave = p.src_only;
  for (size_t i = 0; i < static_cast<size_t>(p.crossed); ++i) leave |= DigitMask{1} << p.before[i];
  int moved = __builtin_popcount(leave & p.dst & outside);
  int64_t least = moved > 0 ? INT64_MAX : 1;
  for (int i = 0; i < world.count() && moved > 0; ++i) least = std::min(least, world.size(i));
  int64_t apart = 1;
  for (; moved > 0; moved -= 2) apart = saturating_mul(apart, least);
  return apart;
}

// What a unit must fetch from outside of it, for the worst unit, shared by its ranks; and what
// enters all units, shared by all ranks that hold different values. `outside`: digits that tell
// units apart (all of them where the unit is a rank).
//
// Without a reduction across units: the union of its targets less what its members hold. With
// contributions in c > 1 units every element of the union needs something from outside, and all
// units together carry (c - 1) + (t - 1) values an element, t the copies of the target.
//
// One value more of every element that no unit wants which holds a contribution to it: all but one
// of `share_apart`.
//
// Shares are not rounded: collectives are priced by fractions of bytes.
std::array<Need, 2> unit_needs(const DigitWorld& world, const DigitChange& p, DigitMask outside,
                               bool some_made) {
  // What members hold: source digits outside, where no outside digit of the target cuts.
  DigitMask held = p.src_only & outside;
  bool crossed = false;
  for (size_t i = 0; i < static_cast<size_t>(p.crossed); ++i) {
    if ((outside >> p.before[i] & 1) == 0) continue;
    if ((outside >> p.after[i] & 1) == 0)
      held |= DigitMask{1} << p.before[i];
    else
      crossed = true;
  }
  const DigitMask inside = world.all() & ~outside;
  const int64_t united = p.total_bytes / world.product(p.dst & outside);
  const DigitMask contributing = p.reduced & outside;
  const int64_t missing =
      contributing != 0 || crossed ? united : united - united / world.product(held);
  std::array<Need, 2> needs{
      Need{saturating_mul(missing, world.product(p.kept & inside)), world.product(inside)}, Need{}};
  if (contributing != 0) {
    const int64_t contributions = world.product(contributing);         // units that hold one
    const int64_t copies = world.product(outside & ~p.dst & ~p.kept);  // of the target, over units
    needs[1] = {saturating_mul(p.total_bytes, contributions - 1 + copies - 1),
                world.product(world.all() & ~p.kept)};
    if (!some_made)
      needs[1].bytes = saturating_add(
          needs[1].bytes, p.total_bytes - floor_div(p.total_bytes, share_apart(world, p, outside)));
  }
  return needs;
}

Bounds bound(const Topology& topology, const LeastTimes& times, const DigitWorld& world,
             const DigitChange& p, bool within_moves, DigitMask made, bool several = false) {
  Bounds bounds;
  const int levels = static_cast<int>(topology.levels.size());
  int must_reach = -1;  // the outermost level that something crosses
  // needs[k]: what a unit of the level inside of k (of level 0: a rank) must fetch from outside of
  // it.
  std::array<std::array<Need, 2>, max_levels> needs;
  DigitMask outside = world.all() & ~made;
  for (int k = 0; k < levels; ++k) {
    if (k > 0) outside &= ~world.at_level(k - 1);
    const auto shares = unit_needs(world, p, outside, made != 0);
    if (k == 0) {
      for (const Need& share : shares)
        bounds.bytes = std::max(bounds.bytes, ceil_div(share.bytes, share.ranks));
    }
    if (shares[0].bytes == 0 && shares[1].bytes == 0)
      break;  // a unit that needs nothing lies in one that needs nothing more from outside
    must_reach = k;
    needs[static_cast<size_t>(k)] = shares;
  }
  if (must_reach < 0) return bounds;
  // A measured table may say anything.
  if (has_tables(topology)) return bounds;
  // What a unit needs comes over the levels outside of it, all at once at best. Shards that a rank
  // wants part of, and contributions to it, lie on other ranks each.
  LeastTimes::Asked asked;
  asked.several = several;
  if (made == 0) asked.ranks = world.product(p.src_only | p.reduced);
  const auto least_ps = [&](int reached, int outermost) {
    asked.level = reached;
    int64_t ps = times.ps(asked, 0, 1, 1);
    uint32_t links = 0;
    for (int k = outermost; k >= 0; --k) {
      if (world.at_level(k) != 0) links |= 1U << k;
      if (k > must_reach || links == 0) continue;
      asked.kind_does = k == reached && k > 0;
      for (const Need& share : needs[static_cast<size_t>(k)])
        ps = std::max(ps, times.ps(asked, share.bytes, share.ranks, links));
    }
    return ps;
  };
  if (!within_moves) {
    bounds.ps = least_ps(must_reach, levels - 1);
    return bounds;
  }
  // Steps that reach no further leave links further out idle; those that do take its latency. Of
  // shares that slices left on several hosts a gather brings some from each, beside those that lie
  // nearer.
  bounds.ps = least_ps(must_reach, must_reach);
  for (int reached = must_reach + 1; reached < levels; ++reached) {
    if (world.at_level(reached) != 0) bounds.ps = std::min(bounds.ps, least_ps(reached, reached));
  }
  return bounds;
}

bool has_pending(const State& state) {
  return std::any_of(state.partial.begin(), state.partial.end(),
                     [](const PendingSubAxis& p) { return p.sub_axis.size > 1; });
}

// What stays pending may also be reduced on the way and written as contributions again, which
// leaves zero-filled shards where they are: the least over every choice of digits that are.
Bounds bound_aligned(const Topology& topology, bool reduces, const DigitProblem& digits,
                     int64_t element_bytes, int64_t least_element_bytes) {
  const LeastTimes times(topology, reduces);
  constexpr int most_choices = 64;
  const DigitMask kept = digits.change.kept;
  DigitChange change = digits.change;
  const int64_t narrow = change.total_bytes / element_bytes * least_element_bytes;
  if (1 << std::min(30, __builtin_popcount(kept)) > most_choices) {
    // Neither kept apart nor reduced: at most what any choice needs.
    change.kept = 0;
    change.total_bytes = narrow;
    return bound(topology, times, digits.world, change, false, digits.made | kept);
  }
  Bounds least{INT64_MAX, INT64_MAX};
  for (DigitMask again = kept;; again = (again - 1) & kept) {
    change.kept = kept & ~again;
    change.reduced = digits.change.reduced | again;
    change.total_bytes = change.reduced != 0 ? narrow : digits.change.total_bytes;
    const Bounds b = bound(topology, times, digits.world, change, false, digits.made | again);
    least.bytes = std::min(least.bytes, b.bytes);
    least.ps = std::min(least.ps, b.ps);
    if (again == 0) return least;
  }
}

}  // namespace

Bounds bound_digits(const Topology& topology, const LeastTimes& times, const DigitWorld& world,
                    const DigitChange& change, bool within_moves, DigitMask made, bool several) {
  return bound(topology, times, world, change, within_moves, made, several);
}

namespace {

// Whether something may be reduced on the way.
bool may_reduce(const State& src, const State& dst) { return has_pending(src) || has_pending(dst); }

// `most_ranks`: those that may be listed.
Bounds bound_on_one_mesh(const LevelMap& levels, std::span<const int64_t> shape,
                         int64_t element_bytes, int64_t reduce_element_bytes, const State& src,
                         const State& dst, int64_t most_ranks) {
  // Something may be reduced wherever something is pending at either end.
  const bool reduces = may_reduce(src, dst);
  const int64_t least = reduces ? std::min(element_bytes, reduce_element_bytes) : element_bytes;
  if (const auto digits = align_digits(levels, shape, element_bytes, src, dst)) {
    return bound_aligned(levels.topology(), reduces, *digits, element_bytes, least);
  }
  return listed_bounds(bound_topology(levels.topology(), reduces), levels.mesh(), levels.mesh(),
                       shape, least, src, dst, most_ranks);
}

// The least over the orders that the target may have, of bound(target, ranks that may be listed).
template <class Bound>
Bounds least_of(const Request& request, const Bound& bound) {
  if (!request.any_dst_order) return bound(request.dst, bounded_ranks);
  Bounds least{INT64_MAX, INT64_MAX};
  const std::vector<State> orders = all_orders(request.dst);
  const int64_t most_ranks = bounded_ranks / static_cast<int64_t>(orders.size());
  for (const State& dst : orders) {
    const Bounds b = bound(dst, most_ranks);
    least.bytes = std::min(least.bytes, b.bytes);
    least.ps = std::min(least.ps, b.ps);
  }
  return least;
}

}  // namespace

Bounds lower_bounds(const LevelMap& levels, std::span<const int64_t> shape, int64_t element_bytes,
                    int64_t reduce_element_bytes, const State& src, const State& dst) {
  return bound_on_one_mesh(levels, shape, element_bytes, reduce_element_bytes, src, dst,
                           bounded_ranks);
}

Bounds lower_bounds(const Request& request, const MeshTable& meshes, const Topology& topology) {
  const LevelMap levels(meshes.meshes[request.src_mesh], topology);
  return lower_bounds(request, meshes, levels);
}

Bounds lower_bounds(const Request& request, const MeshTable& meshes, const LevelMap& levels,
                    int64_t most_ps) {
  const Topology& topology = levels.topology();
  const Mesh& src_mesh = meshes.meshes[request.src_mesh];
  const Mesh& dst_mesh = meshes.meshes[request.dst_mesh];
  const int64_t element = element_bytes(request.tensor.dtype);
  const int64_t reduce_element =
      request.reduce_dtype ? element_bytes(*request.reduce_dtype) : element;
  if (request.src_mesh != request.dst_mesh) {
    // Nothing pending crosses.
    const int64_t width = has_pending(request.src) ? std::min(element, reduce_element) : element;
    const Topology bounded = bound_topology(topology, may_reduce(request.src, request.dst));
    return least_of(request, [&](const State& dst, int64_t most_ranks) {
      return listed_bounds(bounded, src_mesh, dst_mesh, request.tensor.shape, width, request.src,
                           dst, most_ranks, most_ps);
    });
  }
  return least_of(request, [&](const State& dst, int64_t most_ranks) {
    return bound_on_one_mesh(levels, request.tensor.shape, element, reduce_element, request.src,
                             dst, most_ranks);
  });
}

}  // namespace meshplan
