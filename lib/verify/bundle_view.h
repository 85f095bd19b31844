// A bundle as its proof looks at it: the steps of its members with the states that they join, which
// members are alike, and in which wave every round runs.
//
//     members w1 (4 tensors), w2 (1 tensor), of the same question and answer    kind 0, kind 0
//     steps of kind 0      slice on `train`, then an exchange from `train` to `serve`
//     rounds on streams    0, 0, 1 after the first        waves 0, 1, 1
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/plan.h"
#include "verify/digits.h"
#include "verify/recount.h"

namespace meshplan::verification {

struct BundleStep {
  const Mesh* from = nullptr;  // of the state before
  const Mesh* to = nullptr;    // of the state after
  const State* before = nullptr;
  const Step* step = nullptr;
  bool across = false;  // the member is across meshes: the first copy of each takes part
  // Local steps, and collectives in groups of one rank, do not: they are in no round.
  bool communicates = false;
};

struct BundleView {
  const Plan* plan = nullptr;
  const PlannedBundle* bundle = nullptr;
  // By place in the bundle's list of members.
  std::vector<size_t> kind;                    // the first place with the same question and answer
  std::vector<std::vector<BundleStep>> steps;  // of the first places only
  // Place of a redistribution in the list.
  std::unordered_map<size_t, size_t> place;
  std::vector<int64_t> wave;  // by round
  int64_t waves = 0;

  [[nodiscard]] const PlannedRedistribution& member(size_t at) const {
    return plan->redistributions[bundle->request.members[at]];
  }
  [[nodiscard]] const std::vector<BundleStep>& steps_of(size_t at) const { return steps[kind[at]]; }
};

// The view without waves. The members must be in the plan, each once, and proven.
[[nodiscard]] BundleView make_bundle_view(const Plan& plan, const PlannedBundle& bundle);
// Fills in the waves; `after` must name earlier rounds.
void fill_waves(BundleView& view);

// A step as one redistribution's recount looks at it.
[[nodiscard]] StepView step_view(const BundleView& view, size_t kind, size_t step);

// The tensor dims that the most steps in a row behind step 0 that may go in pieces leave cut as it
// cuts them; none where the first of them leaves none.
[[nodiscard]] std::vector<bool> steady_dims(const BundleView& view, size_t kind);

// Whether a step may run in several pieces.
[[nodiscard]] bool may_go_in_pieces(const BundleView& view, size_t kind, size_t step);
// Whether it is an exchange in two phases right behind such steps, whose senders got in pieces what
// they send: what waits for no fetching goes with what is fetched.
[[nodiscard]] bool phases_go_behind(const BundleView& view, size_t kind, size_t step);

// "round 3", "round 3, part 0".
[[nodiscard]] std::string place_of_round(size_t round);

// What a round must be before its figures are looked at (bundle.h, 2).
[[nodiscard]] Problem check_rounds(const BundleView& view);

}  // namespace meshplan::verification
