#include "api/transfers.h"

#include "base/text.h"
#include "base/utf8.h"
#include "plan/asked_ids.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

// Above this no list can be read or executed by anyone, and one step alone would fill the memory.
constexpr int64_t most_ranks = 65'536;

Status check_rank(const Plan& plan, const std::optional<int64_t>& rank) {
  const int64_t ranks = rank_count(plan.meshes);
  if (ranks > most_ranks) {
    return bad_input("the plan has " + with_commas(ranks) +
                     " ranks, transfers are listed for at most " + with_commas(most_ranks) +
                     "; plan the same redistributions on smaller mesh dims to list them");
  }
  if (!rank) return Done{};
  std::vector<int64_t> ids;
  for (const auto& [id, position] : positions_by_rank(joined_universe(plan.meshes))) {
    if (id == *rank) return Done{};
    ids.push_back(id);
  }
  return bad_input("rank " + std::to_string(*rank) + " is not in the plan, which has " +
                   with_commas(std::ssize(ids)) + " ranks between " + std::to_string(ids.front()) +
                   " and " + std::to_string(ids.back()));
}

}  // namespace

Status check_transfers(const Plan& plan, const TransfersQuestion& question) {
  if (auto known = check_asked_ids(plan, question.ids, AskedIds::of_redistributions); !known)
    return known;
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
