#include "plan/asked_ids.h"

#include <algorithm>
#include <unordered_set>

#include "base/text.h"
#include "base/utf8.h"

namespace meshplan {

Status check_asked_ids(const Plan& plan, std::span<const std::string> asked, AskedIds kind) {
  if (asked.empty()) return Done{};
  std::vector<std::string> ids;
  for (const PlannedRedistribution& r : plan.redistributions) ids.push_back(r.request.id);
  if (kind == AskedIds::of_bundles_too) {
    for (const PlannedBundle& bundle : plan.bundles) ids.push_back(bundle.request.id);
  }
  const std::unordered_set<std::string_view> known(ids.begin(), ids.end());
  for (const std::string& id : asked) {
    if (known.contains(id)) continue;
    for (const PlannedBundle& bundle : plan.bundles) {
      if (bundle.request.id != id || bundle.request.members.empty()) continue;
      return bad_input("'" + one_line(id) +
                       "' is a bundle, not a redistribution; name its members, '" +
                       one_line(ids[bundle.request.members[0]]) + "' the first");
    }
    const auto near = nearest(id, ids);
    return bad_input("the plan has no redistribution '" + one_line(id) + "'" +
                     (near ? "; did you mean '" + one_line(*near) + "'?" : ""));
  }
  return Done{};
}

std::vector<std::string> bundles_that_move(const Plan& plan, std::span<const std::string> asked) {
  const std::unordered_set<std::string_view> named(asked.begin(), asked.end());
  std::vector<std::string> ids;
  for (const PlannedBundle& bundle : plan.bundles) {
    const auto& members = bundle.request.members;
    if (named.empty() || std::any_of(members.begin(), members.end(), [&](size_t member) {
          return named.contains(plan.redistributions[member].request.id);
        }))
      ids.push_back(bundle.request.id);
  }
  return ids;
}

}  // namespace meshplan
