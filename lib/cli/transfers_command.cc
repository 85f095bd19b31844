// meshplan transfers PLAN [ID...]
#include "api/transfers.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/planning.h"
#include "render/bundle_transfers_text.h"

namespace meshplan {
namespace {

// Of --bundle.
Result<const PlannedBundle*> bundle_asked_for(const Plan& plan, const Arguments& arguments) {
  if (arguments.inputs.size() > 1) {
    return bad_input("--bundle lists all members of a bundle; leave out \"" +
                     one_line(arguments.inputs[1]) + "\"");
  }
  return bundle_named(plan, arguments.bundle);
}

}  // namespace

int transfers_command(Context& context, const Arguments& arguments) {
  const std::string& path = arguments.inputs[0];
  int code = 0;
  const auto plan = load_plan(context, path, code);
  if (!plan) return code;
  TransfersQuestion question{{arguments.inputs.begin() + 1, arguments.inputs.end()},
                             arguments.rank};
  const PlannedBundle* bundle = nullptr;
  if (!arguments.bundle.empty()) {
    const auto named = bundle_asked_for(*plan, arguments);
    if (!named) return context.fail(path, named.error());
    bundle = *named;
    question.ids.clear();
  }
  if (const auto checked = check_transfers(*plan, question); !checked)
    return context.fail(path, checked.error());
  if (bundle != nullptr) {
    const BundleTransfersQuestion all{bundle, arguments.rank};
    const auto write_bundle =
        arguments.format == "csv" ? write_bundle_transfers_csv : write_bundle_transfers_json;
    const auto written = context.write_parts(
        arguments.output, [&](const TextSink& sink) { return write_bundle(*plan, all, sink); });
    return written ? 0 : context.fail(path, written.error());
  }
  const auto write = arguments.format == "csv" ? write_transfers_csv : write_transfers_json;
  const auto written = context.write_parts(
      arguments.output, [&](const TextSink& sink) { return write(*plan, question, sink); });
  return written ? 0 : context.fail(path, written.error());
}

}  // namespace meshplan
