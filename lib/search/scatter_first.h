// Plans that most often are the cheapest of hard questions: sums are scattered while little is
// held, and one exchange comes before or behind that.
//
//     slices, a scatter, an exchange            RP(sum)S(0) -> S(1)[1]S(1)[0]S(0) -> S(0)S(1)R
//     slices, an exchange                       the same where nothing is pending
//     slices, a scatter, an exchange, a gather  S(0)RP(sum) -> S(0)[0]S(0)[1]S(0)[2] ->
//                                               S(0)[1]S(0)[0]S(1) -> RS(0)R
//     an exchange, a scatter, a gather          RRP(sum)S(0) -> S(1)[0]RP(sum)S(1)[1] ->
//                                               S(1)[0]RS(0)S(1)[1] -> RRS(0)R
//
// The first two go by way of any state that has more digits than the source, in any of its lists,
// the others by way of any that has more than the target. There are thousands of these; what steps
// take at least says which are worth a price. Nothing is lost by them.
#pragma once

#include <optional>
#include <vector>

#include "search/packed.h"

namespace meshplan {

struct ScatterWay {
  int64_t least_ps;       // what a plan by it takes at least
  SearchState at;         // the source, or the target, with more digits in its lists
  uint16_t reduced = 0;   // what the scatter reduces: none, no scatter
  bool arranged = false;  // the exchange comes before the scatter
};

// States that slices and one scatter lead to, from which one exchange leads to the target: the
// soonest `most` by which a plan may take less than `below_ps`. Conditions: the world packs,
// nothing is made pending, the tensor is no scalar. Stops after `most_work` (search/work.h).
void list_scattered(const PlanProblem& p, PackedWorld& world, int64_t below_ps, size_t most,
                    int64_t most_work, std::vector<ScatterWay>& out);

// The same of states from which a gather leads to the target: one exchange leads to them from where
// one scatter does, of all sums or those inside of units (scattered_as), or a scatter of all from
// where slices or one exchange do (before_scatter).
void list_gathered(const PlanProblem& p, PackedWorld& world, int64_t below_ps, size_t most,
                   int64_t most_work, std::vector<ScatterWay>& out);

// The source with what is free now and what a scatter reduces behind its lists as `aim` has them;
// nullopt where that has not all of the sums.
[[nodiscard]] std::optional<SearchState> scattered_as(const PlanProblem& p, const SearchState& aim,
                                                      uint16_t reduced);
// Of these sums those inside of units of level 0.
[[nodiscard]] uint16_t sums_inside_units(const PlanProblem& p, uint16_t sums);
// What a scatter of these sums leads on from to `aim`, which has them all in its lists: of each
// list what stands before the first of them.
[[nodiscard]] SearchState before_scatter(const PlanProblem& p, const SearchState& aim,
                                         uint16_t reduced);

}  // namespace meshplan
