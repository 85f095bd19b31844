// meshplan explain PLAN [ID], meshplan explain CODE
#include "base/text.h"
#include "cli/commands.h"
#include "cli/planning.h"
#include "diag/codes.h"
#include "diag/outcome_codes.h"
#include "plan/firsts.h"
#include "render/bundle_view.h"
#include "render/plan_explained.h"

namespace meshplan {
namespace {

// "E0203", "w0301": a letter and four digits.
bool looks_like_code(const std::string& word) {
  if (word.size() != 5 || std::string_view("EWANewan").find(word[0]) == std::string_view::npos)
    return false;
  return word.find_first_not_of("0123456789", 1) == std::string::npos;
}

int explain_diagnostic(Context& context, const Arguments& arguments) {
  const std::string& code = arguments.inputs[0];
  const auto text = explain_code(code);
  if (!text) {
    std::vector<std::string> codes;
    for (const CodeEntry& entry : code_table()) codes.emplace_back(entry.code);
    const auto near = nearest(code, codes);
    return context.fail("", bad_input("unknown diagnostic code " + code +
                                      (near ? "; did you mean " + *near + "?" : "")));
  }
  if (const auto written = context.write_output(arguments.output, *text); !written)
    return context.fail("", written.error());
  return 0;
}

}  // namespace

int explain_command(Context& context, const Arguments& arguments) {
  const std::string& path = arguments.inputs[0];
  if (arguments.inputs.size() == 1 && looks_like_code(path))
    return explain_diagnostic(context, arguments);
  int code = 0;
  const auto plan = load_plan(context, path, code);
  if (!plan) return code;
  const bool one = arguments.inputs.size() > 1;
  const std::vector<size_t> firsts = firsts_of(plan->redistributions);
  std::string text;
  std::vector<std::string> ids;
  for (size_t i = 0; i < firsts.size(); ++i) {
    const PlannedRedistribution& r = plan->redistributions[i];
    ids.push_back(r.request.id);
    if (one && r.request.id != arguments.inputs[1]) continue;
    text += text.empty() ? "" : "\n";
    text += one || firsts[i] == i
                ? explain_redistribution(*plan, r, one)
                : explain_repeat(*plan, r, plan->redistributions[firsts[i]].request.id);
  }
  for (const PlannedBundle& bundle : plan->bundles) {
    ids.push_back(bundle.request.id);
    if (one && bundle.request.id != arguments.inputs[1]) continue;
    text += (text.empty() ? "" : "\n") + explain_bundle(*plan, bundle);
  }
  if (text.empty() && arguments.inputs.size() > 1) {
    const auto near = nearest(arguments.inputs[1], ids);
    return context.fail(path, bad_input("the plan has no redistribution '" + arguments.inputs[1] +
                                        "'" + (near ? "; did you mean '" + *near + "'?" : "")));
  }
  if (const auto written = context.write_output(arguments.output, text); !written)
    return context.fail("", written.error());
  return 0;
}

}  // namespace meshplan
