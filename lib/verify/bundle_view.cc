#include "verify/bundle_view.h"

#include <algorithm>

#include "plan/firsts.h"
#include "verify/figures.h"
#include "verify/op_rules.h"

namespace meshplan::verification {
namespace {

std::vector<BundleStep> steps_of_member(const Plan& plan, const PlannedRedistribution& member) {
  const Request& request = member.request;
  const Mesh& src_mesh = plan.meshes.meshes[request.src_mesh];
  const Mesh& dst_mesh = plan.meshes.meshes[request.dst_mesh];
  const bool across = request.src_mesh != request.dst_mesh;
  std::vector<BundleStep> steps;
  steps.reserve(member.steps.size());
  const Mesh* at = &src_mesh;
  const State* before = &request.src;
  for (const Step& step : member.steps) {
    BundleStep& out = steps.emplace_back();
    out.from = at;
    if (across && step.mesh == dst_mesh.name) at = &dst_mesh;
    out.to = at;
    out.before = before;
    out.step = &step;
    out.across = across;
    out.communicates = !is_alone(step.op) && (step.op == Op::exchange || ranks_of_group(step) > 1);
    before = &step.state;
  }
  return steps;
}

// The most pieces that a tensor may go in.
constexpr int64_t most_tensor_pieces = 1'000'000;

std::string is_not(const char* what, int64_t said, const std::string& expected) {
  return std::string(what) + " is " + std::to_string(said) + ", expected " + expected;
}

std::string place_of_part(size_t round, size_t part) {
  return place_of_round(round) + ", part " + std::to_string(part);
}

class RoundRules {
 public:
  explicit RoundRules(const BundleView& view) : view_(view) {}

  [[nodiscard]] Problem check(size_t at) const {
    const BundleRound& round = view_.bundle->rounds[at];
    if (round.stream < 0) return in_round(at, is_not("stream", round.stream, "at least 0"));
    if (auto problem = check_after(at)) return problem;
    if (round.parts.empty()) return in_round(at, "it has no parts, expected at least 1");
    for (size_t p = 0; p < round.parts.size(); ++p) {
      if (auto problem = check_part(round, round.parts[p]))
        return place_of_part(at, p) + ": " + *problem;
    }
    const std::string group = common_group(round);
    if (round.group != group) {
      return in_round(at, "it names group '" + round.group + "' where its parts run on " +
                              (group.empty() ? "several" : "'" + group + "'"));
    }
    return std::nullopt;
  }

 private:
  static std::string in_round(size_t at, const std::string& what) {
    return place_of_round(at) + ": " + what;
  }

