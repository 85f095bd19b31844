// meshplan plan SPEC [-o PLAN]
#include "base/text.h"
#include "cli/commands.h"
#include "cli/planning.h"
#include "cli/rendering.h"
#include "planner/rank_flattens.h"

namespace meshplan {
namespace {

// --max-groups K: finds the K flattens that save most for the whole file, by planning it with them.
void say_ranking(Context& context, const PlannedSpec& planned, int64_t most) {
  const FlattenRanking ranking = rank_flattens(
      planned.plan.meshes, planned.plan.topology,
      not_bundled(planned.spec.requests, planned.spec.bundles), planned.plan.options, most);
  if (ranking.chosen.empty()) {
    context.say("no flatten makes this plan cheaper");
    return;
  }
  int64_t before = ranking.declared_ps;
  context.say(
      (ranking.chosen.size() == 1
           ? std::string("this flatten saves")
           : "these " + std::to_string(ranking.chosen.size()) + " flattens save") +
      " the most, of " + human_ns(ns_of_ps(before)) + " predicted" +
      (ranking.exhaustive ? ":" : " (chosen greedily: too many combinations to plan all):"));
  for (const RankedFlatten& flatten : ranking.chosen) {
    context.say("  {\"dims\": " + quoted_list(flatten.dims) +
                ", \"name\": " + meshplan::quoted(join(flatten.dims, "_")) + "} on " +
                flatten.mesh + ": saves " + human_ns((before - flatten.total_ps) / 1000) +
                " more, " + human_ns(ns_of_ps(flatten.total_ps)) + " left");
    before = flatten.total_ps;
  }
}

}  // namespace

int plan_command(Context& context, const Arguments& arguments) {
  int code = 0;
  const auto planned = plan_spec(context, arguments.inputs[0], arguments.planning, code);
  if (!planned) return code;
  if (planned->warnings_fail) return 1;  // -W error: as with any error, nothing is written
  const Plan& plan = planned->plan;
  const auto text =
      render_as(context, arguments.format.empty() ? "json" : arguments.format, plan, arguments);
  if (!text) return context.fail(arguments.inputs[0], text.error());
  if (const auto written = context.write_output(arguments.output, *text); !written)
    return context.fail("", written.error());
  if (!arguments.output.empty() && arguments.output != "-") {
    context.say("wrote " + arguments.output + ": " +
                counted(std::ssize(plan.redistributions), "redistribution") + ", " +
                counted(plan.totals.collectives, "collective") + ", " +
                human_bytes(plan.totals.wire_bytes) + " received by a rank, " +
                human_ns(ns_of_ps(plan.totals.predicted_ps)) + " predicted");
  }
  // None is looked for where none may be chosen.
  if (plan.options.max_groups > 0) say_ranking(context, *planned, plan.options.max_groups);
  return 0;
}

}  // namespace meshplan
