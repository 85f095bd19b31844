// meshplan diff OLD NEW
#include "diff/diff.h"

#include <algorithm>

#include "base/text.h"
#include "cli/codes.h"
#include "cli/commands.h"
#include "cli/planning.h"
#include "cli/rendering.h"
#include "cli/warnings.h"
#include "render/diff_text.h"

namespace meshplan {
namespace {

// A plan, or a spec that is planned first. Warnings of planning are not of interest here: the diff has those that are new.
std::optional<Plan> plan_of(Context& context, const std::string& path, const std::string& text, const Arguments& arguments, int& code) {
  if (document_kind(text) == DocumentKind::plan) return load_plan_text(context, path, text, code);
  CommonFlags kept = context.flags;
  context.flags.warnings.silenced = {"missing-flatten", "uneven-shape", "non-ascending"};
  auto planned = plan_spec_text(context, path, text, arguments.planning, code);
  context.flags = std::move(kept);
  if (!planned) return std::nullopt;
  // As the file would hold it: whole nanoseconds, and the digest.
  auto plan = read_plan(write_plan(planned->plan));
  MESHPLAN_CHECK(plan.ok(), "what was written is read again");
  return std::move(plan).value();
}

// git:REF:PATH as git has it.
Result<std::string> read_from_git(Context& context, const std::string& against) {
  const size_t colon = against.find(':', 4);
  if (against.rfind("git:", 0) != 0 || colon == std::string::npos || colon == 4 || colon + 1 == against.size()) {
    return bad_input("--against: expected git:REF:PATH, such as git:main:plan.json, not \"" + against + "\"");
  }
  const std::string ref = against.substr(4, colon - 4);
  std::string path = against.substr(colon + 1);
  if (ref.front() == '-') return bad_input("--against: \"" + ref + "\" is no git revision");
  // A path as the user stands, not as the repository's top does.
  if (path.front() != '/' && path.rfind("./", 0) != 0 && path.rfind("../", 0) != 0) path.insert(0, "./");
  auto text = context.system.run_program({"git", "show", ref + ":" + path});
  if (!text) {
    Error error = text.error();
    error.message = "--against " + against + ": " + error.message;
    return error;
  }
  return text;
}

// What annotations and SARIF carry: one finding a redistribution, where the new file has its id.
Diagnostics findings(const PlanDiff& diff, const Plan& new_plan, const std::string& file, const std::string& text) {
  Diagnostics all;
  SpecPlaces places(text, file);  // specs and plans list their redistributions alike
  const auto place_of_id = [&](const std::string& id) {
    const auto& list = new_plan.redistributions;
    const auto found = std::find_if(list.begin(), list.end(), [&](const auto& r) { return r.request.id == id; });
    return found == list.end() ? whole_file(file) : places.redistribution(static_cast<size_t>(found - list.begin()));
  };
  for (const RedistributionDiff& d : diff.redistributions) {
    Diagnostic finding;
    const bool numerics = d.severity == DiffSeverity::numerics;
    const bool dearer = d.severity == DiffSeverity::dearer;
    finding.code = numerics ? code_diff_numerics : dearer ? code_diff_dearer : code_diff_other;
    finding.severity = numerics || dearer ? Severity::warning : Severity::note;
    finding.place = d.kind == DiffKind::removed ? whole_file(file) : place_of_id(d.id);
    finding.message = "redistribution '" + d.id + "' " + to_text(d.kind) + ", " + to_text(d.severity);
    if (d.old_totals && d.new_totals) finding.message += ": " + diff_figures(d, true);
    finding.weight = diff_weight(d);
    if (!d.causes.empty()) finding.message += "; " + join(d.causes, "; ");
    if (!d.numerics.empty()) finding.message += "; " + d.numerics;
    all.add(std::move(finding));
  }
  for (const std::string& declaration : diff.declarations) {
    Diagnostic finding;
    finding.code = code_diff_other;
    finding.severity = Severity::note;
    finding.place = whole_file(file);
    finding.message = declaration;
    all.add(std::move(finding));
  }
  return all;
}

// The new side: where annotations point.
struct NewSide {
  const Plan& plan;
  const std::string& path;
  const std::string& text;
};

std::string render_diff(Context& context, const PlanDiff& diff, const Arguments& arguments, const NewSide& side, bool failed) {
  const ShowOptions options = show_options(context, arguments);
  if (arguments.format == "json") return diff_json(diff, failed);
  if (arguments.format == "markdown") return render_diff_markdown(diff, options);
  if (arguments.format == "github" || arguments.format == "sarif") {
    DiagnosticRendering rendering;
    rendering.format = *parse_diagnostic_format(arguments.format);
    rendering.tool_version = MESHPLAN_VERSION;
    return render(findings(diff, side.plan, side.path, side.text), rendering);
  }
  return render_diff_text(diff, options);
}

}  // namespace

int diff_command(Context& context, const Arguments& arguments) {
  const bool from_git = !arguments.against.empty();
  const std::string& new_path = arguments.inputs.back();
  const std::string old_path = from_git ? arguments.against : arguments.inputs[0];
  const auto old_text = from_git ? read_from_git(context, arguments.against) : context.read_input(old_path);
  if (!old_text) return context.fail(from_git ? "" : old_path, old_text.error());
  const auto new_text = context.read_input(new_path);
  if (!new_text) return context.fail(new_path, new_text.error());

  int code = 0;
  const auto old_plan = plan_of(context, old_path, *old_text, arguments, code);
  const auto new_plan = plan_of(context, new_path, *new_text, arguments, code);
  if (!old_plan || !new_plan) return code;

  const PlanDiff diff = diff_plans(*old_plan, *new_plan);
  const std::vector<std::string> conditions = arguments.fail_on.empty() ? std::vector<std::string>{"any"} : arguments.fail_on;
  const bool failed =
      std::any_of(conditions.begin(), conditions.end(), [&](const std::string& condition) { return holds(diff, condition); });
  std::string text;
  if (arguments.only_if.empty() || holds(diff, arguments.only_if))
    text = render_diff(context, diff, arguments, {*new_plan, new_path, *new_text}, failed);
  if (const auto written = context.write_output(arguments.output, text); !written) return context.fail("", written.error());
  return failed ? 1 : 0;
}

}  // namespace meshplan
