// A hard question in a coarser form, for a plan to begin with
//
// Mesh dims are cut into sub-axes at levels too, beside where the ends cut them. With these cuts
// left out there are far fewer states, and each is one of the
// question.
//
//     48 x 6 on hosts of 8: S(0)S(1) -> RR     sub-axes [6][8][6], in the coarser form [48][6]
#pragma once

#include "plan/question.h"
#include "search/search.h"

namespace meshplan {

class CoarserForm {
 public:
  // `levels`, `target` and what the question points to outlive it.
  CoarserForm(const PlanQuestion& question, const LevelMap& levels, const State& target)
      : question_(question), levels_(levels), target_(target) {}

  // The best plan of it that takes less than `below_ps` and that so much work (search/work.h)
  // finds, as one of `whole`, the question with all its cuts. Nothing is proven of that question:
  // `least_ps` is 0.
  [[nodiscard]] Found find(const PlanProblem& whole, int64_t below_ps, int64_t work_budget) const;
  // The plan of least peak of it, as one of `whole`, which may have more: a local step over a whole
  // mesh dim is several there, with states between them. No bytes where nothing is cut at levels.
  //
  //     a 4, hosts of 2, S(0) -> P(sum)     at once 1/4 and all of it, in parts 1/2 and all of it
  [[nodiscard]] LeastPeak least_peak(const PlanProblem& whole, int64_t work_budget) const;

 private:
  [[nodiscard]] PlanProblem form_of(const PlanProblem& whole) const;

  PlanQuestion question_;
  const LevelMap& levels_;
  const State& target_;
};

}  // namespace meshplan
