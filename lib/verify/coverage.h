// Whether the elements of each rank's new box are held by the ranks that it may receive from,
// decided one tensor dim at a time.
//
// Let G be a set of digits. A rank receives from the ranks that differ from it on G alone. A digit
// shards one tensor dim at most, so the boxes of those ranks are all combinations of their
// intervals, and their union is the product of the unions U_d of the single tensor dims. A step
// changes the roles of the digits of G and of free digits only (step_rules.h checks that), so all
// else that U_d depends on also shards dim d afterwards; each dim can therefore be checked alone,
// as every other dim is non-empty at coordinate 0.
//
// Within a tensor dim, in this order:
//   - equal lists, or a common head after which only digits of G follow before: covered;
//   - both lists cut the extent evenly: a digit outside of G must cut at the same stride before and
//     after (check_covered);
//   - else the chunks of this tensor dim below the common head are compared one by one, once for
//     each width that the head leaves.
#pragma once

#include <cstdint>
#include <optional>

#include "tensor/box.h"
#include "verify/digits.h"

namespace meshplan::verification {

// Every digit cuts what the ones before it left into equal parts.
[[nodiscard]] bool cuts_evenly(const Digits& digits, const ShardList& list, int64_t extent);

// The most chunks of one tensor dim that are compared one by one.
constexpr int64_t max_chunks = int64_t{1} << 24;

// The intervals of a list of digits, cut from [0, extent), in the order of their mixed-radix
// coordinates, which is that of their positions. nullopt: more than max_chunks.
[[nodiscard]] std::optional<std::vector<Interval>> chunks_of(const Digits& digits,
                                                             const ShardList& list, int64_t extent);

// Whether the interval of every rank after lies in the union of the intervals before of the ranks
// that differ on `senders` alone. The digits of `before` outside of `senders` must be digits of
// `after`.
[[nodiscard]] Problem check_covered(const Digits& digits, const ShardList& before,
                                    const ShardList& after, DigitSet senders, int64_t extent);

// Whether every rank holds the same elements in both states and the same reductions are pending.
// Exact: empty boxes are equal wherever they are said to lie.
[[nodiscard]] bool same_contents(const Digits& digits, const DigitState& a, const DigitState& b,
                                 std::span<const int64_t> shape);

}  // namespace meshplan::verification
