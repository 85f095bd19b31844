#include "api/texts.h"

#include <algorithm>

#include "api/counted_time.h"
#include "cost/topology.h"
#include "diag/outcome_codes.h"
#include "json/scan.h"
#include "planner/planner.h"
#include "planner/settle_options.h"

namespace meshplan {
namespace {

// Every redistribution or bundle that has no plan, at its place. Bad input is reported before a
// missing plan, which may be a consequence.
int report_failures(const std::vector<PlanFailure>& failures, const Spec& spec, SpecPlaces& places,
                    Diagnostics& diagnostics) {
  int code = 0;
  for (const PlanFailure& failure : failures) {
    Error error = failure.error;
    if (failure.bundle) {
      const std::string& id = spec.bundles[*failure.bundle].id;
      diagnostics.add(diagnostic_of(spec.bundle_places.at(id), error));
    } else {
      const Request& request = spec.requests[failure.index];
      if (error.message.find("'" + request.id + "'") == std::string::npos)
        error.message = "redistribution '" + request.id + "': " + error.message;
      diagnostics.add(diagnostic_of(places.redistribution(failure.index), error));
    }
    const int own = exit_code(error.fault);
    code = code == 0 ? own : std::min(code, own);
  }
  return code;
}

}  // namespace

Topology settled_topology(const Spec& spec, const SpecQuestion& question) {
  if (question.topology) return *question.topology;
  return spec.topology ? *spec.topology : uniform_topology();
}

std::optional<PlannedSpec> plan_spec_text(const std::string& text, const FileReader& read_file,
                                          const SpecQuestion& question, Diagnostics& diagnostics,
                                          int& code) {
  auto spec = read_spec(text, question.name, read_file, diagnostics);
  if (!spec) {
    code = exit_code(Fault::bad_input);
    return std::nullopt;
  }
  return plan_read_spec(*std::move(spec), text, question, diagnostics, code);
}

std::optional<PlannedSpec> plan_read_spec(Spec spec, const std::string& text,
                                          const SpecQuestion& question, Diagnostics& diagnostics,
                                          int& code) {
  auto options = settle_options(spec.options, question.options);
  if (!options) {
    diagnostics.add(diagnostic_of(whole_file(question.name), options.error()));
    code = exit_code(options.error().fault);
    return std::nullopt;
  }
  const Topology topology = settled_topology(spec, question);
  PlanOutcome outcome =
      plan_requests(spec.meshes, topology, spec.requests, *options, spec.digest, spec.bundles);
  const auto extended = spec.extended;
  SpecPlaces places(extended ? *extended->text : text, extended ? extended->file : question.name);
  if (!outcome.failures.empty()) {
    code = report_failures(outcome.failures, spec, places, diagnostics);
    return std::nullopt;
  }
  if (const auto beyond = first_beyond_count(outcome.plan)) {
    Diagnostic diagnostic;
    diagnostic.code = code_overflow;
    diagnostic.message = beyond->message;
    diagnostic.place = places.redistribution(beyond->index);
    diagnostics.add(std::move(diagnostic));
    code = exit_code(Fault::bad_input);
    return std::nullopt;
  }
  PlannedSpec planned{std::move(spec), std::move(outcome.plan), false};
  planned.warnings_fail =
      report_warnings(question.warnings, places, planned.spec, planned.plan, diagnostics);
  return planned;
}

std::optional<Plan> load_plan_text(const std::string& text, const std::string& name,
                                   Diagnostics& diagnostics, int& code) {
  auto read = try_read_plan(text);
  if (auto* plan = std::get_if<Plan>(&read)) return std::move(*plan);
  const PlanRefusal& refusal = std::get<PlanRefusal>(read);
  code = exit_code(Fault::bad_input);
  if (refusal.byte || refusal.end == 0) {
    Diagnostics of_text;
    (void)read_json(text, name, of_text);
    if (of_text.has_errors()) {
      diagnostics.add_all(of_text);
      return std::nullopt;
    }
  }
  Diagnostic diagnostic;
  diagnostic.code = code_bad_plan;
  // Comments are all that read_json takes and a plan file does not have.
  const bool comment = refusal.byte && *refusal.byte < text.size() && text[*refusal.byte] == '/';
  diagnostic.message = comment ? "comments are not allowed in plan files" : refusal.message;
  diagnostic.place = refusal.byte ? locate(text, name, *refusal.byte, *refusal.byte + 1)
                     : refusal.end > 0
                         ? locate(text, name, refusal.begin, refusal.end, refusal.pointer)
                         : whole_file(name);
  diagnostics.add(std::move(diagnostic));
  return std::nullopt;
}

}  // namespace meshplan
