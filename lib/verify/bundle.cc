#include "verify/bundle.h"

#include <unordered_set>

#include "base/int_math.h"
#include "verify/bundle_figures.h"
#include "verify/bundle_order.h"
#include "verify/bundle_view.h"
#include "verify/claims.h"

namespace meshplan {
namespace {

using verification::Problem;

// Of all that a bundle's proof looks at: parts, boxes, ranks in waves. Some seconds.
constexpr int64_t most_bundle_work = int64_t{1} << 31;

std::string place_of(const PlannedBundle& bundle) { return "bundle '" + bundle.request.id + "'"; }

Problem out_of_range(const char* what, int64_t is, int64_t least) {
  if (is >= least) return std::nullopt;
  return std::string(what) + " is " + std::to_string(is) + ", expected at least " +
         std::to_string(least);
}

Problem check_request(const Plan& plan, const PlannedBundle& bundle) {
  const BundleRequest& request = bundle.request;
  if (auto problem = out_of_range("count", request.count, 1)) return problem;
  if (auto problem = out_of_range("max_staging_bytes", request.max_staging_bytes, 0))
    return problem;
  if (auto problem = out_of_range("max_messages", request.max_messages, 1)) return problem;
  for (size_t i = 0; i < request.members.size(); ++i) {
    const size_t member = request.members[i];
    if (member >= plan.redistributions.size()) {
      return "member " + std::to_string(i) + " is redistribution " + std::to_string(member) +
             " of " + std::to_string(plan.redistributions.size());
    }
    if (i > 0 && member <= request.members[i - 1]) {
      return "its members '" + plan.redistributions[request.members[i - 1]].request.id + "' and '" +
             plan.redistributions[member].request.id +
             "' are out of order: each once, in the order of the plan";
    }
  }
  return std::nullopt;
}

// Members have no chunks, which would be pieces of their own, are not fetched by all, which takes
// staging beside their boxes, go in no laps or shifts and have no far share, which no bundle is
// planned with, and are counted.
Problem check_members(const Plan& plan, const PlannedBundle& bundle) {
  int64_t tensors = 0;
  for (const size_t at : bundle.request.members) {
    const PlannedRedistribution& member = plan.redistributions[at];
    if (auto problem = out_of_range("count", member.request.count, 1))
      return "member '" + member.request.id + "': " + *problem;
    tensors = saturating_add(tensors, member.request.count);
    for (size_t s = 0; s < member.steps.size(); ++s) {
      if (member.steps[s].fetched_by_all) {
        return "member '" + member.request.id + "', step " + std::to_string(s) +
               ": it is fetched by all, expected those that want it in a bundle";
      }
      if (member.steps[s].laps != 1) {
        return "member '" + member.request.id + "', step " + std::to_string(s) + ": its laps are " +
               std::to_string(member.steps[s].laps) + ", expected 1 in a bundle";
      }
      if (member.steps[s].at_once != 0) {
        return "member '" + member.request.id + "', step " + std::to_string(s) +
               ": its at_once is " + std::to_string(member.steps[s].at_once) +
               ", expected none in a bundle";
      }
      if (member.steps[s].far_64ths != 0) {
        return "member '" + member.request.id + "', step " + std::to_string(s) +
               ": it has a far share, expected the nearest holders alone in a bundle";
      }
      if (member.steps[s].chunks == 1) continue;
      return "member '" + member.request.id + "', step " + std::to_string(s) + ": chunks is " +
             std::to_string(member.steps[s].chunks) + ", expected 1 in a bundle";
    }
  }
  if (bundle.tensors == tensors) return std::nullopt;
  return "tensors is " + std::to_string(bundle.tensors) + ", its members have " +
         std::to_string(tensors);
}

// What it says of itself beside what is counted.
Problem check_bounds(const PlannedBundle& bundle) {
  const BundleTotals& totals = bundle.totals;
  const auto rounds = std::ssize(bundle.rounds);
  if (totals.rounds != rounds) {
    return "its total of rounds is " + std::to_string(totals.rounds) + ", it has " +
           std::to_string(rounds);
  }
  const int64_t predicted = ns_of_ps(totals.predicted_ps);
  const int64_t least = ns_of_ps(totals.lower_bound_ps);
  if (auto problem = out_of_range("lower_bound_ns", least, 0)) return problem;
  if (least > predicted) {
    return "its lower_bound_ns is " + std::to_string(least) + ", above its predicted_ns, " +
           std::to_string(predicted);
  }
  const int64_t gap = ns_of_ps(bundle.proven_gap_ps);
  if (gap != predicted - least) {
    return "its proven_gap_ns is " + std::to_string(gap) +
           ", its predicted_ns less its lower_bound_ns is " + std::to_string(predicted - least);
  }
  const int64_t alone = ns_of_ps(bundle.alone_ps);
  if (alone < least) {
    return "its alone_ns is " + std::to_string(alone) +
           ", which no schedule takes: its lower_bound_ns is " + std::to_string(least);
  }
  return std::nullopt;
}

}  // namespace

Result<Recounted> verify_bundle(const Plan& plan, const PlannedBundle& bundle) {
  const auto wrong = [&](const Problem& problem) {
    return wrong_data(place_of(bundle) + ": " + *problem);
  };
  const auto refused = [&] {
    return environment(place_of(bundle) +
                       ": its rounds have more ranks, parts and boxes than are looked at one by "
                       "one, " +
                       std::to_string(most_bundle_work) + " in all: make several bundles of it");
  };
  if (auto problem = verification::check_topology_numbers(plan.topology)) return wrong(problem);
  if (auto problem = check_request(plan, bundle)) return wrong(problem);
  if (auto problem = check_members(plan, bundle)) return wrong(problem);
  verification::BundleView view = verification::make_bundle_view(plan, bundle);
  if (auto problem = verification::check_rounds(view)) return wrong(problem);
  verification::fill_waves(view);
  verification::WorkLeft work{most_bundle_work};
  std::vector<verification::BoxLife> lives;
  if (auto problem = verification::check_order(view, work, lives)) return wrong(problem);
  if (work.used_up()) return refused();
  const verification::BundleFigures figures = verification::count_bundle(view, lives, work);
  if (figures.refused) return refused();
  if (figures.problem) return wrong(figures.problem);
  if (auto problem = check_bounds(bundle)) return wrong(problem);
  Recounted recounted{figures.ps, {}};
  for (const std::string& what : figures.left_out)
    recounted.left_out.push_back(place_of(bundle) + ", " + what);
  return recounted;
}

namespace verification {

Problem check_bundle_members(const Plan& plan) {
  std::unordered_set<std::string> ids;
  for (const PlannedBundle& bundle : plan.bundles) {
    if (bundle.request.id.empty()) return std::string("a bundle has an empty id");
    if (!ids.insert(bundle.request.id).second)
      return "two bundles are called '" + bundle.request.id + "'";
    if (auto problem = check_request(plan, bundle)) return place_of(bundle) + ": " + *problem;
  }
  std::vector<const PlannedBundle*> of(plan.redistributions.size(), nullptr);
  for (const PlannedBundle& bundle : plan.bundles) {
    for (const size_t member : bundle.request.members) {
      if (of[member] != nullptr) {
        return "redistribution '" + plan.redistributions[member].request.id + "' is in bundle '" +
               of[member]->request.id + "' and in bundle '" + bundle.request.id +
               "', expected in one";
      }
      of[member] = &bundle;
    }
  }
  return std::nullopt;
}

std::vector<bool> bundled(const Plan& plan) {
  std::vector<bool> in(plan.redistributions.size(), false);
  for (const PlannedBundle& bundle : plan.bundles) {
    for (const size_t member : bundle.request.members) in[member] = true;
  }
  return in;
}

}  // namespace verification
}  // namespace meshplan
