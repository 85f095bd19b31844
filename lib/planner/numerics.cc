#include "planner/numerics.h"

#include <algorithm>

#include "base/text.h"
#include "transfer/sub_axes.h"

namespace meshplan {
std::vector<ReductionNote> reduction_notes(const State& src, const std::vector<Step>& steps,
                                           const Mesh& mesh) {
  const std::vector<std::string> names = dim_names(mesh);
  const std::vector<int64_t> shape = mesh_shape(mesh);
  ReductionNote note;
  std::vector<SubAxis> all;
  const State* before = &src;
  for (const Step& step : steps) {
    const State& after = step.state;
    if (step.reduce_op) {
      // An exchange across meshes leaves nothing pending, and its state speaks of the other mesh.
      const bool crosses = !step.mesh.empty() && step.mesh != mesh.name;
      std::vector<std::string> dims;
      for (const PendingSubAxis& p : reduced_between(*before, crosses ? State{} : after, shape)) {
        dims.push_back(to_text(p.sub_axis, names, shape));
        all.push_back(p.sub_axis);
      }
      if (!dims.empty()) {
        note.nesting += (note.nesting.empty() ? "" : ", then ") + join(dims, "+");
        ++note.collectives;
      }
    }
    before = &after;
  }
  if (all.empty()) return {};
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  for (const SubAxis& sub_axis : all) note.dims.push_back(to_text(sub_axis, names, shape));
  return {note};
}

Status check_one_reduction(const std::vector<ReductionNote>& notes) {
  for (const ReductionNote& note : notes) {
    if (note.collectives <= 1) continue;
    return no_plan("the reduction over " + join(note.dims, " and ") + " would pass through " +
                   std::to_string(note.collectives) + " collectives (" + note.nesting +
                   "), and one_reduction allows 1; declare " + join(note.dims, ", ") +
                   " flattened or use --planner optimal");
  }
  return Done{};
}

}  // namespace meshplan
