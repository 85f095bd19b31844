#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "replay/executor.h"

namespace meshplan {
namespace {

// Refuses ids that the plan does not have.
Status check_ids(const Plan& plan, const std::vector<std::string>& asked) {
  if (asked.empty()) return Done{};
  std::vector<std::string> ids;
  for (const PlannedRedistribution& r : plan.redistributions) ids.push_back(r.request.id);
  for (const PlannedBundle& bundle : plan.bundles) ids.push_back(bundle.request.id);
  const std::set<std::string> known(ids.begin(), ids.end());
  for (const std::string& id : asked) {
    if (known.contains(id)) continue;
    std::string message = "the plan has no redistribution '" + id + "'";
    if (auto near = nearest(id, ids)) message += "; did you mean '" + *near + "'?";
    return bad_input(message);
  }
  return Done{};
}

}  // namespace

Result<std::vector<ReplayUnit>> replay_units(const Plan& plan, const ReplayOptions& options) {
  if (auto known = check_ids(plan, options.only_ids); !known) return known.error();
  const std::set<std::string> asked(options.only_ids.begin(), options.only_ids.end());
  std::map<size_t, const PlannedBundle*> bundle_of;  // by member
  for (const PlannedBundle& bundle : plan.bundles) {
    for (const size_t member : bundle.request.members) bundle_of[member] = &bundle;
  }
  std::vector<ReplayUnit> units;
  std::set<const PlannedBundle*> taken;
  for (size_t i = 0; i < plan.redistributions.size(); ++i) {
    const PlannedRedistribution& r = plan.redistributions[i];
    const auto in = bundle_of.find(i);
    if (in == bundle_of.end() || asked.contains(r.request.id)) {
      if (asked.empty() || asked.contains(r.request.id)) units.push_back({&r, nullptr});
    }
    if (in == bundle_of.end()) continue;
    const bool wanted = asked.empty() || asked.contains(in->second->request.id);
    if (wanted && taken.insert(in->second).second) units.push_back({nullptr, in->second});
  }
  return units;
}

}  // namespace meshplan
