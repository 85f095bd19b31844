#include "planner/plan_bundle.h"

#include <string>
#include <utility>

#include "base/text.h"
#include "cost/listed_bounds.h"
#include "planner/bundle_schedule.h"
#include "planner/bundles.h"

namespace meshplan {
namespace {

// What is tried with this limit leads to little staging, and is the same whatever the bundle
// allows.
constexpr int64_t narrowest_staging = 1;

}  // namespace

std::vector<PlanFailure> refused_bundles(const MeshTable& meshes,
                                         const std::vector<BundleRequest>& bundles) {
  const int64_t ranks = rank_count(meshes);
  std::vector<PlanFailure> failures;
  if (ranks <= bounded_ranks) return failures;
  for (size_t b = 0; b < bundles.size(); ++b) {
    failures.push_back(
        {bundles[b].members.front(),
         no_plan("bundle '" + bundles[b].id + "' is in a file of " + with_commas(ranks) +
                 " ranks; bundles are planned on at most " + with_commas(bounded_ranks) +
                 ": put it into a file of its own meshes"),
         b});
  }
  return failures;
}

Result<PlannedBundle> plan_bundle(Plan& plan, const BundleRequest& bundle, PlanGroups& groups) {
  const int64_t allowed = bundle.max_staging_bytes;
  TriedBundle tried = try_bundle(plan, bundle, groups, allowed);
  if (tried.planned || !tried.least_staging) return std::move(tried.planned);
  if (allowed == narrowest_staging) return needs_staging(bundle, *tried.least_staging);
  TriedBundle narrow = try_bundle(plan, bundle, groups, narrowest_staging);
  if (narrow.planned) return std::move(narrow.planned);
  const int64_t least = *tried.least_staging;
  const int64_t enough = narrow.least_staging.value_or(least);
  if (least >= enough) return needs_staging(bundle, enough);
  BundleRequest raised = bundle;
  raised.max_staging_bytes = least;
  const bool fits = try_bundle(plan, raised, groups, least).planned.ok();
  return needs_staging(bundle, fits ? least : enough);
}

}  // namespace meshplan
