// Which redistributions repeat an earlier one: the same question with the same answer, so that they
// differ in id, count and notes only. The file writes the first of them, the others name it.
//
//     0  wq  32 times  RS(0) -> RR   first 0   {"count": 32, "id": "wq", ..., "steps": [...]}
//     1  wk   8 times  S(0)R -> RR   first 1   {"count": 8, "id": "wk", ..., "steps": [...]}
//     2  wv   8 times  S(0)R -> RR   first 1   {"count": 8, "id": "wv", "same_as": "wk"}
//
// In memory each is whole, sharing its lists with the first: nothing that reads a plan needs to
// know which repeat.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace meshplan {

// Whether they differ in id, count and notes only.
[[nodiscard]] bool repeats(const PlannedRedistribution& a, const PlannedRedistribution& b);

// Of each redistribution the index of the first that it repeats, its own where it repeats none.
// Law: firsts[i] <= i and firsts[firsts[i]] == firsts[i].
[[nodiscard]] std::vector<size_t> firsts_of(
    const std::vector<PlannedRedistribution>& redistributions);
// The same among some of them, by their places in `some`.
[[nodiscard]] std::vector<size_t> firsts_of(
    const std::vector<PlannedRedistribution>& redistributions, std::span<const size_t> some);

}  // namespace meshplan
