// meshplan verify PLAN
#include <algorithm>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/planning.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

// What was left out, the first few by name.
std::string first_of(const std::vector<std::string>& left_out) {
  constexpr size_t most = 3;
  const std::vector<std::string> first(
      left_out.begin(),
      left_out.begin() + static_cast<std::ptrdiff_t>(std::min(most, left_out.size())));
  if (left_out.size() <= most) return join(first, "; ");
  return join(first, "; ") + "; and " + with_commas(static_cast<int64_t>(left_out.size() - most)) +
         " more";
}

}  // namespace

int verify_command(Context& context, const Arguments& arguments) {
  int code = 0;
  const auto plan = load_plan(context, arguments.inputs[0], code);
  if (!plan) return code;
  std::vector<std::string> left_out;
  if (const auto proven = verify_plan(*plan, &left_out); !proven)
    return context.fail(arguments.inputs[0], proven.error());
  size_t steps = 0;
  for (const PlannedRedistribution& r : plan->redistributions) steps += r.steps.size();
  context.say(
      arguments.inputs[0] + ": verified: " + (steps == 1 ? "" : "each of ") +
      counted(static_cast<int64_t>(steps), "step") + " of " +
      counted(std::ssize(plan->redistributions), "redistribution") +
      " moves every element to its place" +
      (left_out.empty() ? "; all figures recounted" : "; not recounted: " + first_of(left_out)) +
      "; only checked for consistency: " + join(compared_only(*plan), ", "));
  return 0;
}

}  // namespace meshplan
