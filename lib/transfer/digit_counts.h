// How many pieces a rank receives and serves over each level: what the closed forms of one phase
// and of two have in common.
//
// Every digit position of the tensor has radix q and at most one digit before (a) and after (b).
// The rank with coordinates x wants the shards v with v_p = x_b where both cut position p, and any
// v_p where only a does. Each piece is the whole tensor over the product of the radices of all
// positions that are cut. A pending digit that is reduced is one that only the source has and that
// cuts no piece.
//
// The nearest holders of v are at the level of the outermost source digit where x_a differs from v:
// inside it some rank has all of v's coordinates. Digits up to that level that the source does not
// have are free, and as many holders as their product are equally near.
//
//     hosts of 4, mesh a 2 x b 4, S(0)[b] -> R: rank a = 1, b = 2 wants v = 0 1 2 3 and holds v = 2
//     v = 3 differs from it on b, inside the host: one holder there, a = 1, b = 3
#pragma once

#include "transfer/digits.h"

namespace meshplan {

struct DigitCounts {
  int64_t piece_bytes = 0;
  int64_t target_bytes = 0;
  int64_t wire_bytes = 0;
  std::array<int64_t, max_levels> received{};  // pieces
  // (receiver, piece) pairs that the nearest holders of one shard serve, before h of them share: at
  // most; and of shards that match on every crossed position.
  std::array<int64_t, max_levels> served{};
  std::array<int64_t, max_levels> served_matched{};
  std::array<int64_t, max_levels> holders{};  // h
};
[[nodiscard]] DigitCounts count_pieces(const DigitWorld& world, const DigitChange& change,
                                       int levels);

}  // namespace meshplan
