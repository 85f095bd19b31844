#include "verify/verify.h"

#include <algorithm>

#include "base/text.h"
#include "plan/firsts.h"
#include "tensor/box.h"
#include "verify/bundle.h"
#include "verify/claims.h"
#include "verify/coverage.h"
#include "verify/figures.h"
#include "verify/other_plans.h"
#include "verify/sentences.h"
#include "verify/step_rules.h"
#include "verify/warnings.h"

namespace meshplan {
namespace {

using verification::Problem;

std::string place_of(const PlannedRedistribution& redistribution) {
  return "redistribution '" + redistribution.request.id + "'";
}

// Whether both states give every rank the same elements and leave the same reductions pending.
bool same_state(const State& a, const State& b, std::span<const int64_t> mesh_shape,
                std::span<const int64_t> shape) {
  if (a == b) return true;
  const State* const states[] = {&a, &b};
  verification::Digits digits;
  if (!verification::make_digits(mesh_shape, states, {}, digits)) return false;
  verification::DigitState in_a;
  verification::DigitState in_b;
  verification::to_digits(a, digits, in_a);
  verification::to_digits(b, digits, in_b);
  return verification::same_contents(digits, in_a, in_b, shape);
}

// The target reached against the one asked for: the same sub-axes where the planner chose the
// order; in backward direction a Partial target is Replicate where the source is not Partial.
Problem check_target(const PlannedRedistribution& redistribution) {
  const Request& request = redistribution.request;
  const State& reached = redistribution.dst;
  if (reached == request.dst && request.direction == Direction::forward) return std::nullopt;
  State asked = request.dst;
  if (request.direction == Direction::backward && request.src_mesh == request.dst_mesh) {
    std::erase_if(asked.partial, [&](const PendingSubAxis& target) {
      return std::none_of(request.src.partial.begin(), request.src.partial.end(),
                          [&](const PendingSubAxis& source) {
                            return source.sub_axis.mesh_dim == target.sub_axis.mesh_dim;
                          });
    });
  }
  if (request.any_dst_order) {
    State sorted = reached;
    for (std::vector<SubAxis>& list : sorted.shards) std::sort(list.begin(), list.end());
    for (std::vector<SubAxis>& list : asked.shards) std::sort(list.begin(), list.end());
    if (sorted == asked) return std::nullopt;
  } else if (reached == asked) {
    return std::nullopt;
  }
  return std::string("dst is not the target that the request asks for");
}

Error error_at(const PlannedRedistribution& redistribution, const std::string& problem) {
  return wrong_data(place_of(redistribution) + ": " + problem);
}

Error error_at(const PlannedRedistribution& redistribution, size_t step,
               const std::string& problem) {
  return wrong_data(place_of(redistribution) + ", step " + std::to_string(step) + " (" +
                    to_text(redistribution.steps[step].op) + "): " + problem);
}

// No steps between two meshes: right only where every rank of the target holds its new box already.
// By ranks, as nothing else relates two meshes, and so by as many as are listed in a moment;
// planned redistributions across meshes have a step.
constexpr int64_t most_compared_ranks = 1'048'576;

Status check_without_crossing(const Mesh& src_mesh, const Mesh& dst_mesh,
                              const PlannedRedistribution& redistribution) {
  const Error problem =
      error_at(redistribution, "no step takes the data from mesh '" + src_mesh.name +
                                   "' to mesh '" + dst_mesh.name + "'");
  const Request& request = redistribution.request;
  const std::vector<int64_t> src_shape = mesh_shape(src_mesh);
  const std::vector<int64_t> dst_shape = mesh_shape(dst_mesh);
  if (same_devices(src_mesh, dst_mesh) &&
      same_state(request.src, redistribution.dst, src_shape, request.tensor.shape))
    return Done{};
  if (!request.src.partial.empty() || !redistribution.dst.partial.empty()) return problem;
  const int64_t ranks = std::max(mesh_size(src_mesh), mesh_size(dst_mesh));
  if (ranks > most_compared_ranks) {
    return environment(place_of(redistribution) + ": no step takes it from mesh '" + src_mesh.name +
                       "' to mesh '" + dst_mesh.name +
                       "', and whether that is right is compared rank by rank, for at most " +
                       std::to_string(most_compared_ranks) + " ranks; these are " +
                       std::to_string(ranks) + ": plan it again with meshplan plan");
  }
  const std::vector<int64_t> src_ranks = materialise(src_mesh);
  const std::vector<int64_t> dst_ranks = materialise(dst_mesh);
  std::vector<std::pair<int64_t, int64_t>> by_rank;
  for (size_t i = 0; i < src_ranks.size(); ++i)
    by_rank.emplace_back(src_ranks[i], static_cast<int64_t>(i));
  std::sort(by_rank.begin(), by_rank.end());
  for (size_t i = 0; i < dst_ranks.size(); ++i) {
    const Box need = box_of(redistribution.dst, request.tensor.shape, dst_shape,
                            coordinates_of(static_cast<int64_t>(i), dst_shape));
    if (volume(need) == 0) continue;
    auto holder =
        std::lower_bound(by_rank.begin(), by_rank.end(), std::pair{dst_ranks[i], int64_t{0}});
    if (holder == by_rank.end() || holder->first != dst_ranks[i]) return problem;
    const Box held = box_of(request.src, request.tensor.shape, src_shape,
                            coordinates_of(holder->second, src_shape));
    if (intersect(need, held) != need) return problem;
  }
  return Done{};
}

// The steps of one redistribution in their order: the state that each finds, and the mesh it is on.
class StepWalk {
 public:
  StepWalk(const Plan& plan, const PlannedRedistribution& redistribution)
      : plan_(plan),
        redistribution_(redistribution),
        request_(redistribution.request),
        src_mesh_(plan.meshes.meshes[request_.src_mesh]),
        dst_mesh_(plan.meshes.meshes[request_.dst_mesh]),
        crosses_(request_.src_mesh != request_.dst_mesh),
        src_shape_(mesh_shape(src_mesh_)),
        dst_shape_(crosses_ ? mesh_shape(dst_mesh_) : src_shape_),
        before_(&request_.src),
        on_dst_(!crosses_) {}

