#include "render/plan_text.h"

#include "base/text.h"
#include "base/utf8.h"
#include "render/bundle_view.h"

namespace meshplan {
namespace {

// "mesh " where there is one, of the simple form; "mesh dense: " else.
std::string mesh_title(const Plan& plan, const Mesh& mesh) {
  return plan.meshes.meshes.size() == 1 && mesh.name == "mesh" ? "mesh "
                                                               : "mesh " + mesh.name + ": ";
}

}  // namespace

std::string render_plan_text(const Plan& plan, const ShowOptions& options) {
  std::string out;
  for (const Mesh& mesh : plan.meshes.meshes)
    out += one_line(mesh_title(plan, mesh) + mesh_text(plan, mesh)) + "\n";
  out += one_line(planning_line(plan)) + "\n\n";
  TableStyle style{options.width, options.unicode, options.color,
                   options.detail == Detail::summary ? size_t{0} : size_t{2}};
  out += table_text(
      options.detail == Detail::summary ? summary_table(plan, options) : step_table(plan, options),
      style);
  if (options.detail != Detail::summary) {
    std::string notes;
    const auto add_notes = [&](const PlannedRedistribution& r) {
      for (const std::string& note : notes_below(r, options.detail))
        notes += "  " + one_line(r.request.id + ": " + note) + "\n";
    };
    const std::vector<size_t> chosen = chosen_redistributions(plan, options);
    const std::vector<size_t> repeated = repeated_by(plan, chosen);
    for (size_t c = 0; c < chosen.size(); ++c) {
      if (repeated[c] == chosen[c]) add_notes(plan.redistributions[chosen[c]]);
    }
    if (!notes.empty()) out += "\n" + notes;
  }
  for (const PlannedBundle& bundle : plan.bundles) {
    out += "\n" + one_line(bundle_line(bundle, options)) + "\n";
    if (options.detail != Detail::summary)
      out += table_text(round_table(plan, bundle, options), style);
  }
  out += "\n" + one_line(summary_line(plan, options)) + "\n";
  for (const std::string& line : audit_lines(plan, options)) out += line + "\n";
  return out;
}

std::string render_plan_markdown(const Plan& plan, const ShowOptions& options) {
  std::string out =
      "### Communication plan\n\n**" + escape_markdown(summary_line(plan, options)) + "**\n\n";
  for (const Mesh& mesh : plan.meshes.meshes)
    out += "- " + escape_markdown(mesh_title(plan, mesh)) + escape_markdown(mesh_text(plan, mesh)) +
           "\n";
  out += "- " + escape_markdown(planning_line(plan)) + "\n\n";
  out += table_markdown(summary_table(plan, options));
  for (const PlannedBundle& bundle : plan.bundles) {
    out += "\n" + escape_markdown(bundle_line(bundle, options)) + "\n\n" +
           table_markdown(round_table(plan, bundle, options));
  }
  std::string findings;
  for (const size_t index : chosen_redistributions(plan, options)) {
    const PlannedRedistribution& r = plan.redistributions[index];
    for (const AuditFinding& finding : r.audit) {
      findings += "- " + escape_markdown(finding.code) + " in " + escape_markdown(r.request.id) +
                  ": " + escape_markdown(finding.message) + "\n";
    }
  }
  for (const std::string& line : audit_lines(plan, options))
    findings += "- " + escape_markdown(line) + "\n";
  if (!findings.empty()) out += "\n" + findings;
  if (options.detail != Detail::summary) {
    out += "\n<details>\n<summary>Steps</summary>\n\n" + table_markdown(step_table(plan, options)) +
           "\n</details>\n";
  }
  return out;
}

}  // namespace meshplan
