// exchange: sends and receives between pairs of ranks, by the rules of this module's README.md.
#include <algorithm>

#include "transfer/exchange_transfers.h"
#include "transfer/level_units.h"
#include "transfer/transfer_maker.h"

namespace meshplan {
namespace {

// The named slots as one side of an exchange.
std::vector<RankBox> side_of(const HeldBoxes& held, const RankTable& ranks,
                             const std::vector<int32_t>& slots) {
  std::vector<RankBox> out;
  for (int32_t s : slots) {
    const auto rank = static_cast<size_t>(held.ranks[static_cast<size_t>(s)]);
    out.push_back({ranks.global_ids[rank], box_of_slot(held, s)});
  }
  return out;
}

}  // namespace

// Ranks that may talk, and every contribution to a reduction among them, are an exchange of their
// own.
Status TransferMaker::make_exchange() {
  // What is pending on mesh dims of size 1 is the whole value.
  const bool reduces = std::any_of(sub_axes_.reduced.begin(), sub_axes_.reduced.end(),
                                   [](const SubAxis& sub_axis) { return sub_axis.size > 1; });
  if (step_.phases == 2 && reduces) return fail("two phases are for exchanges that reduce nothing");
  for (const auto& [key, ranks] : exchange_classes()) {
    for (int32_t t : ranks.targets) out_.slots[static_cast<size_t>(t)].group = ranks.group;
    int32_t contribution = 0;
    for (const auto& [number, sources] : ranks.contributors) {
      if (step_.phases == 2) {
        add_two_phases(ranks, sources);
      } else {
        add_one_phase(ranks, sources, contribution);
      }
      for (int32_t t : ranks.targets) {
        std::vector<Transfer> now;
        int64_t covered = 0;
        for (const Transfer& transfer : out_.slots[static_cast<size_t>(t)].transfers) {
          if (transfer.contribution == contribution) covered += volume(transfer.box);
        }
        if (covered == volume(box_of_slot(after_, t))) continue;
        for (const Transfer& transfer : out_.slots[static_cast<size_t>(t)].transfers) {
          if (transfer.contribution == contribution) now.push_back(transfer);
        }
        return missing(static_cast<size_t>(t), now, "no rank of the exchange holds it");
      }
      ++contribution;
    }
  }
  return Done{};
}

std::map<int64_t, TransferMaker::ExchangeClass> TransferMaker::exchange_classes() const {
  const CoordinatesOn free(sub_axes_.talking, before_.mesh_shape);
  const CoordinatesOn reduced(sub_axes_.reduced, before_.mesh_shape);
  std::map<int64_t, ExchangeClass> classes;
  for (size_t s = 0; s < after_.ranks.size(); ++s) {
    const int64_t key = crosses_ ? 0 : key_of(after_, static_cast<int64_t>(s), free);
    classes[key].targets.push_back(static_cast<int32_t>(s));
  }
  for (size_t s = 0; s < before_.ranks.size(); ++s) {
    const auto slot = static_cast<int64_t>(s);
    ExchangeClass& ranks = classes[crosses_ ? 0 : key_of(before_, slot, free)];
    ranks.contributors[reduced.part(slot % before_.size)].push_back(static_cast<int32_t>(s));
    ranks.group.push_back(static_cast<int32_t>(s));
  }
  for (auto& [key, ranks] : classes) sort_by_rank(ranks.group);
  return classes;
}

void TransferMaker::add_one_phase(const ExchangeClass& ranks, const std::vector<int32_t>& sources,
                                  int32_t contribution) {
  const auto& targets = ranks.targets;
  const ExchangeCut cut = step_.whole_pieces ? ExchangeCut::whole : ExchangeCut::even;
  for (ExchangeTransfer& t :
       exchange_transfers(side_of(before_, *q_.ranks, sources), side_of(after_, *q_.ranks, targets),
                          level_ranks_of(*q_.topology), cut, step_.far_64ths)) {
    add(targets[static_cast<size_t>(t.target)],
        {sources[static_cast<size_t>(t.source)], contribution, false, std::move(t.box)});
  }
}

// Every box is cut into near-equal chunks, which are sent in turn.
void TransferMaker::add_two_phases(const ExchangeClass& ranks,
                                   const std::vector<int32_t>& sources) {
  const auto& targets = ranks.targets;
  auto source = [&](int32_t i) { return sources[static_cast<size_t>(i)]; };
  auto target = [&](int32_t i) { return targets[static_cast<size_t>(i)]; };
  TwoPhaseTransfers both =
      two_phase_transfers(side_of(before_, *q_.ranks, sources), side_of(after_, *q_.ranks, targets),
                          level_ranks_of(*q_.topology), fetchers_of(step_));
  const auto each_chunk = [&](const Box& box, auto&& add_one) {
    for (int64_t chunk = 0; chunk < step_.chunks; ++chunk) {
      Box part = even_part(box, step_.chunks, chunk);
      if (volume(part) > 0 || step_.chunks == 1)
        add_one(std::move(part), static_cast<int32_t>(chunk));
    }
  };
  out_.chunks = step_.chunks;
  for (const ExchangeTransfer& t : both.first_phase) {
    each_chunk(t.box, [&](Box&& part, int32_t chunk) {
      out_.first_phase.push_back({source(t.source), target(t.target), std::move(part), chunk});
    });
  }
  for (ExchangeTransfer& t : both.from_sources) {
    const bool kept = out_.slots[static_cast<size_t>(target(t.target))].self == source(t.source);
    if (kept) {
      add(target(t.target), {source(t.source), 0, false, std::move(t.box), 0});
      continue;
    }
    each_chunk(t.box, [&](Box&& part, int32_t chunk) {
      add(target(t.target), {source(t.source), 0, false, std::move(part), chunk});
    });
  }
  for (const ExchangeTransfer& t : both.from_fetchers) {
    each_chunk(t.box, [&](Box&& part, int32_t chunk) {
      add(target(t.target), {target(t.source), 0, true, std::move(part), chunk});
    });
  }
}

}  // namespace meshplan