  [[nodiscard]] Status check_ends() const {
    const std::vector<int64_t>& shape = request_.tensor.shape;
    if (std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < 0; }))
      return error_at(redistribution_, "its tensor has a negative size");
    if (auto problem = verification::check_state(request_.src, src_shape_, shape.size()))
      return error_at(redistribution_, "source: " + *problem);
    if (auto problem = verification::check_state(redistribution_.dst, dst_shape_, shape.size()))
      return error_at(redistribution_, "target: " + *problem);
    if (auto problem = check_target(redistribution_)) return error_at(redistribution_, *problem);
    return Done{};
  }

  // The ends are checked.
  Status check_steps() {
    trace_ = to_text(request_.src, src_shape_);
    for (size_t i = 0; i < redistribution_.steps.size(); ++i) {
      if (auto problem = check_step(redistribution_.steps[i]))
        return error_at(redistribution_, i, *problem);
    }
    return Done{};
  }

  [[nodiscard]] Status check_arrival() const {
    const std::vector<Step>& steps = redistribution_.steps;
    if (!on_dst_) {
      if (steps.empty()) return check_without_crossing(src_mesh_, dst_mesh_, redistribution_);
      return error_at(redistribution_, "no step takes it to mesh '" + dst_mesh_.name + "'");
    }
    if (same_state(*before_, redistribution_.dst, dst_shape_, request_.tensor.shape)) return Done{};
    const std::string reached = to_text(*before_, dst_shape_);
    const std::string asked = to_text(redistribution_.dst, dst_shape_);
    if (steps.empty())
      return error_at(redistribution_, "it has no steps, but " + reached + " is not " + asked);
    return error_at(redistribution_, steps.size() - 1,
                    "it ends at " + reached + ", but the target is " + asked);
  }

