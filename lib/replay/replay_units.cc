#include <map>
#include <set>

#include "plan/asked_ids.h"
#include "replay/executor.h"

namespace meshplan {

Result<std::vector<ReplayUnit>> replay_units(const Plan& plan, const ReplayOptions& options) {
  if (auto known = check_asked_ids(plan, options.only_ids, AskedIds::of_bundles_too); !known)
    return known.error();
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
