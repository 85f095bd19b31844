// meshplan show PLAN
#include "cli/commands.h"
#include "cli/planning.h"
#include "cli/rendering.h"

namespace meshplan {

int show_command(Context& context, const Arguments& arguments) {
  int code = 0;
  const auto plan = load_plan(context, arguments.inputs[0], code);
  if (!plan) return code;
  const auto text =
      render_as(context, arguments.format.empty() ? "text" : arguments.format, *plan, arguments);
  if (!text) return context.fail(arguments.inputs[0], text.error());
  return context.finish(arguments.output, *text);
}

}  // namespace meshplan
