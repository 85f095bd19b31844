#include "cli/planning.h"

#include <algorithm>

#include "base/text.h"
#include "cli/codes.h"
#include "cli/warnings.h"
#include "json/scan.h"
#include "planner/planner.h"
#include "planner/settle_options.h"

namespace meshplan {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

std::optional<Spec> parse_spec(Context& context, const std::string& path, const std::string& text,
                               int& code) {
  const auto read_beside = [&](const std::string& name) {
    return context.system.read_file(name.empty() || name.front() == '/' ? name
                                                                        : folder_of(path) + name);
  };
  auto spec = read_spec(text, path, read_beside, context.diagnostics);
  if (!spec) code = exit_code(Fault::bad_input);
  return spec;
}

}  // namespace

std::optional<Topology> settle_topology(Context& context, const std::string& path, const Spec& spec,
                                        const PlanningFlags& flags, int& code) {
  if (flags.topology.empty()) return spec.topology ? *spec.topology : uniform_topology();
  if (auto preset = topology_preset(flags.topology)) return preset;
  const bool is_path =
      flags.topology.find_first_of("./") != std::string::npos || flags.topology == "-";
  if (!is_path) {
    const auto near = nearest(flags.topology, topology_preset_names());
    code = context.fail(
        path, bad_input("--topology: there is no preset \"" + flags.topology + "\"" +
                        (near ? "; did you mean " + *near + "?"
                              : "; the presets are " + join(topology_preset_names(), " "))));
    return std::nullopt;
  }
  const auto text = context.read_input(flags.topology);
  if (!text) {
    code = context.fail(path, bad_input("--topology: " + text.error().message));
    return std::nullopt;
  }
  auto topology = read_topology_file(*text, flags.topology, context.diagnostics);
  if (!topology) code = exit_code(Fault::bad_input);
  return topology;
}

std::optional<PlannedSpec> plan_spec_text(Context& context, const std::string& path,
                                          const std::string& text, const PlanningFlags& flags,
                                          int& code) {
  auto spec = parse_spec(context, path, text, code);
  if (!spec) return std::nullopt;
  auto options = settle_options(spec->options, flags.options);
  if (!options) {
    code = context.fail(path, options.error());
    return std::nullopt;
  }
  const auto topology = settle_topology(context, path, *spec, flags, code);
  if (!topology) return std::nullopt;
  const int64_t start = context.system.now_ms();
  PlanOutcome outcome =
      plan_requests(spec->meshes, *topology, spec->requests, *options, spec->digest);
  context.explain(path + ": planned in " + std::to_string(context.system.now_ms() - start) + " ms");
  SpecPlaces places(text, path);
  if (!outcome.failures.empty()) {
    code = 0;
    for (const PlanFailure& failure : outcome.failures) {
      const Request& request = spec->requests[failure.index];
      Error error = failure.error;
      if (error.message.find("'" + request.id + "'") == std::string::npos)
        error.message = "redistribution '" + request.id + "': " + error.message;
      context.fail_at(places.redistribution(failure.index), error);
      // Bad input is reported before a missing plan, which may be a consequence.
      const int own = exit_code(error.fault);
      code = code == 0 ? own : std::min(code, own);
    }
    return std::nullopt;
  }
  PlannedSpec planned{*std::move(spec), std::move(outcome.plan), false};
  planned.warnings_fail = report_warnings(context, places, planned.spec, planned.plan);
  return planned;
}

std::optional<PlannedSpec> plan_spec(Context& context, const std::string& path,
                                     const PlanningFlags& flags, int& code) {
  const auto text = context.read_input(path);
  if (!text) {
    code = context.fail(path, text.error());
    return std::nullopt;
  }
  return plan_spec_text(context, path, *text, flags, code);
}

std::optional<Spec> load_spec(Context& context, const std::string& path, int& code) {
  const auto text = context.read_input(path);
  if (!text) {
    code = context.fail(path, text.error());
    return std::nullopt;
  }
  return parse_spec(context, path, *text, code);
}

std::optional<Plan> load_plan(Context& context, const std::string& path, int& code) {
  const auto text = context.read_input(path);
  if (!text) {
    code = context.fail(path, text.error());
    return std::nullopt;
  }
  return load_plan_text(context, path, *text, code);
}

std::optional<Plan> load_plan_text(Context& context, const std::string& path,
                                   const std::string& text, int& code) {
  auto read = try_read_plan(text);
  if (auto* plan = std::get_if<Plan>(&read)) return std::move(*plan);
  const PlanRefusal& refusal = std::get<PlanRefusal>(read);
  code = exit_code(Fault::bad_input);
  if (refusal.byte || refusal.end == 0) {
    Diagnostics of_text;
    (void)read_json(text, path, of_text);
    if (of_text.has_errors()) {
      context.diagnostics.add_all(of_text);
      return std::nullopt;
    }
  }
  Diagnostic diagnostic;
  diagnostic.code = code_bad_plan;
  // Comments are all that read_json takes and a plan file does not have.
  const bool comment = refusal.byte && *refusal.byte < text.size() && text[*refusal.byte] == '/';
  diagnostic.message = comment ? "comments are not allowed in plan files" : refusal.message;
  diagnostic.place = refusal.byte ? locate(text, path, *refusal.byte, *refusal.byte + 1)
                     : refusal.end > 0
                         ? locate(text, path, refusal.begin, refusal.end, refusal.pointer)
                         : whole_file(path);
  context.diagnostics.add(std::move(diagnostic));
  return std::nullopt;
}

std::optional<DocumentKind> document_kind(std::string_view text) {
  // The first of the two that stands as a value; specs may hold comments, so this is no parse.
  const size_t spec = text.find("\"meshplan/spec/");
  const size_t plan = text.find("\"meshplan/plan/");
  if (spec == std::string_view::npos && plan == std::string_view::npos) return std::nullopt;
  return plan < spec ? DocumentKind::plan : DocumentKind::spec;
}

}  // namespace meshplan
