#include "api/transfers.h"

#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"
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
  return bad_input("rank " + std::to_string(*rank) + " is not in the plan, which has " +
                   with_commas(static_cast<int64_t>(ids.size())) + " ranks between " +
                   std::to_string(ids.front()) + " and " + std::to_string(ids.back()));
}

}  // namespace

Status check_transfers(const Plan& plan, const TransfersQuestion& question) {
  if (auto known = check_ids(plan, question.ids); !known) return known;
  if (auto known = check_rank(plan, question.rank); !known) return known;
  return verify_plan(plan);
}

Result<const PlannedBundle*> bundle_named(const Plan& plan, const std::string& id) {
  std::vector<std::string> known;
  for (const PlannedBundle& bundle : plan.bundles) {
    if (bundle.request.id == id) return &bundle;
    known.push_back(bundle.request.id);
  }
  const auto near = nearest(id, known);
  return bad_input("the plan has no bundle '" + one_line(id) + "'" +
                   (known.empty() ? ", and no other" : "") +
                   (near ? "; did you mean '" + one_line(*near) + "'?" : ""));
}

}  // namespace meshplan
