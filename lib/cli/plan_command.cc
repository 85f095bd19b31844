// meshplan plan SPEC [-o PLAN]
#include "base/text.h"
#include "cli/commands.h"
#include "cli/planning.h"
#include "cli/rendering.h"

namespace meshplan {
namespace {

std::string plural(size_t n, const std::string& noun) { return std::to_string(n) + " " + noun + (n == 1 ? "" : "s"); }

}  // namespace

int plan_command(Context& context, const Arguments& arguments) {
  int code = 0;
  const auto planned = plan_spec(context, arguments.inputs[0], arguments.planning, code);
  if (!planned) return code;
  if (planned->warnings_fail) return 1;  // -W error: as with any error, nothing is written
  const Plan& plan = planned->plan;
  const auto text = render_as(context, arguments.format.empty() ? "json" : arguments.format, plan, arguments);
  if (!text) return context.fail(arguments.inputs[0], text.error());
  if (const auto written = context.write_output(arguments.output, *text); !written) return context.fail("", written.error());
  if (!arguments.output.empty() && arguments.output != "-") {
    context.say("wrote " + arguments.output + ": " + plural(plan.redistributions.size(), "redistribution") + ", " +
                with_commas(plan.totals.collectives) + " collectives, " + human_bytes(plan.totals.wire_bytes) + " received by a rank, " +
                human_ns(ns_of_ps(plan.totals.predicted_ps)) + " predicted");
  }
  return 0;
}

}  // namespace meshplan
