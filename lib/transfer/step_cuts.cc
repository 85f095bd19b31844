#include "transfer/step_cuts.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/int_math.h"
#include "transfer/exchange_cut.h"
#include "transfer/transfer_maker.h"

namespace meshplan {
namespace {

// `part` lies in `whole`, which is cut along dim `d`; -1 of a scalar.
StepCut cut_of(const Box& whole, int d, const Box& part, int32_t from, int32_t to) {
  StepCut cut{from, to, 1, 0, 1, volume(part)};
  if (d < 0) return cut;
  const auto dim = static_cast<size_t>(d);
  cut.length = width(whole[dim]);
  cut.lo = part[dim].lo - whole[dim].lo;
  cut.hi = part[dim].hi - whole[dim].lo;
  cut.slice = floor_div(cut.slice, width(part[dim]));
  return cut;
}

auto order_of(const StepCut& c) { return std::tie(c.from, c.to, c.length, c.lo, c.hi); }

std::vector<StepCut> joined(std::vector<StepCut> cuts) {
  std::sort(cuts.begin(), cuts.end(),
            [](const StepCut& a, const StepCut& b) { return order_of(a) < order_of(b); });
  std::vector<StepCut> all;
  for (const StepCut& cut : cuts) {
    if (!all.empty() && order_of(all.back()) == order_of(cut)) {
      all.back().slice = saturating_add(all.back().slice, cut.slice);
    } else {
      all.push_back(cut);
    }
  }
  return all;
}

}  // namespace

std::vector<StepCut> cuts_of(const PieceCut& cut, const StepTransfers& transfers,
                             const HeldBoxes& before, const HeldBoxes& after) {
  std::vector<StepCut> cuts;
  for (size_t slot = 0; slot < transfers.slots.size(); ++slot) {
    const int32_t to = after.ranks[slot];
    for (const Transfer& t : transfers.slots[slot].transfers) {
      const int32_t from = sender_rank(t, before, after);
      if (from != to && volume(t.box) > 0)
        cuts.push_back(cut_of(t.box, piece_dim(cut, t.box), t.box, from, to));
    }
  }
  return joined(std::move(cuts));
}

std::vector<StepCut> cuts_of_phase(const StepTransfers& transfers, int phase,
                                   const HeldBoxes& before, const HeldBoxes& after) {
  // Boxes are cut along their longest dim: no dim is steady.
  const PieceCut longest{std::vector<bool>(before.shape.size(), false)};
  return cuts_of(longest, part_of_phase(transfers, phase, 0, 1), before, after);
}

std::vector<StepCut> cuts_of_next(const GotBoxes& got, const StepTransfers& transfers,
                                  const HeldBoxes& before, const HeldBoxes& after) {
  std::vector<StepCut> cuts;
  Box part;
  for (size_t slot = 0; slot < transfers.slots.size(); ++slot) {
    const int32_t to = after.ranks[slot];
    for (const Transfer& t : transfers.slots[slot].transfers) {
      const int32_t from = before.ranks[static_cast<size_t>(t.from)];
      if (from == to) continue;
      for (const GotBox& sent : got[static_cast<size_t>(t.from)]) {
        intersect(t.box, sent.box, part);
        if (volume(part) > 0) cuts.push_back(cut_of(sent.cut, sent.dim, part, from, to));
      }
    }
  }
  return joined(std::move(cuts));
}

std::vector<PairElements> pairs_of(const StepTransfers& transfers, const HeldBoxes& before,
                                   const HeldBoxes& after) {
  std::vector<PairElements> pairs;
  for (size_t slot = 0; slot < transfers.slots.size(); ++slot) {
    const int32_t to = after.ranks[slot];
    for (const Transfer& t : transfers.slots[slot].transfers) {
      const int32_t from = sender_rank(t, before, after);
      const int64_t elements = volume(t.box);
      if (from != to && elements > 0) pairs.push_back({from, to, elements});
    }
  }
  return pairs;
}

Status for_each_received(const TransferQuestion& question,
                         const std::function<void(const ReceivedAlike&)>& use) {
  return TransferMaker(question).for_each_received(use);
}

Result<PhasePairs> pairs_in_two_phases(const TransferQuestion& question) {
  return TransferMaker(question).pairs_in_two_phases();
}

void PartOfLength::turn_to(int64_t length) {
  length_ = length;
  const auto known =
      std::find_if(parts_.begin(), parts_.end(), [&](const auto& p) { return p.first == length; });
  if (known != parts_.end()) {
    part_ = known->second;
    return;
  }
  part_ = {near_equal_begin(length, pieces_, piece_),
           near_equal_begin(length, pieces_, piece_ + count_)};
  parts_.emplace_back(length, part_);
}

std::vector<bool> pairs_in_pieces(const std::vector<StepCut>& cuts, int64_t piece, int64_t pieces,
                                  int64_t count) {
  PartOfLength part(piece, pieces, count);
  std::vector<bool> in_pieces;
  for (size_t i = 0; i < cuts.size(); ++i) {
    const StepCut& cut = cuts[i];
    const bool is_new = i == 0 || cut.from != cuts[i - 1].from || cut.to != cuts[i - 1].to;
    if (is_new) in_pieces.push_back(false);
    if (overlap_width({cut.lo, cut.hi}, part.of(cut.length)) > 0) in_pieces.back() = true;
  }
  return in_pieces;
}

}  // namespace meshplan