  [[nodiscard]] Problem check_after(size_t at) const {
    const std::vector<size_t>& after = view_.bundle->rounds[at].after;
    for (size_t i = 0; i < after.size(); ++i) {
      if (after[i] >= at) {
        return in_round(at, "it is after round " + std::to_string(after[i]) +
                                ", expected rounds before " + std::to_string(at));
      }
      if (i > 0 && after[i] <= after[i - 1]) {
        return in_round(at, "it is after round " + std::to_string(after[i - 1]) + ", then " +
                                std::to_string(after[i]) + ": expected each once, ascending");
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] Problem check_part(const BundleRound& round, const RoundPart& part) const {
    const auto found = view_.place.find(part.member);
    if (found == view_.place.end()) {
      if (part.member >= view_.plan->redistributions.size())
        return is_not("its member", static_cast<int64_t>(part.member), "one of the bundle's");
      return "'" + view_.plan->redistributions[part.member].request.id +
             "' is not a member of the bundle";
    }
    const PlannedRedistribution& member = view_.member(found->second);
    const auto steps = std::ssize(member.steps);
    if (part.step < 0 || part.step >= steps)
      return is_not("step", part.step, "0 to " + std::to_string(steps - 1));
    const int64_t count = member.request.count;
    if (part.from < 0 || part.to > count || part.from >= part.to) {
      return "it has tensors " + std::to_string(part.from) + " to " + std::to_string(part.to) +
             ", expected some of 0 to " + std::to_string(count);
    }
    const auto at = static_cast<size_t>(part.step);
    const BundleStep& step = view_.steps_of(found->second)[at];
    if (auto problem = check_pieces(part, view_.kind[found->second], at)) return problem;
    if (!step.communicates)
      return std::string("step ") + std::to_string(part.step) + " (" + to_text(step.step->op) +
             ") does not communicate, so it runs in no round";
    if (step.step->op != round.op) {
      return "step " + std::to_string(part.step) + " is " + to_text(step.step->op) +
             " in a round of " + to_text(round.op);
    }
    return round.op == Op::exchange ? std::nullopt : check_like_first(round, part, *step.step);
  }

  [[nodiscard]] Problem check_pieces(const RoundPart& part, size_t kind, size_t step) const {
    if (part.pieces < 1 || part.pieces > most_tensor_pieces)
      return is_not("pieces", part.pieces, "1 to " + std::to_string(most_tensor_pieces));
    if (part.piece < 0 || part.piece >= part.pieces)
      return is_not("piece", part.piece, "0 to " + std::to_string(part.pieces - 1));
    if (view_.steps[kind][step].step->phases == 2) return check_phases(part, kind);
    if (part.pieces == 1 || may_go_in_pieces(view_, kind, step)) return std::nullopt;
    return "step " + std::to_string(part.step) + " goes in " + std::to_string(part.pieces) +
           " pieces, expected 1: only exchanges that reduce nothing do, of tensors with dims, and "
           "behind such exchanges alone";
  }

  // Of two phases: what is fetched and what is passed on in turn.
  [[nodiscard]] Problem check_phases(const RoundPart& part, size_t kind) const {
    const bool scalar = view_.member(kind).request.tensor.shape.empty();
    if (part.pieces % 2 == 0 && (part.pieces == 2 || !scalar)) return std::nullopt;
    return "step " + std::to_string(part.step) + " of two phases goes in " +
           std::to_string(part.pieces) + " pieces, expected " +
           (scalar ? "2" : "an even number of them");
  }

  // Collectives of one round run together: as one call on one group.
  [[nodiscard]] Problem check_like_first(const BundleRound& round, const RoundPart& part,
                                         const Step& step) const {
    const Step& first = step_of(round.parts.front());
    if (step.group != first.group) {
      return "it runs on group '" + step.group + "' where part 0 runs on '" + first.group + "'";
    }
    if (step.mesh_dims != first.mesh_dims) {
      return "step " + std::to_string(part.step) + " has other mesh dims than part 0, " +
             std::to_string(step.mesh_dims.size()) + " where that has " +
             std::to_string(first.mesh_dims.size());
    }
    return std::nullopt;
  }

  [[nodiscard]] const Step& step_of(const RoundPart& part) const {
    return view_.plan->redistributions[part.member].steps[part.step];
  }

  // Empty where they have several.
  [[nodiscard]] std::string common_group(const BundleRound& round) const {
    const std::string& first = step_of(round.parts.front()).group;
    for (const RoundPart& part : round.parts) {
      if (step_of(part).group != first) return {};
    }
    return first;
  }

  const BundleView& view_;
};

}  // namespace

BundleView make_bundle_view(const Plan& plan, const PlannedBundle& bundle) {
  BundleView view;
  view.plan = &plan;
  view.bundle = &bundle;
  const std::vector<size_t>& members = bundle.request.members;
  view.kind = firsts_of(plan.redistributions, members);
  view.steps.resize(members.size());
  view.place.reserve(members.size());
  for (size_t at = 0; at < members.size(); ++at) {
    view.place.emplace(members[at], at);
    if (view.kind[at] == at) view.steps[at] = steps_of_member(plan, view.member(at));
  }
  return view;
}

void fill_waves(BundleView& view) {
  const std::vector<BundleRound>& rounds = view.bundle->rounds;
  view.wave.assign(rounds.size(), 0);
  std::unordered_map<int64_t, size_t> last;  // round so far, by stream
  for (size_t r = 0; r < rounds.size(); ++r) {
    int64_t latest = -1;
    for (const size_t before : rounds[r].after) latest = std::max(latest, view.wave[before]);
    const auto [found, first] = last.try_emplace(rounds[r].stream, r);
    if (!first) latest = std::max(latest, view.wave[found->second]);
    found->second = r;
    view.wave[r] = latest + 1;
    view.waves = std::max(view.waves, latest + 2);
  }
}

StepView step_view(const BundleView& view, size_t kind, size_t step) {
  const Request& request = view.member(kind).request;
  const BundleStep& at = view.steps[kind][step];
  return {view.plan, at.from, at.to, &request.tensor, request.reduce_dtype, at.before, at.step};
}

bool may_go_in_pieces(const BundleView& view, size_t kind, size_t step) {
  if (view.member(kind).request.tensor.shape.empty()) return false;
  for (size_t s = 0; s <= step; ++s) {
    const Step& exchange = *view.steps[kind][s].step;
    if (exchange.op != Op::exchange || exchange.phases != 1 || exchange.reduce_op) return false;
  }
  return true;
}

bool phases_go_behind(const BundleView& view, size_t kind, size_t step) {
  return step > 0 && view.steps[kind][step].step->phases == 2 &&
         may_go_in_pieces(view, kind, step - 1);
}

std::vector<bool> steady_dims(const BundleView& view, size_t kind) {
  const std::vector<BundleStep>& steps = view.steps[kind];
  std::vector<bool> steady(view.member(kind).request.tensor.shape.size(), true);
  for (size_t step = 1; step < steps.size() && may_go_in_pieces(view, kind, step); ++step) {
    const auto& first = steps[0].step->state.shards;
    const auto& now = steps[step].step->state.shards;
    std::vector<bool> still = steady;
    for (size_t d = 0; d < steady.size(); ++d) still[d] = steady[d] && first[d] == now[d];
    // Where this step leaves none of those, they are what the steps before it leave.
    const bool any = std::find(still.begin(), still.end(), true) != still.end();
    if (!any && step > 1) break;
    steady = std::move(still);
    if (!any) break;
  }
  return steady;
}

std::string place_of_round(size_t round) { return "round " + std::to_string(round); }

Problem check_rounds(const BundleView& view) {
  const RoundRules rules(view);
  for (size_t r = 0; r < view.bundle->rounds.size(); ++r) {
    if (auto problem = rules.check(r)) return problem;
  }
  return std::nullopt;
}

}  // namespace meshplan::verification
