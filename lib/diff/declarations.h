// What two files declare otherwise, and which redistributions that can be the cause of.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace meshplan {

struct DeclarationChange {
  enum class Kind : uint8_t { mesh, flatten, topology, options };
  Kind kind = Kind::options;
  std::string text;                 // "flatten dp_tp over dp, tp is no longer declared"
  std::string mesh;                 // the mesh concerned; empty: all
  std::vector<std::string> dims{};  // of a flatten
};

[[nodiscard]] std::vector<DeclarationChange> compare_declarations(const Plan& old_plan, const Plan& new_plan);

// Whether the change can be why this redistribution differs: its mesh, a set of dims that its steps or warnings use, or everything.
[[nodiscard]] bool concerns(const DeclarationChange& change, const Plan& old_plan, const PlannedRedistribution& before,
                            const Plan& new_plan, const PlannedRedistribution& after);

// "bfloat16[4096, 4096] P(sum)R -> RR on mesh, reduced in float32"
[[nodiscard]] std::string request_text(const Plan& plan, const PlannedRedistribution& redistribution);
// What the two requests ask otherwise, one sentence each.
[[nodiscard]] std::vector<std::string> request_changes(const Plan& old_plan, const PlannedRedistribution& before, const Plan& new_plan,
                                                       const PlannedRedistribution& after);

}  // namespace meshplan
