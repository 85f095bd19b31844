// Who sends what to whom in an exchange: exactly the boxes that others miss, with the work spread
// evenly over the holders. The rules stand in this module's README.md.
//
// Law: the pieces of one target tile its box, if the sources hold it
// (tests/transfer/exchange_pieces_test.cc).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/int_math.h"
#include "tensor/box.h"
#include "transfer/exchange_ranks.h"
#include "transfer/level_units.h"

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
  // What each member fetches from another unit: `target` is the index of the fetching member among the targets.
  std::vector<ExchangePiece> fetches;
  // Inside units, pieces that a source holds; and pieces that member `source` (an index into the targets) has fetched.
  std::vector<ExchangePiece> from_sources;
  std::vector<ExchangePiece> from_fetches;
};
// Requires that the fetching members are targets: an exchange on one mesh, where every rank is both source and target.
[[nodiscard]] TwoPhasePieces two_phase_pieces(std::span<const RankBox> sources, std::span<const RankBox> targets,
                                              std::span<const int64_t> level_ranks);

// Part `index` of `box` cut along its longest dim (ties: the lowest) into `parts` near-equal parts, the first ones longer by one.
[[nodiscard]] Box even_part(const Box& box, int64_t parts, int64_t index);

// Near-equal part `index` of `length` cut into `parts`, the first ones longer by one: its size.
[[nodiscard]] constexpr int64_t near_equal(int64_t length, int64_t parts, int64_t index) {
  const int64_t each = floor_div(length, parts);
  return each + (index < length - each * parts ? 1 : 0);
}

// The holders of a shard that are nearest to a rank: those on the innermost level where there is one.
struct NearestHolders {
  int level = 0;
  int32_t begin = 0;  // among the shard's holders
  int32_t count = 0;
};

// Finds nearest holders; remembers the last answer for each shard, as ranks ask in ascending order.
class Nearest {
 public:
  Nearest(const ExchangeRanks& ranks, const LevelUnits& units);
  // Of a shard for the rank at this index. The answer is one for all ranks of a unit of level 0.
  [[nodiscard]] const NearestHolders& of(int32_t shard, int32_t rank) {
    Known& known = known_[static_cast<size_t>(shard)];
    const int32_t unit = unit_[static_cast<size_t>(rank)];
    if (known.unit != unit) find(known, shard, rank, unit);
    return known.near;
  }

 private:
  struct Known {
    NearestHolders near;
    int32_t unit = -1;
    int32_t next = 0;  // among the shard's holders: the first that is not in a unit before
  };
  void find(Known& known, int32_t shard, int32_t rank, int32_t unit);

  const ExchangeRanks* ranks_;
  LevelUnits units_;
  std::vector<int32_t> unit_;  // of level 0, by rank, numbered in rank order
  std::vector<Known> known_;
};

// One phase, whole pieces: calls visit(receiver, overlap, nearest, sender) for every piece that moves; sender and receiver are rank
// indices. In rank order of the receivers, then shard.
template <class Visitor>
void for_each_whole_piece(const ExchangeRanks& ranks, const LevelUnits& units, Visitor&& visit) {
  Nearest nearest(ranks, units);
  std::vector<int64_t> asked(ranks.shards(), 0);  // ranks so far that miss part of the shard
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (ranks.wanted[r] < 0) continue;
    for (const Overlap& overlap : ranks.overlaps_of(ranks.wanted[r])) {
      if (overlap.shard == ranks.shard[r]) continue;
      const NearestHolders& near = nearest.of(overlap.shard, static_cast<int32_t>(r));
      const int64_t turn = asked[static_cast<size_t>(overlap.shard)]++ % near.count;
      visit(static_cast<int32_t>(r), overlap, near, ranks.holders_of(overlap.shard)[static_cast<size_t>(near.begin + turn)]);
    }
  }
}

// One phase, even cut: calls visit(receiver, overlap, nearest) for every part that moves, to be cut over all nearest holders.
template <class Visitor>
void for_each_even_piece(const ExchangeRanks& ranks, const LevelUnits& units, Visitor&& visit) {
  Nearest nearest(ranks, units);
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (ranks.wanted[r] < 0) continue;
    for (const Overlap& overlap : ranks.overlaps_of(ranks.wanted[r])) {
      if (overlap.shard == ranks.shard[r]) continue;
      visit(static_cast<int32_t>(r), overlap, nearest.of(overlap.shard, static_cast<int32_t>(r)));
    }
  }
}

}  // namespace meshplan
