#include "render/senders.h"

#include <unordered_set>

#include "base/text.h"
#include "transfer/listed_transfers.h"

namespace meshplan {
namespace {

std::unordered_set<int64_t> ranks_in(const Grid& grid) {
  std::unordered_set<int64_t> ranks;
  for (const auto& row : grid.rows) {
    for (const GridCell& cell : row) ranks.insert(cell.rank);
  }
  return ranks;
}

StepSenders senders_in(const StepTransfers& transfers, const HeldBoxes& before,
                       const HeldBoxes& after, const RankTable& ranks, const Grid& grid,
                       int64_t element) {
  const std::unordered_set<int64_t> shown = ranks_in(grid);
  StepSenders senders;
  size_t listed = 0;
  const auto visit = [&](const ListedTransfer& row) -> Status {
    if (row.action != TransferAction::send || shown.count(row.to.rank) == 0) return Done{};
    if (++listed > max_sender_transfers) return bad_input("too many");
    senders.into[row.to.rank].push_back(
        {row.from.rank, to_text(row.box), volume(row.box) * element, row.phase});
    return Done{};
  };
  if (list_transfers(transfers, before, after, ranks, visit)) return senders;
  return {{},
          "more than " + with_commas(static_cast<int64_t>(max_sender_transfers)) +
              " transfers reach these ranks: meshplan transfers lists them"};
}

}  // namespace

std::vector<StepSenders> senders_of(const Plan& plan, const PlannedRedistribution& r,
                                    const std::vector<Grid>& shown) {
  std::vector<StepSenders> senders(r.steps.size());
  if (rank_count(plan.meshes) > max_sender_ranks) {
    for (StepSenders& step : senders) {
      step.left_out = "of more than " + with_commas(max_sender_ranks) +
                      " ranks no senders are shown: meshplan transfers lists them";
    }
    return senders;
  }
  const RankTable ranks = make_rank_table(plan.meshes);
  const std::vector<HeldBoxes> held = held_boxes_of(plan, r, ranks);
  for (size_t i = 0; i < r.steps.size(); ++i) {
    const auto transfers = make_transfers(
        {&held[i], &held[i + 1], &r.steps[i], &ranks, &plan.topology, "step " + std::to_string(i)});
    if (!transfers) {
      senders[i].left_out = transfers.error().message;
      continue;
    }
    const bool wide = transfers->reduce_op && !is_local(transfers->op) && r.request.reduce_dtype;
    const int64_t element = element_bytes(wide ? *r.request.reduce_dtype : r.request.tensor.dtype);
    senders[i] = senders_in(*transfers, held[i], held[i + 1], ranks, shown[i], element);
  }
  return senders;
}

std::string received_text(const StepSenders& senders, int64_t rank) {
  constexpr size_t most = 8;
  const auto found = senders.into.find(rank);
  if (found == senders.into.end()) return {};
  std::string text = "receives ";
  for (size_t i = 0; i < found->second.size() && i < most; ++i) {
    const Received& each = found->second[i];
    text += (i > 0 ? ", " : "") + each.box + " from rank " + std::to_string(each.from) + " (" +
            human_bytes(each.bytes) + ")";
  }
  const size_t more = found->second.size() - std::min(most, found->second.size());
  return more > 0 ? text + ", and " + std::to_string(more) + " more" : text;
}

}  // namespace meshplan
