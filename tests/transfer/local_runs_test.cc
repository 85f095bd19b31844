#include "transfer/local_runs.h"

#include <doctest/doctest.h>

namespace meshplan {
namespace {

Step step_of(Op op, int phases) {
  Step step;
  step.op = op;
  step.phases = phases;
  return step;
}

BundleRound round_of(int64_t stream, std::vector<RoundPart> parts, std::vector<size_t> after = {}) {
  BundleRound round;
  round.stream = stream;
  round.parts = std::move(parts);
  round.after = std::move(after);
  return round;
}

TEST_CASE("of each tensor the first part in the first wave of a step is listed with the local steps before it") {
  Plan plan;
  plan.redistributions.resize(2);
  plan.redistributions[0].request.count = 9;
  for (const Step& step : {step_of(Op::slice, 1), step_of(Op::exchange, 2), step_of(Op::exchange, 1)})
    plan.redistributions[0].steps.push_back(step);
  plan.redistributions[1].steps.push_back(step_of(Op::exchange, 1));
  PlannedBundle bundle;
  // Tensors [2:4] begin with the second round, one wave earlier than in the first; those of the third
  // are in its wave, listed later.
  bundle.rounds = {round_of(0, {{1, 0, 0, 1}}),       round_of(0, {{0, 1, 2, 7, 2, 4}, {1, 0, 0, 1}}),
                   round_of(1, {{0, 1, 2, 4, 0, 4}}), round_of(2, {{0, 1, 0, 4, 0, 4}}),
                   round_of(0, {{0, 1, 0, 9, 1, 4}}), round_of(0, {{0, 2, 0, 9}}, {4})};
  const LocalRuns runs = local_runs(plan, bundle);
  const LocalRuns expected{{{1, 0}, {{4, 7}}}, {{2, 0}, {{2, 4}}}, {{3, 0}, {{0, 2}}}, {{4, 0}, {{7, 9}}}};
  CHECK(runs == expected);
}

}  // namespace
}  // namespace meshplan
