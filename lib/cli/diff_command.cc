// meshplan diff OLD NEW
#include "diff/diff.h"

#include <algorithm>
#include <unordered_map>

#include "api/warnings.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/git_file.h"
#include "cli/idle_flags.h"
#include "cli/planning.h"
#include "cli/rendering.h"
#include "diag/outcome_codes.h"
#include "json/document_kind.h"
#include "render/diff_text.h"
#include "render/html.h"

namespace meshplan {
namespace {

// A plan, the text that lists its redistributions where that is another than the one given, and
// the warnings that its spec allows.
struct Side {
  Plan plan;
  std::optional<SpecText> extended = {};
  std::vector<Allow> allow = {};
};

// Reads a plan, or a spec and plans it. Warnings are dropped: the diff reports the new ones.
std::optional<Side> side_of(Context& context, const std::string& path, const std::string& text,
                            const Arguments& arguments, int& code) {
  if (document_kind(text) == DocumentKind::plan) {
    auto plan = load_plan_text(context, path, text, code);
    if (!plan) return std::nullopt;
    return Side{*std::move(plan)};
  }
  CommonFlags kept = context.flags;
  context.flags.warnings.silenced = {"missing-flatten", "uneven-shape", "non-ascending"};
  auto planned = plan_spec_text(context, path, text, arguments.planning, code);
  context.flags = std::move(kept);
  if (!planned) return std::nullopt;
  // Converts to the form of a file: whole nanoseconds, and the digest.
  auto plan = read_plan(write_plan(planned->plan));
  MESHPLAN_CHECK(plan.ok(), "what was written is read again");
  return Side{std::move(plan).value(), planned->spec.extended, planned->spec.allow};
}

// The path that git passes for a missing side (file added or deleted).
constexpr std::string_view no_file = "/dev/null";

// An empty plan with the meshes and options of the other side, so that everything is added or
// removed.
Plan empty_plan_beside(const Plan& other) {
  Plan empty = other;
  empty.digest.clear();
  empty.groups.clear();
  empty.redistributions.clear();
  empty.totals = {};
  return empty;
}

// The text of one side; no value if missing. After a reported problem `code` is not 0.
std::optional<std::string> side_text(Context& context, const std::string& path, int& code) {
  if (path == no_file) return std::nullopt;
  const auto text = context.read_input(path);
  if (text) return *text;
  code = context.fail(path, text.error());
  return std::nullopt;
}

bool holds_no_spec(const std::optional<std::string>& text) {
  return !text || document_kind(*text) == DocumentKind::plan;
}

// Findings for annotations and SARIF: one per redistribution, at its id in the new file.
Diagnostics findings(const PlanDiff& diff, const Plan& new_plan, const std::string& file,
                     const std::string& text) {
  Diagnostics all;
  SpecPlaces places(text, file);  // specs and plans list their redistributions alike
  std::unordered_map<std::string_view, size_t> by_id;
  for (size_t i = 0; i < new_plan.redistributions.size(); ++i)
    by_id.emplace(new_plan.redistributions[i].request.id, i);
  const auto place_of_id = [&](const std::string& id) {
    const auto found = by_id.find(id);
    return found == by_id.end() ? whole_file(file) : places.redistribution(found->second);
  };
  for (const RedistributionDiff& d : diff.redistributions) {
    Diagnostic finding;
    const bool numerics = d.severity == DiffSeverity::numerics;
    const bool dearer = d.severity == DiffSeverity::dearer;
    finding.code = numerics ? code_diff_numerics : dearer ? code_diff_dearer : code_diff_other;
    finding.severity = numerics || dearer ? Severity::warning : Severity::note;
    finding.place = d.kind == DiffKind::removed ? whole_file(file) : place_of_id(d.id);
    finding.message =
        "redistribution '" + d.id + "' " + to_text(d.kind) + ", " + to_text(d.severity);
    if (d.old_totals && d.new_totals) finding.message += ": " + diff_figures(d, true);
    if (const std::string place = diff_place(d); !place.empty())
      finding.message += "; asked for by " + place;
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

// The new side, to which annotations point.
struct NewSide {
  const Plan& plan;
  const std::string& path;
  const std::string& text;
};

std::string render_diff(Context& context, const PlanDiff& diff, const Arguments& arguments,
                        const NewSide& side, bool failed) {
  const ShowOptions options = show_options(context, arguments);
  if (arguments.format == "json") return diff_json(diff, failed);
  if (arguments.format == "markdown") return render_diff_markdown(diff, options);
  if (arguments.format == "html") return render_diff_html(diff, options);
  if (arguments.format == "github" || arguments.format == "sarif") {
    DiagnosticRendering rendering;
    rendering.format = *parse_diagnostic_format(arguments.format);
    rendering.tool_version = MESHPLAN_VERSION;
    return render(findings(diff, side.plan, side.path, side.text), rendering);
  }
  return render_diff_text(diff, options);
}

int compare(Context& context, const Arguments& arguments) {
  const bool from_git = !arguments.against.empty();
  const std::string& new_path = arguments.inputs.back();
  const std::string old_path = from_git ? arguments.against : arguments.inputs[0];
  int code = 0;
  std::optional<std::string> old_text;
  if (from_git) {
    const auto text = read_from_git(context, arguments.against, arguments.new_file);
    if (!text) return context.fail("", text.error());
    old_text = *text;
  } else {
    old_text = side_text(context, old_path, code);
  }
  const std::optional<std::string> new_text = side_text(context, new_path, code);
  if (code != 0) return code;
  if (!old_text && !new_text) return 0;  // nothing on either side
  // A driver's flags are for all files of a repository.
  if (!arguments.git_driver && holds_no_spec(old_text) && holds_no_spec(new_text)) {
    if (const auto idle = idle_planning_flag(arguments.planning)) context.say(*idle);
  }

  std::optional<Side> old_side;
  std::optional<Side> new_side;
  if (old_text) old_side = side_of(context, old_path, *old_text, arguments, code);
  if (new_text) new_side = side_of(context, new_path, *new_text, arguments, code);
  if (code != 0) return code;
  if (!old_side) old_side = Side{empty_plan_beside(new_side->plan)};
  if (!new_side) new_side = Side{empty_plan_beside(old_side->plan)};

  PlanDiff diff = diff_plans(old_side->plan, new_side->plan);
  std::erase_if(diff.new_warnings, [&](const WarningDiff& warning) {
    return is_allowed(new_side->allow, warning.code, warning.id);
  });
  const std::vector<std::string> conditions =
      arguments.fail_on.empty() ? std::vector<std::string>{"any"} : arguments.fail_on;
  // A new plan is different, but not more expensive.
  const bool is_new = from_git && !old_text;
  const bool failed =
      std::any_of(conditions.begin(), conditions.end(), [&](const std::string& condition) {
        return is_new ? condition == "any" : holds(diff, condition);
      });
  const SpecText listed = new_side->extended.value_or(
      SpecText{new_path, std::make_shared<const std::string>(new_text.value_or(std::string()))});
  std::string text;
  if (arguments.only_if.empty() || holds(diff, arguments.only_if))
    text =
        render_diff(context, diff, arguments, {new_side->plan, listed.file, *listed.text}, failed);
  if (const auto written = context.write_output(arguments.output, text); !written)
    return context.fail("", written.error());
  return failed ? 1 : 0;
}

// git diff.NAME.command: path old-file old-hex old-mode new-file new-hex new-mode [new-path what];
// the path alone while it is unmerged. A driver that fails ends `git diff` at its file, so that
// only a bug does.
int compare_for_git(Context& context, const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.inputs;
  const std::string new_path = words.size() > 7 ? words[7] : words[0];
  // git's pager shows colours, which a pipe to it hides.
  const auto no_color = context.system.variable("NO_COLOR");
  if (context.flags.color == ColorChoice::automatic &&
      context.system.variable("GIT_PAGER_IN_USE") && (!no_color || no_color->empty()))
    context.flags.color = ColorChoice::always;
  std::string header = one_line("meshplan diff a/" + words[0] + " b/" + new_path);
  if (context.color(Stream::out)) header = "\x1b[1m" + header + "\x1b[0m";
  header += words.size() < 7 ? "\nunmerged\n" : "\n";
  if (const auto written = context.write_output(arguments.output, header); !written)
    return context.fail("", written.error());
  if (words.size() < 7) return 0;
  Arguments sides = arguments;
  sides.inputs = {words[1], words[4]};
  (void)compare(context, sides);
  return 0;
}

}  // namespace

int diff_command(Context& context, const Arguments& arguments) {
  return arguments.git_driver ? compare_for_git(context, arguments) : compare(context, arguments);
}

}  // namespace meshplan
