// meshplan run PLAN
#include "base/text.h"
#include "cli/codes.h"
#include "cli/commands.h"
#include "cli/planning.h"
#include "replay_host/open_backend.h"

namespace meshplan {
namespace {

Result<ReplayOptions> replay_options(const Arguments& arguments, Progress& progress) {
  ReplayOptions options;
  options.only_ids = arguments.only;
  options.data = arguments.random_data ? DataKind::random : DataKind::exact;
  options.seed = static_cast<uint64_t>(arguments.seed);
  options.shrink = arguments.shrink;
  options.full_size = arguments.full_size;
  if (options.shrink && options.full_size) return bad_input("--shrink and --full-size exclude each other");
  for (const std::string& text : arguments.inject) {
    const auto fault = parse_fault(text);
    if (!fault) return bad_input("--inject: " + fault.error().message);
    options.faults.push_back(*fault);
  }
  options.progress = [&progress](size_t done, size_t all, const std::string& id) { progress.update(done, all, "replaying " + id); };
  return options;
}

}  // namespace

int run_command(Context& context, const Arguments& arguments) {
  const std::string& path = arguments.inputs[0];
  int code = 0;
  const auto plan = load_plan(context, path, code);
  if (!plan) return code;
  Progress progress(context);
  const auto options = replay_options(arguments, progress);
  if (!options) return context.fail(path, options.error());
  const auto report = replay_on(arguments.backend, *plan, *options);
  progress.clear();
  if (!report) {
    // Under a launcher every process knows the error and the first one says it.
    return process_speaks() ? context.fail(path, report.error()) : exit_code(report.error().fault);
  }
  if (!report->speaks) return all_right(*report) ? 0 : exit_code(Fault::wrong_data);
  if (const auto written = context.write_output("-", to_text(*report)); !written) return context.fail("", written.error());
  if (all_right(*report)) return 0;
  return context.fail(path, wrong_data(with_commas(wrong_elements(*report)) + " of " + with_commas(checked_elements(*report)) +
                                       " elements are not where or what they should be"));
}

}  // namespace meshplan
