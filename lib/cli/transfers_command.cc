// meshplan transfers PLAN [ID...]
#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/planning.h"
#include "render/transfers_text.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

// Above this no list can be read or executed by anyone, and one step alone would fill the memory.
constexpr int64_t most_ranks = 65'536;

Status check_ids(const Plan& plan, const std::vector<std::string>& ids) {
  std::vector<std::string> known;
  for (const PlannedRedistribution& r : plan.redistributions) known.push_back(r.request.id);
  for (const std::string& id : ids) {
    if (std::find(known.begin(), known.end(), id) != known.end()) continue;
    const auto near = nearest(id, known);
    return bad_input("the plan has no redistribution '" + one_line(id) + "'" +
                     (near ? "; did you mean '" + one_line(*near) + "'?" : ""));
  }
  return Done{};
}

Status check_rank(const Plan& plan, const std::optional<int64_t>& rank) {
  const int64_t ranks = rank_count(plan.meshes);
  if (ranks > most_ranks) {
    return bad_input("the plan has " + with_commas(ranks) +
                     " ranks and transfers are listed for at most " + with_commas(most_ranks));
  }
  if (!rank) return Done{};
  std::vector<int64_t> ids;
  for (const auto& [id, position] : positions_by_rank(joined_universe(plan.meshes))) {
    if (id == *rank) return Done{};
    ids.push_back(id);
  }
  return bad_input("--rank " + std::to_string(*rank) + ": the plan has " +
                   with_commas(static_cast<int64_t>(ids.size())) + " ranks between " +
                   std::to_string(ids.front()) + " and " + std::to_string(ids.back()) +
                   ", and this is none of them");
}

}  // namespace

int transfers_command(Context& context, const Arguments& arguments) {
  const std::string& path = arguments.inputs[0];
  int code = 0;
  const auto plan = load_plan(context, path, code);
  if (!plan) return code;
  const TransfersQuestion question{{arguments.inputs.begin() + 1, arguments.inputs.end()},
                                   arguments.rank};
  if (const auto known = check_ids(*plan, question.ids); !known)
    return context.fail(path, known.error());
  if (const auto known = check_rank(*plan, question.rank); !known)
    return context.fail(path, known.error());
  if (const auto proven = verify_plan(*plan); !proven) return context.fail(path, proven.error());
  const auto write = arguments.format == "csv" ? write_transfers_csv : write_transfers_json;
  const auto written = context.write_parts(
      arguments.output, [&](const TextSink& sink) { return write(*plan, question, sink); });
  return written ? 0 : context.fail(path, written.error());
}

}  // namespace meshplan
