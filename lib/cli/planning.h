// Plans a spec for all commands: reads it, resolves options, plans, collects warnings.
#pragma once

#include <optional>
#include <string>

#include "api/texts.h"
#include "cli/arguments.h"
#include "cli/context.h"
#include "plan/plan.h"
#include "spec/spec.h"

namespace meshplan {

// --topology: a preset's name or a file, which is read as strictly as a spec's topology; else the
// spec's; else uniform. Problems go to context.diagnostics, those of the flag itself as problems of
// `path`; then there is no value and `code` is the exit code. Warnings of a file that is read join
// those of the spec.
[[nodiscard]] std::optional<Topology> settle_topology(Context& context, const std::string& path,
                                                      Spec& spec, const PlanningFlags& flags,
                                                      int& code);

// Everything from the file on. Problems go to context.diagnostics; then there is no value and
// `code` is the exit code. Warnings of the planners go there too, merged over the file.
[[nodiscard]] std::optional<PlannedSpec> plan_spec(Context& context, const std::string& path,
                                                   const PlanningFlags& flags, int& code);
// The same from text that was read already; `path` names it and gives the folder that the spec's
// own files are relative to. `again`: a recording in place of the spec's own (spec/spec.h).
[[nodiscard]] std::optional<PlannedSpec> plan_spec_text(Context& context, const std::string& path,
                                                        const std::string& text,
                                                        const PlanningFlags& flags, int& code,
                                                        const SpecText* again = nullptr);

// A spec alone, or the exit code.
[[nodiscard]] std::optional<Spec> load_spec(Context& context, const std::string& path, int& code);
// The same from text that was read already; `path` as in plan_spec_text.
[[nodiscard]] std::optional<Spec> load_spec_text(Context& context, const std::string& path,
                                                 const std::string& text, int& code);
// A plan file, or the exit code.
[[nodiscard]] std::optional<Plan> load_plan(Context& context, const std::string& path, int& code);
// The same from text that was read already; `path` names it.
[[nodiscard]] std::optional<Plan> load_plan_text(Context& context, const std::string& path,
                                                 const std::string& text, int& code);

}  // namespace meshplan
