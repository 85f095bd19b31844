// Who sends what to whom in an exchange: exactly the boxes that others miss, with the work spread evenly over the holders.
//
// A shard is one distinct source box; its holders are the ranks that hold it. A piece is a shard's part of a target box whose rank does not
// hold that shard. Near means: on the innermost level of the topology (ranks in one unit of it) that has a holder.
//
//     even cut       the piece is cut along its longest dim (ties: the lowest) into h near-equal parts, the first ones longer by one;
//                    part i comes from the i-th of the h nearest holders in rank order
//     whole pieces   the k-th rank (in rank order, from 0) that misses part of a shard asks its (k mod h)-th nearest holder
//
// Two phases, over hosts (units of the innermost level): a host's missing parts are those shard parts that some member wants and no member
// holds. Each comes once, cut into as many near-equal parts as the host has members, part i to member i from that host's (i mod h)-th
// nearest holder; then members exchange inside by the even cut, a fetched part from the one that fetched it.
//
// Law: the pieces of one target tile its box, if the sources hold it (tests/replay/exchange_pieces_test.cc).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/box.h"

namespace meshplan {

// A rank by its global id, and its box before (a source) or after (a target). Source boxes are equal or disjoint, and so are target boxes.
struct RankBox {
  int64_t rank = 0;
  Box box;
};

struct ExchangePiece {
  int32_t source = 0;  // index into the sources
  int32_t target = 0;  // index into the targets
  Box box;
  bool operator==(const ExchangePiece&) const = default;
};

enum class ExchangeCut : uint8_t { even, whole };

// All pieces of non-empty volume, by target, then shard (in order of its first holder), then part. Pieces that a rank keeps (the target's
// rank holds the shard) are listed too, with itself as source. `level_ranks`: consecutive global ids in one unit of each level, inside out;
// the last level holds every rank.
[[nodiscard]] std::vector<ExchangePiece> exchange_pieces(std::span<const RankBox> sources, std::span<const RankBox> targets,
                                                         std::span<const int64_t> level_ranks, ExchangeCut cut);

struct TwoPhasePieces {
  // What each member fetches from another host: `target` is the index of the fetching member among the targets.
  std::vector<ExchangePiece> fetches;
  // Inside hosts, pieces that a source holds; and pieces that member `source` (an index into the targets) has fetched.
  std::vector<ExchangePiece> from_sources;
  std::vector<ExchangePiece> from_fetches;
};
// Requires that the fetching members are targets: an exchange on one mesh, where every rank is both source and target.
[[nodiscard]] TwoPhasePieces two_phase_pieces(std::span<const RankBox> sources, std::span<const RankBox> targets,
                                              std::span<const int64_t> level_ranks);

// Part `index` of `box` cut along its longest dim (ties: the lowest) into `parts` near-equal parts, the first ones longer by one.
[[nodiscard]] Box even_part(const Box& box, int64_t parts, int64_t index);

}  // namespace meshplan
