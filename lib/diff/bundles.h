// What differs between the bundles of two plans, one sentence each.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/plan.h"

namespace meshplan {

// The id of the bundle that redistribution `i` of one plan and `j` of the other are in; "": none.
[[nodiscard]] std::string common_bundle(const Plan& before, size_t i, const Plan& after, size_t j);

// Bundles are matched by id. "bundle sync: 12 rounds and 401 ms predicted, was 9 and 395 ms"
[[nodiscard]] std::vector<std::string> compare_bundles(const Plan& before, const Plan& after);

// What the bundle of a redistribution may have to do with its other steps: members are planned
// together.
class BundleCauses {
 public:
  BundleCauses(const Plan& before, const Plan& after) : before_(before), after_(after) {}
  // Of redistribution `i` of one plan and `j` of the other. "bundle sync: max_messages 8, was 64";
  // none where nothing of it was asked for otherwise.
  [[nodiscard]] const std::vector<std::string>& of(size_t i, size_t j);

 private:
  const Plan& before_;
  const Plan& after_;
  // By the bundles before and after.
  std::map<std::pair<const PlannedBundle*, const PlannedBundle*>, std::vector<std::string>> known_;
};

}  // namespace meshplan
