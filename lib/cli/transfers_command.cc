// meshplan transfers PLAN [ID...]
#include "api/transfers.h"
#include "cli/commands.h"
#include "cli/planning.h"

namespace meshplan {

int transfers_command(Context& context, const Arguments& arguments) {
  const std::string& path = arguments.inputs[0];
  int code = 0;
  const auto plan = load_plan(context, path, code);
  if (!plan) return code;
  const TransfersQuestion question{{arguments.inputs.begin() + 1, arguments.inputs.end()},
                                   arguments.rank};
  if (const auto checked = check_transfers(*plan, question); !checked)
    return context.fail(path, checked.error());
  const auto write = arguments.format == "csv" ? write_transfers_csv : write_transfers_json;
  const auto written = context.write_parts(
      arguments.output, [&](const TextSink& sink) { return write(*plan, question, sink); });
  return written ? 0 : context.fail(path, written.error());
}

}  // namespace meshplan
