// meshplan verify PLAN
#include "base/text.h"
#include "cli/codes.h"
#include "cli/commands.h"
#include "cli/planning.h"
#include "verify/verify.h"

namespace meshplan {

int verify_command(Context& context, const Arguments& arguments) {
  int code = 0;
  const auto plan = load_plan(context, arguments.inputs[0], code);
  if (!plan) return code;
  if (const auto proven = verify_plan(*plan); !proven) return context.fail(arguments.inputs[0], proven.error());
  size_t steps = 0;
  for (const PlannedRedistribution& r : plan->redistributions) steps += r.steps.size();
  context.say(arguments.inputs[0] + ": proven: each of " + with_commas(static_cast<int64_t>(steps)) + " steps of " +
              with_commas(static_cast<int64_t>(plan->redistributions.size())) + " redistributions takes every element where it belongs");
  return 0;
}

}  // namespace meshplan
