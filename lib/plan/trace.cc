// Traces in PyTorch's notation: the states that a redistribution passes through, joined by arrows.
#include "plan/plan.h"

namespace meshplan {
namespace {

// `shape_of(step)`: the mesh shape that the step's state is on.
template <class ShapeOf>
std::string joined(const State& src, const std::vector<Step>& steps,
                   std::span<const int64_t> src_mesh_shape, ShapeOf shape_of) {
  std::string trace;
  trace.reserve((steps.size() + 1) * (6 * src_mesh_shape.size() + 3));
  append_text(trace, src, src_mesh_shape);
  for (const Step& step : steps) {
    trace += arrow_of(step);
    append_text(trace, step.state, shape_of(step));
  }
  return trace;
}

}  // namespace

const char* arrow_of(const Step& step) {
  return row_of(step.op).scope != OpScope::mesh && (step.merged > 1 || step.mesh_dims.size() > 1)
             ? "-->"
             : "->";
}

std::string trace_of(const State& src, const std::vector<Step>& steps,
                     std::span<const int64_t> mesh_shape) {
  return joined(src, steps, mesh_shape, [&](const Step&) { return mesh_shape; });
}

std::string trace_of(const State& src, const std::vector<Step>& steps, const Mesh& src_mesh,
                     const Mesh& dst_mesh) {
  const std::vector<int64_t> src_shape = mesh_shape(src_mesh);
  const std::vector<int64_t> dst_shape = mesh_shape(dst_mesh);
  return joined(src, steps, src_shape, [&](const Step& step) {
    return std::span(step.mesh == dst_mesh.name ? dst_shape : src_shape);
  });
}

std::vector<std::string_view> texts_of_states(std::string_view trace) {
  std::vector<std::string_view> texts;
  for (bool more = true; more;) {
    const size_t arrow = trace.find("->");
    more = arrow != std::string_view::npos;
    std::string_view text = trace.substr(0, arrow);
    if (more && text.ends_with('-')) text.remove_suffix(1);
    texts.push_back(text);
    if (more) trace.remove_prefix(arrow + 2);
  }
  return texts;
}

}  // namespace meshplan
