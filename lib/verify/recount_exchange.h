// Who sends what in an exchange, recounted.
//
// A shard is one distinct source box with one value of what is pending; its holders are the ranks
// that have it. A piece is a shard's part of the target box of a rank that does not hold the shard;
// it comes from the holders on the innermost level where there are any:
//
//   even cut      cut along its longest dim (ties: the lowest) into h near-equal parts, the first
//                 ones longer by one element; part i comes from the i-th of the h nearest holders
//                 in rank order
//   whole pieces  the k-th rank (in rank order, from 0) that misses part of a shard asks its
//                 (k mod h)-th nearest holder
//
//   far share     where the step has one, of f 64ths, all by the even cut: where the h nearest
//                 holders are in the rank's innermost unit, and its unit of an outer level (the
//                 innermost such) has more, the last floor(L f / 64) of the L slices of a piece are
//                 not cut over the nearest ones but over two of the g others, or one where there is
//                 one: the k-th rank that misses part of the shard (in rank order, from 0) asks the
//                 (2 k mod g)-th of them in rank order, and the ((2 k + 1) mod g)-th
//
// What stays pending is exchanged among the ranks that agree on it; what is reduced comes from
// every contribution. Between meshes the first copies of both take part.
//
// Two phases: a unit of the innermost level, which is its members among the ranks that may talk,
// fetches what it misses as a whole once, and then exchanges inside.
//
//   the boxes    for each distinct box w that members want (in the order of the first of them),
//                the boxes where w meets a shard that has no holder in the unit (in the order of
//                the shards' first holders): m of them
//   the parts    each of them is cut as by the even cut into c parts, c the least with
//                16 k ceil(m c / k) <= 17 m c, k the members that want w; the parts are sorted
//                by their number, then by shard
//   who fetches  the j-th of these k, in rank order, fetches the parts from floor(j m c / k) up to
//                floor((j + 1) m c / k)
//   the holders  of the parts of a shard that are cut into equally many and asked of one set of h
//                nearest holders on one level, empty ones apart, the n-th (units in the order of
//                their first ranks, then w, then the parts in order) comes from the (n mod h)-th
//   by all       where the step says so, the boxes of all w in order are one line of E elements,
//                and k the members that have a place on the target's mesh. In it the j-th has
//                the elements from floor(j E / k) on; each such place is moved down to the slice
//                of the box in which it lies, along the longest dim. What one member has of one
//                box comes whole from that of its nearest holders which was asked for the fewest
//                elements of the shard so far (ties: in rank order), sets of them apart as above
//   inside       what a member holds moves as in one phase by the even cut; each fetched piece goes
//                on to the other members that want w
//   in shifts    where the step asks few at once, the fetched pieces, units in the order of their
//                first ranks and in each in the order above, are put in shifts (shifts.h), and the
//                traffic is that of the fullest chunk (stages.h)
//
// Several pieces from one rank to another in one phase are one peer.
//
// Two engines. Closed forms over digits, where levels, states and extents cut one another evenly:
// nothing depends on the number of ranks. Else rank by rank, at most `most_pieces` of them in all;
// beyond that the step is left out.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "verify/recount.h"
#include "verify/traffic.h"

namespace meshplan::verification {

struct ExchangeView {
  const Topology* topology = nullptr;
  const Mesh* src_mesh = nullptr;
  const Mesh* dst_mesh = nullptr;  // the same unless the exchange crosses meshes
  std::span<const int64_t> shape;
  int64_t element_bytes = 1;
  const State* src = nullptr;
  const State* dst = nullptr;
  bool whole_pieces = false;
  bool fetched_by_all = false;
  int64_t laps = 1;  // of two phases
  int64_t far_64ths = 0;
  int64_t at_once = 0;  // of two phases, across meshes
};

struct Exchanged {
  int64_t received = 0;  // the most bytes that any rank receives
  int64_t sent = 0;      // the most that any rank sends
  LevelTraffic traffic;
};

// The most pieces, and ranks, that are looked at one by one.
constexpr int64_t most_pieces = int64_t{1} << 22;
// The most ranks, and shards met by the distinct boxes that are wanted in a unit, that are looked
// at in one phase.
constexpr int64_t most_looked_at = int64_t{1} << 20;

// Into how many parts each of `missing` boxes is cut that so many members of a unit share (above).
[[nodiscard]] int64_t parts_of_missing(int64_t missing, int64_t members);

struct TwoPhases {
  std::array<Exchanged, 2> phase;
  int64_t received = 0;  // by one rank, in both phases
  int64_t sent = 0;
  int64_t stages = 1;  // that chunks are a multiple of
};
// nullopt: all fetch, it goes in shifts, something is uneven, or units or their members differ in
// what they miss.
[[nodiscard]] std::optional<TwoPhases> exchanged_evenly_in_two_phases(const ExchangeView& view);
// nullopt: more than `most_pieces`, or in shifts more than `most_changes` (shifts.h).
[[nodiscard]] std::optional<TwoPhases> exchanged_in_two_phases(const ExchangeView& view);

// nullopt: something is uneven, or the cut is whole where the turns of the holders depend on the
// order of the ranks.
[[nodiscard]] std::optional<Exchanged> exchanged_evenly(const ExchangeView& view);
// nullopt: more than `most_looked_at`.
[[nodiscard]] std::optional<Exchanged> exchanged_by_ranks(const ExchangeView& view);

// Across meshes with a far share. nullopt: more than `most_looked_at` ranks and pieces.
[[nodiscard]] std::optional<Exchanged> exchanged_with_far_share(const ExchangeView& view);

[[nodiscard]] Counted recount_exchange(const StepView& view);

}  // namespace meshplan::verification
