// Traces in PyTorch's notation: the states that a redistribution passes through, joined by arrows.
#include "plan/plan.h"

namespace meshplan {

std::string trace_of(const State& src, const std::vector<Step>& steps, std::span<const int64_t> src_mesh_shape,
                     std::span<const int64_t> dst_mesh_shape) {
  std::string trace;
  trace.reserve((steps.size() + 1) * (6 * src_mesh_shape.size() + 3));
  append_text(trace, src, src_mesh_shape);
  for (const Step& step : steps) {
    const bool flattened = step.op != Op::exchange && (step.merged > 1 || step.mesh_dims.size() > 1);
    trace += flattened ? "-->" : "->";
    append_text(trace, step.state, step.mesh.empty() ? src_mesh_shape : dst_mesh_shape);
  }
  return trace;
}

}  // namespace meshplan