  // What the redistribution says of itself besides its steps.
  [[nodiscard]] Status check_notes() const {
    if (redistribution_.trace != trace_) {
      return error_at(redistribution_, "its trace is not that of its steps: '" +
                                           redistribution_.trace + "' where they have '" + trace_ +
                                           "'");
    }
    Problem problem = verification::check_unmerged_trace(redistribution_, src_shape_);
    if (!problem) problem = verification::check_reductions(plan_, redistribution_, src_shape_);
    if (!problem) problem = verification::check_warnings(plan_, redistribution_);
    if (!problem) problem = verification::check_totals(redistribution_);
    if (problem) return error_at(redistribution_, *problem);
    return Done{};
  }

 private:
  Problem check_step(const Step& step) {
    const bool lands_on_dst = crosses_ && step.mesh == dst_mesh_.name;
    if (!step.mesh.empty() && !lands_on_dst &&
        (!crosses_ || on_dst_ || step.mesh != src_mesh_.name))
      return "its state is on mesh '" + step.mesh + "', where it cannot be";
    if (crosses_ && on_dst_ && !lands_on_dst)
      return std::string("its state is back on the source's mesh");
    const bool crossing = lands_on_dst && !on_dst_;
    const Mesh* from = !crosses_ ? nullptr : on_dst_ ? &dst_mesh_ : &src_mesh_;
    on_dst_ = on_dst_ || lands_on_dst;
    const Mesh& mesh = on_dst_ ? dst_mesh_ : src_mesh_;
    const std::vector<int64_t>& sizes = on_dst_ ? dst_shape_ : src_shape_;
    const std::vector<int64_t>& shape = request_.tensor.shape;
    Problem problem = crossing ? verification::check_crossing(src_shape_, dst_shape_, shape.size(),
                                                              *before_, step)
                               : verification::check_step(mesh, sizes, shape, *before_, step);
    if (!problem)
      problem = verification::check_group(plan_, redistribution_.rules, mesh, from, sizes, step);
    if (!problem && step.phases > 1 && plan_.topology.levels.size() < 2)
      problem = "two phases on a topology of one level";
    if (!problem && step.far_64ths > 0 && plan_.topology.levels.size() < 2)
      problem = "a far share on a topology of one level, which has no far holders";
    if (!problem) problem = verification::check_merged(step);
    if (!problem && crossing && step.logical_shape != shape)
      problem = "its logical shape is not that of the tensor, which it moves whole";
    if (!problem && !crossing)
      problem = verification::check_logical_shape(redistribution_, sizes, *before_, step);
    if (!problem)
      problem = verification::check_reason(redistribution_, step, dim_names(mesh), sizes);
    if (problem) return problem;
    trace_ += arrow_of(step);
    append_text(trace_, step.state, sizes);
    before_ = &step.state;
    return std::nullopt;
  }

  const Plan& plan_;
  const PlannedRedistribution& redistribution_;
  const Request& request_;
  const Mesh& src_mesh_;
  const Mesh& dst_mesh_;
  bool crosses_;
  std::vector<int64_t> src_shape_;
  std::vector<int64_t> dst_shape_;
  const State* before_;
  std::string trace_;
  bool on_dst_;
};

}  // namespace

Status verify_redistribution(const Plan& plan, const PlannedRedistribution& redistribution) {
  const Request& request = redistribution.request;
  const size_t meshes = plan.meshes.meshes.size();
  if (request.src_mesh >= meshes || request.dst_mesh >= meshes)
    return error_at(redistribution, "its mesh is not in the plan");
  StepWalk walk(plan, redistribution);
  if (Status right = walk.check_ends(); !right) return right;
  if (Status right = walk.check_steps(); !right) return right;
  if (Status right = walk.check_arrival(); !right) return right;
  return walk.check_notes();
}

