// meshplan compare PLAN --ran DUMP...
#include <algorithm>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/planning.h"
#include "measure/compare_ran.h"

namespace meshplan {
namespace {

// Above this a group's ranks would be listed longer than anyone waits.
constexpr int64_t most_ranks = 65'536;

}  // namespace

int compare_command(Context& context, const Arguments& arguments) {
  const std::string& path = arguments.inputs[0];
  if (arguments.ran.empty()) {
    return context.fail("", bad_input("meshplan compare needs what ran: meshplan compare " + path +
                                      " --ran dump-of-rank-0.json ..."));
  }
  int code = 0;
  const auto plan = load_plan(context, path, code);
  if (!plan) return code;
  if (rank_count(plan->meshes) > most_ranks) {
    return context.fail(
        path, bad_input("the plan has " + with_commas(rank_count(plan->meshes)) +
                        " ranks, dumps are compared for at most " + with_commas(most_ranks) +
                        "; plan the program on smaller mesh dims, and dump it there"));
  }
  std::string text;
  bool same = true;
  for (const std::string& file : arguments.ran) {
    const auto content = context.read_input(file);
    if (!content) return context.fail(file, content.error());
    auto dump = read_ran_dump(*content, file);
    if (!dump) return context.fail(file, dump.error());
    const int64_t times = std::max<int64_t>(arguments.repeat, 1);
    const RanComparison comparison = compare_ran(*plan, *std::move(dump), times);
    same = same && as_planned(comparison);
    text += (text.empty() ? "" : "\n") + to_text(comparison);
  }
  if (const auto written = context.write_output(arguments.output, text); !written)
    return context.fail("", written.error());
  return same ? 0 : 1;
}

}  // namespace meshplan
