// meshplan explain PLAN [ID], meshplan explain CODE
#include <algorithm>

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

// "W0301" for "missing-flaten", "E0203" for "e203": the code that a word which is no file may mean.
std::optional<std::string> code_meant(const std::string& word) {
  if (word.find_first_of("./") != std::string::npos) return std::nullopt;
  std::string name = word;
  std::replace(name.begin(), name.end(), '-', '_');
  std::vector<std::string> words;
  for (const CodeEntry& entry : code_table()) words.insert(words.end(), {entry.code, entry.name});
  const auto near = nearest(name, words);
  if (!near) return std::nullopt;
  for (const CodeEntry& entry : code_table()) {
    if (entry.code == *near || entry.name == *near) return entry.code + " (" + entry.name + ")";
  }
  return std::nullopt;
}

// A plan that cannot be read; a code is meant where one is near.
int fail_to_read(Context& context, const Arguments& arguments, Error error) {
  const std::string& path = arguments.inputs[0];
  if (find_code(path) != nullptr && arguments.inputs.size() > 1) {
    error.message += "; meshplan explain " + path + " explains that code, without \"" +
                     arguments.inputs[1] + "\"";
  } else if (const auto code = code_meant(path)) {
    error.message += "; did you mean the diagnostic code " + *code + "?";
  }
  return context.fail(path, error);
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
  const auto read = context.read_input(path);
  if (!read) return fail_to_read(context, arguments, read.error());
  int code = 0;
  const auto plan = load_plan_text(context, path, *read, code);
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
