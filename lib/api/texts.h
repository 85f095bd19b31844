// Texts in, answers out: what the command line and other programs (meshplan.h) ask alike.
//
//     spec text  ->  read, options settled, planned, warnings collected  ->  plan
//     plan text  ->  read                                                ->  plan
//
// What is wrong goes to `diagnostics`, each with its place; then there is no value, and `code` is
// the exit code of the command that asked.
#pragma once

#include <optional>
#include <string>

#include "api/warnings.h"
#include "diag/diagnostic.h"
#include "plan/plan.h"
#include "spec/spec.h"

namespace meshplan {

struct PlannedSpec {
  Spec spec;
  Plan plan;
  bool warnings_fail = false;  // some warning is an error by the policy
};

struct SpecQuestion {
  std::string name;                  // of the text, in places: "spec.json"
  GivenOptions options;              // these override the spec's
  std::optional<Topology> topology;  // this one too; neither: uniform
  WarningPolicy warnings;
};
[[nodiscard]] Topology settled_topology(const Spec& spec, const SpecQuestion& question);

// `read_file`: for files that the spec names.
[[nodiscard]] std::optional<PlannedSpec> plan_spec_text(const std::string& text,
                                                        const FileReader& read_file,
                                                        const SpecQuestion& question,
                                                        Diagnostics& diagnostics, int& code);
// The same of a spec that was read already; `text` is where its places are.
[[nodiscard]] std::optional<PlannedSpec> plan_read_spec(Spec spec, const std::string& text,
                                                        const SpecQuestion& question,
                                                        Diagnostics& diagnostics, int& code);

[[nodiscard]] std::optional<Plan> load_plan_text(const std::string& text, const std::string& name,
                                                 Diagnostics& diagnostics, int& code);

}  // namespace meshplan