Result<Recounted> verify_figures(const Plan& plan, const PlannedRedistribution& redistribution) {
  const auto refused = [&](const verification::WrongFigure& wrong) {
    return wrong.step ? error_at(redistribution, *wrong.step, wrong.what)
                      : error_at(redistribution, wrong.what);
  };
  if (const auto wrong = verification::check_options(plan, redistribution)) return refused(*wrong);
  verification::Figures figures;
  if (const auto wrong = verification::check_figures(plan, redistribution, figures))
    return refused(*wrong);
  Recounted recounted{figures.ps, {}};
  for (const std::string& step : figures.left_out)
    recounted.left_out.push_back(place_of(redistribution) + ", " + step);
  return recounted;
}

Status verify_claims(const Plan& plan, const PlannedRedistribution& redistribution) {
  if (const auto problem = verification::check_bounds(redistribution))
    return error_at(redistribution, *problem);
  if (const auto problem = verification::check_alternatives(plan, redistribution))
    return error_at(redistribution, *problem);
  if (const auto problem = verification::check_audit(plan, redistribution))
    return error_at(redistribution, *problem);
  if (const auto problem = verification::check_savings(plan, redistribution))
    return error_at(redistribution, *problem);
  return Done{};
}

Status verify_plan(const Plan& plan, std::vector<std::string>* left_out) {
  if (auto problem = verification::check_topology_numbers(plan.topology))
    return wrong_data(*problem);
  if (auto problem = verification::check_meshes(plan)) return wrong_data(*problem);
  if (auto problem = verification::check_names(plan)) return wrong_data(*problem);
  if (auto problem = verification::check_bundle_members(plan)) return wrong_data(*problem);
  // What repeats another, in all but id and count, is proven with it.
  const std::vector<size_t> firsts = firsts_of(plan.redistributions);
  verification::CountedTimes ps;
  for (size_t i = 0; i < plan.redistributions.size(); ++i) {
    const PlannedRedistribution& redistribution = plan.redistributions[i];
    if (firsts[i] != i) {
      ps.push_back(ps[firsts[i]]);
      continue;
    }
    if (Status status = verify_redistribution(plan, redistribution); !status) return status;
    auto recounted = verify_figures(plan, redistribution);
    if (!recounted) return recounted.error();
    if (Status status = verify_claims(plan, redistribution); !status) return status;
    ps.push_back(recounted->ps);
    if (left_out != nullptr)
      left_out->insert(left_out->end(), recounted->left_out.begin(), recounted->left_out.end());
  }
  verification::CountedTimes bundle_ps;
  for (const PlannedBundle& bundle : plan.bundles) {
    auto recounted = verify_bundle(plan, bundle);
    if (!recounted) return recounted.error();
    bundle_ps.push_back(recounted->ps);
    if (left_out != nullptr)
      left_out->insert(left_out->end(), recounted->left_out.begin(), recounted->left_out.end());
  }
  if (auto problem = verification::check_groups(plan)) return wrong_data(*problem);
  if (auto problem = verification::check_file_totals(plan)) return wrong_data(*problem);
  if (auto problem = verification::check_file_times(plan, ps, bundle_ps))
    return wrong_data(*problem);
  return Done{};
}

std::vector<std::string> compared_only(const Plan& plan) {
  int64_t gaps = 0;
  int64_t alternatives = 0;
  int64_t findings = 0;
  int64_t savings = 0;
  for (const PlannedRedistribution& redistribution : plan.redistributions) {
    gaps += verification::has_gap_of_its_own(redistribution) ? 1 : 0;
    alternatives += std::ssize(redistribution.alternatives);
    findings += std::ssize(redistribution.audit);
    for (const Warning& warning : redistribution.warnings) savings += warning.saves_ns != 0 ? 1 : 0;
  }
  std::vector<std::string> claims{"lower bounds"};
  const auto add = [&](int64_t count, const char* one, const char* many) {
    if (count > 0) claims.push_back(with_commas(count) + (count == 1 ? one : many));
  };
  add(gaps, " gap of a search", " gaps of searches");
  add(alternatives, " alternative", " alternatives");
  add(findings, " audit finding", " audit findings");
  add(savings, " warning's savings", " warnings' savings");
  add(std::ssize(plan.bundles), " bundle's time of its members alone",
      " bundles' times of their members alone");
  return claims;
}

}  // namespace meshplan
