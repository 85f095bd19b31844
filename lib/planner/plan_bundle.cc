#include "planner/plan_bundle.h"

#include <string>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "cost/listed_bounds.h"
#include "planner/bundle_members.h"
#include "planner/bundle_schedule.h"
#include "planner/bundles.h"

namespace meshplan {
namespace {

// What is tried with this limit leads to little staging, and is the same whatever the bundle
// allows.
constexpr int64_t narrowest_staging = 1;
// Where a proof refuses a schedule, others are counted of less, and at last such that have no pairs
// of ranks.
constexpr BundleEffort efforts[] = {{most_counted, Ways::all},
                                    {most_counted / 8, Ways::all},
                                    {most_counted / 64, Ways::all},
                                    {most_counted, Ways::of_collectives}};

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

namespace {

Result<PlannedBundle> plan_within(Plan& plan, const BundleRequest& bundle, PlanGroups& groups,
                                  const BundleEffort& effort) {
  const int64_t allowed = bundle.max_staging_bytes;
  TriedBundle tried = try_bundle(plan, bundle, groups, allowed, effort);
  if (tried.planned || !tried.least_staging) return std::move(tried.planned);
  if (allowed == narrowest_staging) return needs_staging(bundle, *tried.least_staging);
  TriedBundle narrow = try_bundle(plan, bundle, groups, narrowest_staging, effort);
  if (narrow.planned) return std::move(narrow.planned);
  const int64_t least = *tried.least_staging;
  const int64_t enough = narrow.least_staging.value_or(least);
  if (least >= enough) return needs_staging(bundle, enough);
  BundleRequest raised = bundle;
  raised.max_staging_bytes = least;
  const bool fits = try_bundle(plan, raised, groups, least, effort).planned.ok();
  return needs_staging(bundle, fits ? least : enough);
}

// The members of a bundle as they were, each for itself: those of one question once.
class Alone {
 public:
  Alone(const Plan& plan, const BundleRequest& bundle) : members_(bundle.members) {
    std::unordered_map<const Step*, size_t> known;  // by the steps, which like members share
    for (const size_t member : members_) {
      const PlannedRedistribution& entry = plan.redistributions[member];
      const size_t next = entries_.size();
      const size_t at =
          entry.steps.empty() ? next : known.try_emplace(&entry.steps.front(), next).first->second;
      if (at == next) entries_.push_back(entry);
      entry_of_.push_back(at);
    }
  }
  void restore(Plan& plan) const {
    for (size_t i = 0; i < members_.size(); ++i)
      answer_as(entries_[entry_of_[i]], plan.redistributions[members_[i]]);
  }

 private:
  const std::vector<size_t>& members_;
  std::vector<PlannedRedistribution> entries_;
  std::vector<size_t> entry_of_;  // of each member
};

}  // namespace

Result<PlannedBundle> plan_bundle(Plan& plan, const BundleRequest& bundle, PlanGroups& groups,
                                  const BundleProof& proof) {
  const Alone alone(plan, bundle);
  Status refused = Done{};  // by the first proof
  for (const BundleEffort& effort : efforts) {
    auto planned = plan_within(plan, bundle, groups, effort);
    if (!planned) return refused ? planned.error() : refused.error();
    const Status proven = proof(*planned);
    if (proven) return planned;
    if (refused) refused = proven;
    alone.restore(plan);
  }
  return refused.error();
}

}  // namespace meshplan
