// Differences in the declarations of two files, and the redistributions that they can affect.
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

[[nodiscard]] std::vector<DeclarationChange> compare_declarations(const Plan& old_plan,
                                                                  const Plan& new_plan);

// Whether the change can be the cause of a difference of this redistribution: it concerns its mesh,
// dims that its steps or warnings use, or everything.
[[nodiscard]] bool concerns(const DeclarationChange& change, const Plan& old_plan,
                            const PlannedRedistribution& before, const Plan& new_plan,
                            const PlannedRedistribution& after);

// "bfloat16[4096, 4096] P(sum)R -> RR on mesh, reduced in float32"
[[nodiscard]] std::string request_text(const Plan& plan,
                                       const PlannedRedistribution& redistribution);
// The differences of the two requests, one sentence each.
[[nodiscard]] std::vector<std::string> request_changes(const Plan& old_plan,
                                                       const PlannedRedistribution& before,
                                                       const Plan& new_plan,
                                                       const PlannedRedistribution& after);

// What else plans list of it where they are asked to (`--audit`, `--alternatives`), whether its
// steps differ or not: "the audit's findings are A0408; were none".
[[nodiscard]] std::vector<std::string> listing_changes(const PlannedRedistribution& before,
                                                       const PlannedRedistribution& after);

}  // namespace meshplan
