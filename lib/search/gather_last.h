// Plans that most often are the cheapest of several steps: an exchange into finer boxes of the
// target, then one gather of these.
//
//     [0][] -> [1][20] -> [1][]     the exchange brings every rank its share over the slow links,
//                                   the gather passes the shares on inside of hosts
//
// Tried first, they cut the lists of aims short. Nothing is lost by them.
#pragma once

#include <vector>

#include "search/packed.h"

namespace meshplan {

struct FinerTarget {
  int64_t least_ps;  // what a plan through it takes at least
  SearchState at;
};
// How a plan gets to such a state.
enum class Until : uint8_t { one_exchange, any_steps };
// States that have more digits than the target in one list, the soonest `most` of those by which a
// plan may take less than `below_ps`. Condition: the world packs, and nothing is made pending. Of n
// sub-axes there are more than n! of them: stops after `most_work` (search/work.h).
void finer_targets(const PlanProblem& p, PackedWorld& world, const Packed& source, Until until,
                   int64_t below_ps, size_t most, int64_t most_work, std::vector<FinerTarget>& out);

}  // namespace meshplan
