// Warnings that sell themselves: which flattened meshes would make a file's plans cheaper, found by
// planning again as if they were declared.
//
//     loss   P(sum) on a, b, c -> R   30 us    with b_c 20 us    with a_b_c 10 us    with both 10
//     norm   P(sum) on b, c -> R      20 us    with b_c 10 us
//     advice: a_b_c, which saves 20 us of loss; then b_c, which saves 10 us of norm, none of loss
//
// Sets are priced together: the one that saves most over the file, then the one that saves most
// beside it, and so on; each promise is what is saved beside those before it. So all of them
// together save what they promise in sum, the first by itself what it promises, and a later one by
// itself as much or more unless it needs another. A set is advised only where it is worth its
// communicator, in its turn and when all the others are declared: what it saves must repay the
// communicator's start within most_runs runs of the file, counted where the steps that go take
// longer than those that come by more than the model's own error (cost/worth.h). A set that is not
// is left out, and the rest is priced anew. The text is written here; api/warnings.cc merges
// the warnings of a file and replaces what follows "; saves ". For PyTorch's rules
// torch_rules/rule_planner.cc warns, set by set.
#pragma once

#include <vector>

#include "planner/flatten_prices.h"

namespace meshplan {

// Candidates in the order in which they are priced. Law: of every candidate in it, what it saves
// beside those before it and what it saves beside all others are both worth its communicator.
[[nodiscard]] std::vector<size_t> advised_flattens(const MeshTable& meshes,
                                                   const Topology& topology, FlattenPrices& prices);

// What the advice is to one question, in order: each names the collective that would run on the
// set, the collectives planned and what it saves beside those before it, more than nothing. Where
// searches do not end one promises for all.
// Law: with all that is advised declared, the question takes as much less as its warnings promise
// in sum; nothing is promised where it does not take less.
[[nodiscard]] std::vector<Warning> missing_flattens(const MeshTable& meshes, FlattenPrices& prices,
                                                    size_t question,
                                                    const std::vector<size_t>& advised);

}  // namespace meshplan
