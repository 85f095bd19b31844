// What an exchange costs: point to point, every rank receives exactly the boxes that its target has and its source has not.
//
// Senders (OPTIMAL.md, move 5). A missing piece is one source shard's part of a target box. Its holders at the innermost level where one
// exists are h ranks. Cut h: the piece is cut along its longest dim into h near-equal parts, one from each. Cut 1: it goes whole, receivers
// taking turns over the holders. The cheaper cut is taken, h on a tie.
//
// Two engines answer the same question:
//   aligned  digits of mesh dims and tensor dims line up and divide evenly: closed forms over atoms, nothing depends on the number of
//   ranks; listed   anything else (uneven shards, 2 against 3, permuted ranks, two meshes): rank by rank, at most `listed_limit` pairs;
//   beyond that
//            the aligned forms over the largest boxes stand in, an upper estimate for received bytes.
#pragma once

#include <cstdint>
#include <optional>

#include "transfer/digits.h"
#include "cost/finer_tiers.h"
#include "tensor/state.h"

namespace meshplan {

struct ExchangeCost {
  int64_t wire_bytes = 0;  // the most that any rank receives, all phases
  int64_t sent_bytes = 0;  // the most that any rank sends
  int64_t predicted_ps = 0;
  Traffic traffic;            // of the one phase, or of the first of two
  Traffic inner;              // of the second phase
  bool whole_pieces = false;  // the cut is 1
  SameBoxes least;            // a finer tier's collective that moves the same boxes: the time is never below its
  bool exact = true;          // false: the listed engine was out of bounds and estimates stand in
};

struct ExchangeQuestion {
  const LevelMap* levels = nullptr;  // of the source mesh
  const Mesh* dst_mesh = nullptr;    // nullptr: the same mesh
  std::span<const int64_t> shape;    // elements
  int64_t element_bytes = 1;
  const State* src = nullptr;
  const State* dst = nullptr;  // pending atoms of src that dst lacks are reduced
  int phases = 1;
  std::optional<bool> whole_pieces;  // nullopt: whichever prices lower
};

[[nodiscard]] ExchangeCost price_exchange(const ExchangeQuestion& question);

// One engine each, for tests; the aligned one answers nullopt where digits do not line up.
[[nodiscard]] std::optional<ExchangeCost> price_exchange_aligned(const ExchangeQuestion& question);
[[nodiscard]] ExchangeCost price_exchange_listed(const ExchangeQuestion& question);
constexpr int64_t listed_limit = 4'000'000;  // (rank, source shard) pairs

// The aligned engine on bare digits, for the planner's inner loop.
[[nodiscard]] ExchangeCost price_digits(const Topology& topology, const DigitWorld& world, const DigitChange& change, int phases,
                                        std::optional<bool> whole_pieces);

}  // namespace meshplan
