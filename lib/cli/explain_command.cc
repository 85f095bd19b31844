// meshplan explain PLAN [ID], meshplan explain CODE
#include "base/text.h"
#include "cli/commands.h"
#include "cli/planning.h"
#include "diag/codes.h"
#include "plan/asked_ids.h"
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
  return context.finish(arguments.output, *text);
}

}  // namespace

int explain_command(Context& context, const Arguments& arguments) {
  const std::string& path = arguments.inputs[0];
  if (arguments.inputs.size() == 1 && looks_like_code(path))
    return explain_diagnostic(context, arguments);
  int code = 0;
  const auto plan = load_plan(context, path, code);
  if (!plan) return code;
  const std::span<const std::string> asked = std::span(arguments.inputs).subspan(1);
  if (auto known = check_asked_ids(*plan, asked, AskedIds::of_bundles_too); !known)
    return context.fail(path, known.error());
  const bool one = !asked.empty();
  const std::vector<size_t> firsts = firsts_of(plan->redistributions);
  std::string text;
  for (size_t i = 0; i < firsts.size(); ++i) {
    const PlannedRedistribution& r = plan->redistributions[i];
    if (one && r.request.id != asked[0]) continue;
    text += text.empty() ? "" : "\n";
    text += one || firsts[i] == i
                ? explain_redistribution(*plan, r, one)
                : explain_repeat(*plan, r, plan->redistributions[firsts[i]].request.id);
  }
  for (const PlannedBundle& bundle : plan->bundles) {
    if (one && bundle.request.id != asked[0]) continue;
    text += (text.empty() ? "" : "\n") + explain_bundle(*plan, bundle);
  }
  return context.finish(arguments.output, text);
}

}  // namespace meshplan
