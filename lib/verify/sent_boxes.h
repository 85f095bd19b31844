// The boxes that ranks send one another, or keep, in an exchange in one phase, one by one
// (recount_exchange.h has the rules), and what of that a piece of the exchange is.
//
//     2 x 2, [8], S(0)R -> RR, even cut     to rank 0: [0:4] from 0, which keeps it,
//                                           [4:6] from 2, [6:8] from 3
//     piece 0 of 2                          [0:2] kept, [4:5] from 2, [6:7] from 3
//
// Near-equal parts of a length differ by one at most, the longer ones first. A box is cut along its
// longest dim (ties: the lowest); into pieces along the longest of the steady dims, those whose cut
// the most later steps that may go in pieces leave alone, where it is 16 wide at least.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tensor/box.h"
#include "verify/bundle_ranks.h"
#include "verify/recount_exchange.h"
#include "verify/work_left.h"

namespace meshplan::verification {

// Ranks by their numbers in the bundle; box i has the intervals from i * dims on.
struct SentBoxes {
  size_t dims = 0;
  std::vector<uint32_t> from;
  std::vector<uint32_t> to;  // the same as `from`: the rank keeps it
  std::vector<Interval> sides;
  std::vector<Interval> cuts;  // what is cut into pieces; none: the boxes themselves
  std::vector<bool> steady;    // by dim; none: no dim is

  [[nodiscard]] size_t size() const { return from.size(); }
  [[nodiscard]] std::span<const Interval> box(size_t i) const {
    return {sides.data() + i * dims, dims};
  }
  [[nodiscard]] std::span<const Interval> cut(size_t i) const {
    return {(cuts.empty() ? sides : cuts).data() + i * dims, dims};
  }
};

// The most boxes of one step that are listed.
constexpr int64_t most_sent_boxes = int64_t{1} << 22;

// Of the copies of the meshes that begin at `bases`. nullopt: there are too many, or the work is
// used up.
[[nodiscard]] std::optional<SentBoxes> sent_boxes(const ExchangeView& view,
                                                  const std::vector<int64_t>& bases,
                                                  const BundleRanks& ranks, WorkLeft& work);

// What boxes of an exchange in two phases are asked for: of the first, of the second, or of either
// where what waits for no fetching goes with the first.
enum class PhaseBoxes : uint8_t { fetched, all_others, all_but_passed_on, passed_on };

// The boxes of an exchange in two phases, cut along their longest dims. What a rank fetches for
// itself is fetched, and not passed on to it. nullopt as above.
[[nodiscard]] std::optional<SentBoxes> boxes_of_phase(const ExchangeView& view, PhaseBoxes which,
                                                      const std::vector<int64_t>& bases,
                                                      const BundleRanks& ranks, WorkLeft& work);

// Near-equal part `index` of `whole` in `parts`.
[[nodiscard]] Interval part_of(const Interval& whole, int64_t parts, int64_t index);
// Ties: the lowest. The box has dims.
[[nodiscard]] size_t longest_dim(std::span<const Interval> box);

// What one rank has to do with one level in a piece.
struct RankShare {
  uint32_t rank = 0;
  uint32_t level = 0;
  int64_t received = 0;  // bytes
  int64_t sent = 0;
};
// A piece of a step of one tensor, as counts.
struct PieceTraffic {
  std::vector<RankShare> shares;  // by rank, then level
  std::vector<uint64_t> pairs;    // sender << 32 | receiver, ascending
};

// The boxes of a step in the parts in which its senders got them in the step before, so that they
// go in the same pieces: each is cut as the box of step 0 in which it left its source. nullopt:
// there are too many, or the work is used up.
//
//     step 0   [0:4] to 2, [4:8] to 2      step 1   [2:8] from 2 to 3
//     behind   [2:4] of [0:4] from 2 to 3, [4:8] of [4:8] from 2 to 3
[[nodiscard]] std::optional<SentBoxes> boxes_behind(const SentBoxes& before, const SentBoxes& step,
                                                    const BundleRanks& ranks, WorkLeft& work);

// Piece `piece` of `pieces`. nullopt: the work is used up.
[[nodiscard]] std::optional<PieceTraffic> piece_of(const SentBoxes& boxes, int64_t piece,
                                                   int64_t pieces, int64_t element_bytes,
                                                   const BundleRanks& ranks, WorkLeft& work);

}  // namespace meshplan::verification
