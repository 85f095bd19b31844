#include "render/plan_explained.h"

#include "base/int_math.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cost/step_cost.h"
#include "plan/step_mesh.h"
#include "render/grid.h"
#include "render/plan_view.h"

namespace meshplan {
namespace {

std::string indented(const std::string& text, const std::string& by) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) out += by + one_line(text.substr(at, end - at));
    out += "\n";
    at = end + 1;
  }
  return out;
}

std::string against_bound(int64_t value, int64_t bound) {
  if (bound <= 0 || value <= bound) return value <= bound ? "which no plan can beat" : "";
  const auto hundredths = static_cast<int64_t>(int128{value % bound} * 100 / bound);
  return std::to_string(value / bound) + "." + std::to_string(hundredths / 10) +
         std::to_string(hundredths % 10) + " times the bound";
}

// "wq.grad (32 times)"
std::string name_of(const PlannedRedistribution& r) {
  return r.request.id +
         (r.request.count > 1 ? " (" + with_commas(r.request.count) + " times)" : "");
}

}  // namespace

std::string explain_repeat(const Plan& plan, const PlannedRedistribution& r,
                           const std::string& first) {
  const std::string notes = notes_text(plan, r);
  return one_line(name_of(r) + ": the same as " + first +
                  (notes.empty() ? "" : ", asked for by " + notes)) +
         "\n";
}

std::string explain_redistribution(const Plan& plan, const PlannedRedistribution& r, bool grids) {
  std::string out;
  const auto line = [&](const std::string& text) { out += one_line(text) + "\n"; };
  line(name_of(r) + ": " + tensor_text(r.request.tensor) + ", " + change_text(plan, r));
  if (const std::string notes = notes_text(plan, r); !notes.empty())
    line("  asked for by " + notes);
  line("  planned by " + std::string(to_text(r.planner)) + " under the " + to_text(r.rules) +
       " rules as " + r.trace);
  if (r.unmerged_trace != r.trace) line("  without merging " + r.unmerged_trace);
  if (grids)
    out += "\n" + indented(grid_text(make_grid(plan.meshes.meshes[r.request.src_mesh],
                                               r.request.src, r.request.tensor.shape)),
                           "    ");
  if (r.steps.empty()) return out + "  no data moves: every rank has what it needs\n";
  for (size_t i = 0; i < r.steps.size(); ++i) {
    const Step& step = r.steps[i];
    const std::string arithmetic = step_arithmetic(step);
    std::string head = "  step " + std::to_string(i) + ": " + step_name(step) +
                       (arithmetic.empty() ? "" : " " + arithmetic);
    if (!is_local(step.op)) {
      head += " on " + step.group + ", " + with_commas(step_ranks(plan, r, step)) +
              " ranks: " + human_bytes(step.wire_bytes) + " received, " +
              time_text(step.predicted_ps);
    }
    out += "\n";
    line(head + ", peak " + human_bytes(step.peak_bytes));
    const Mesh& mesh = mesh_after(plan.meshes, r.request, step);
    line("    leaves " + to_text(step.state, mesh_shape(mesh)) +
         (step.mesh.empty() ? "" : " on " + step.mesh));
    if (grids)
      out += indented(grid_text(make_grid(mesh, step.state, r.request.tensor.shape)), "    ");
    if (!step.why.empty()) line("    why: " + step.why);
    if (!is_local(step.op)) out += indented(explain_cost(step_question(plan, r, i)), "    cost: ");
  }
  out += "\n";
  line("  received " + human_bytes(r.totals.wire_bytes) + " of at least " +
       human_bytes(r.totals.lower_bound_bytes) + " (" +
       against_bound(r.totals.wire_bytes, r.totals.lower_bound_bytes) + "), predicted " +
       time_text(r.totals.predicted_ps) + " of at least " + time_text(r.totals.lower_bound_ps));
  if (r.proven_gap_ps > 0) {
    line("  the search was limited (" + to_text(r.shortcuts) + "): the best is at most " +
         time_text(r.proven_gap_ps) + " faster");
  }
  for (const ReductionNote& note : r.reductions) {
    line("  the reduction over " + join(note.dims, ", ") + " runs in " +
         counted(note.collectives, "collective") + ": " + note.nesting);
  }
  for (const Alternative& other : r.alternatives) {
    line("  rejected " + other.trace + ": " + human_bytes(other.totals.wire_bytes) + ", " +
         time_text(other.totals.predicted_ps));
  }
  for (const Warning& warning : r.warnings)
    line("  " + std::string(warning_code(warning.kind)) + ": " + warning.message);
  for (const AuditFinding& finding : r.audit) line("  " + finding.code + ": " + finding.message);
  return out;
}

}  // namespace meshplan
