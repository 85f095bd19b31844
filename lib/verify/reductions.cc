// What a redistribution says of its reductions, counted anew from its states: which mesh dims held
// what was pending, through how many collectives it passes, and in which nesting.
#include <algorithm>

#include "base/int_math.h"
#include "base/text.h"
#include "verify/digits.h"
#include "verify/figures.h"

namespace meshplan::verification {
namespace {

// What is pending before a step and not after it, of a sub-axis also a part; what has one rank
// needs no collective. `after`: nothing pending where the step leaves the mesh. The step was
// checked: what is pending divides.
std::vector<SubAxis> finished(std::span<const int64_t> mesh_shape, const State& before,
                              const State& after) {
  std::vector<SubAxis> list;
  const auto pending = pending_digits(mesh_shape, before, after);
  if (!pending) return list;
  for (size_t i = 0; i < pending->digits.count; ++i) {
    const Digit& digit = pending->digits.list[i];
    if (has(pending->before.pending & ~pending->after.pending, i))
      list.push_back({digit.mesh_dim, digit.before, digit.size});
  }
  return list;
}

// A tensor has one reduction pending at most, whatever its steps finish of it.
ReductionNote count_reduction(const Mesh& mesh, std::span<const int64_t> mesh_shape,
                              const PlannedRedistribution& redistribution) {
  const std::vector<std::string> names = dim_names(mesh);
  ReductionNote note;
  std::vector<SubAxis> all;
  const State* before = &redistribution.request.src;
  for (const Step& step : redistribution.steps) {
    const bool leaves = !step.mesh.empty() && step.mesh != mesh.name;
    // Only a step with a reduce op takes anything from what is pending.
    const std::vector<SubAxis> done =
        step.reduce_op ? finished(mesh_shape, *before, leaves ? State{} : step.state)
                       : std::vector<SubAxis>{};
    before = &step.state;
    if (done.empty()) continue;
    if (note.collectives++ > 0) note.nesting += ", then ";
    for (size_t i = 0; i < done.size(); ++i)
      note.nesting += (i > 0 ? "+" : "") + to_text(done[i], names, mesh_shape);
    all.insert(all.end(), done.begin(), done.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  for (const SubAxis& sub_axis : all) note.dims.push_back(to_text(sub_axis, names, mesh_shape));
  return note;
}

}  // namespace

Problem check_reductions(const Plan& plan, const PlannedRedistribution& redistribution,
                         std::span<const int64_t> src_mesh_shape) {
  const Mesh& mesh = plan.meshes.meshes[redistribution.request.src_mesh];
  const ReductionNote counted = count_reduction(mesh, src_mesh_shape, redistribution);
  const std::vector<ReductionNote>& noted = redistribution.reductions;
  int64_t collectives = 0;
  for (const ReductionNote& note : noted)
    collectives = saturating_add(collectives, note.collectives);
  if (collectives != counted.collectives) {
    return "its reductions count " + std::to_string(collectives) + " collectives, its steps have " +
           std::to_string(counted.collectives);
  }
  const size_t reductions = counted.collectives > 0 ? 1 : 0;
  if (noted.size() != reductions) {
    return "it notes " + std::to_string(noted.size()) + " reductions, its steps have " +
           std::to_string(reductions);
  }
  for (const ReductionNote& note : noted) {
    if (note.dims != counted.dims) {
      return "its reduction is noted over '" + join(note.dims, ", ") +
             "', its steps reduce over '" + join(counted.dims, ", ") + "'";
    }
    if (note.nesting != counted.nesting) {
      return "its reduction is noted to nest as '" + note.nesting + "', its steps reduce over '" +
             counted.nesting + "'";
    }
  }
  if (plan.options.one_reduction && counted.collectives > 1) {
    return "one_reduction is asked for, but it reduces in " + std::to_string(counted.collectives) +
           " collectives";
  }
  return std::nullopt;
}

}  // namespace meshplan::verification
