// A question with every set of mesh dims declared, before the one that is asked: mostly the best
// plan runs on declared sets even then, and advice has no more to ask.
//
//     P(sum)P(sum) -> RR, a_b not declared     with it one all_reduce on a_b takes less: the search
//                                              goes on without it, and advice knows what it saves
//     S(0)P(sum) -> S(0)R                      all_reduce on b either way: nothing is missing
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "plan/question.h"
#include "planner/flatten_sets.h"
#include "search/work.h"
#include "transfer/level_map.h"

namespace meshplan {

struct PlanProblem;

// What planning a question leaves for advice on it.
struct LeftForAdvice {
  int64_t work = 0;                         // units that may be spent
  std::shared_ptr<ListingMemory> listings;  // what was listed on its source mesh
  // Where it was planned with every set of its mesh declared first: whether that is the plan that
  // it has; else the plan, if it was searched to the end, and the units that it took.
  bool none_missing = false;
  std::optional<std::vector<Step>> with_every_set;
  int64_t every_set_work = 0;
  // What these searches know, which takes much memory, and the levels that it belongs to; nullptr
  // where nothing is missing.
  std::shared_ptr<PlanProblem> problem;
  const LevelMap* levels = nullptr;
};

// The best plan of a question whose work is counted down, on the sets that are declared.
// `undeclared`: of its source mesh; none: nothing is asked but the question.
[[nodiscard]] Result<StepList> plan_widest_first(const PlanQuestion& question,
                                                 const LevelMap& levels,
                                                 const std::vector<DimSet>& undeclared,
                                                 work::Budget& budget, LeftForAdvice& left);

}  // namespace meshplan
