// The states of a plan as graphs, and its steps on a timeline, for tools that draw them.
#pragma once

#include <string>

#include "render/plan_view.h"

namespace meshplan {

// A Mermaid flowchart: one subgraph a redistribution, states as nodes, steps as arrows.
[[nodiscard]] std::string render_mermaid(const Plan& plan, const ShowOptions& options);
// The same for Graphviz.
[[nodiscard]] std::string render_dot(const Plan& plan, const ShowOptions& options);
// The predicted timeline, as trace events that Perfetto and chrome://tracing read: one
// redistribution after the other, each as long as it takes as often as it happens; its steps are
// drawn once, each as long as all its repetitions. Then bundles, in place of their members: rounds
// by stream, each as long as alone, and the whole as long as its waves, as often as it happens.
[[nodiscard]] std::string render_perfetto(const Plan& plan, const ShowOptions& options);

}  // namespace meshplan
