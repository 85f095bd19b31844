// exchange: sends and receives between pairs of ranks, by the rules of this module's README.md.
#include <algorithm>

#include "transfer/exchange_transfers.h"
#include "transfer/level_units.h"
#include "transfer/shifts.h"
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

int32_t rank_of_slot(const HeldBoxes& held, int32_t slot) {
  return held.ranks[static_cast<size_t>(slot)];
}

// Stages of all shifts, and that of each part.
struct Stages {
  std::vector<int32_t> of;
  int64_t count = 1;
};
// nullopt: parts change places too often.
std::optional<Stages> stages_in(const std::vector<ExchangeTransfer>& fetched, int64_t at_once) {
  if (at_once == 0) return Stages{std::vector<int32_t>(fetched.size(), 0), 1};
  std::vector<Fetch> parts;
  for (const ExchangeTransfer& t : fetched) parts.push_back({t.target, t.source});
  auto shifts = put_in_shifts(parts);
  if (!shifts) return std::nullopt;
  for (int32_t& shift : shifts->of)
    shift = static_cast<int32_t>(stage_of(shift, shifts->count, at_once));
  return Stages{std::move(shifts->of), stages_of(shifts->count, at_once)};
}

}  // namespace

// Ranks that may talk, and every contribution to a reduction among them, are an exchange of their
// own.
Status TransferMaker::make_exchange() {
  // What is pending on mesh dims of size 1 is the whole value.
  const bool reduces = std::any_of(sub_axes_.reduced.begin(), sub_axes_.reduced.end(),
                                   [](const SubAxis& sub_axis) { return sub_axis.size > 1; });
  if (step_.phases == 2 && reduces) return fail("two phases are for exchanges that reduce nothing");
  if (step_.at_once > 0 && !crosses_) return fail("shifts are for exchanges across meshes");
  for (const auto& [key, ranks] : exchange_classes()) {
    for (int32_t t : ranks.targets) out_.slots[static_cast<size_t>(t)].group = ranks.group;
    int32_t contribution = 0;
    for (const auto& [number, sources] : ranks.contributors) {
      if (step_.phases == 2) {
        if (auto added = add_two_phases(ranks, sources); !added) return added;
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
    if (!ranks.group) ranks.group = std::make_shared<std::vector<int32_t>>();
    ranks.group->push_back(static_cast<int32_t>(s));
  }
  for (auto& [key, ranks] : classes) {
    if (ranks.group) sort_by_rank(*ranks.group);
  }
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

Status TransferMaker::for_each_received(const std::function<void(const ReceivedAlike&)>& use) {
  if (auto done = sort_sub_axes(); !done) return done;
  const ExchangeCut cut = step_.whole_pieces ? ExchangeCut::whole : ExchangeCut::even;
  const std::vector<int64_t> level_ranks = level_ranks_of(*q_.topology);
  ReceivedAlike received;
  for (const auto& [key, ranks] : exchange_classes()) {
    const std::vector<RankBox> targets = side_of(after_, *q_.ranks, ranks.targets);
    for (const auto& [number, slots] : ranks.contributors) {
      const auto use_ranks = [&](const ReceivedAlike& of_slots) {
        received = of_slots;
        for (ReceivedAlike::Part& part : received.parts)
          part.from = rank_of_slot(before_, slots[static_cast<size_t>(part.from)]);
        for (int32_t& to : received.to)
          to = rank_of_slot(after_, ranks.targets[static_cast<size_t>(to)]);
        use(received);
      };
      exchange_elements(side_of(before_, *q_.ranks, slots), targets, level_ranks, cut, use_ranks);
    }
  }
  return Done{};
}

Result<PhasePairs> TransferMaker::pairs_in_two_phases() {
  if (auto done = sort_sub_axes(); !done) return done.error();
  const std::vector<int64_t> level_ranks = level_ranks_of(*q_.topology);
  PhasePairs all;
  for (const auto& [key, ranks] : exchange_classes()) {
    const std::vector<RankBox> targets = side_of(after_, *q_.ranks, ranks.targets);
    for (const auto& [number, slots] : ranks.contributors) {
      const TwoPhaseElements both = two_phase_elements(side_of(before_, *q_.ranks, slots), targets,
                                                       level_ranks, fetchers_of(step_));
      // What comes from ranks of one side, numbered in a list of slots.
      const auto add = [&](const std::vector<ExchangeElements>& parts, const HeldBoxes& from,
                           const std::vector<int32_t>& from_slots,
                           std::vector<PairElements>& list) {
        for (const ExchangeElements& part : parts) {
          list.push_back({rank_of_slot(from, from_slots[static_cast<size_t>(part.source)]),
                          rank_of_slot(after_, ranks.targets[static_cast<size_t>(part.target)]),
                          part.elements});
        }
      };
      add(both.first_phase, before_, slots, all.fetched);
      add(both.from_sources, before_, slots, all.from_sources);
      add(both.from_fetchers, after_, ranks.targets, all.passed_on);
    }
  }
  return all;
}

// Every box is cut into near-equal chunks, which are sent in turn: those of one stage after those
// of the one before.
Status TransferMaker::add_two_phases(const ExchangeClass& ranks,
                                     const std::vector<int32_t>& sources) {
  const auto& targets = ranks.targets;
  auto source = [&](int32_t i) { return sources[static_cast<size_t>(i)]; };
  auto target = [&](int32_t i) { return targets[static_cast<size_t>(i)]; };
  TwoPhaseTransfers both =
      two_phase_transfers(side_of(before_, *q_.ranks, sources), side_of(after_, *q_.ranks, targets),
                          level_ranks_of(*q_.topology), fetchers_of(step_));
  const auto known = stages_in(both.first_phase, step_.at_once);
  if (!known) return fail("too many parts to put in shifts");
  const Stages& stages = *known;
  if (step_.chunks % stages.count != 0) {
    return fail(std::to_string(step_.chunks) + " chunks, " + std::to_string(step_.at_once) +
                " at once, of " + std::to_string(stages.count) +
                " stages: they are a multiple of the stages");
  }
  const auto each_of = [&](const Box& box, int64_t first, int64_t chunks, auto&& add_one) {
    for (int64_t i = 0; i < chunks; ++i) {
      if (box.empty() && i > 0) return;  // a scalar is one slice
      Box part = even_part(box, chunks, i);
      if (volume(part) > 0 || chunks == 1)
        add_one(std::move(part), static_cast<int32_t>(first + i));
    }
  };
  const auto each_chunk = [&](const Box& box, auto&& add_one) {
    each_of(box, 0, step_.chunks, add_one);
  };
  const auto each_of_stage = [&](size_t fetch, const Box& box, auto&& add_one) {
    const int64_t chunks = step_.chunks / stages.count;
    each_of(box, stages.of[fetch] * chunks, chunks, add_one);
  };
  out_.chunks = step_.chunks;
  for (size_t i = 0; i < both.first_phase.size(); ++i) {
    const ExchangeTransfer& t = both.first_phase[i];
    each_of_stage(i, t.box, [&](Box&& part, int32_t chunk) {
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
  for (size_t i = 0; i < both.from_fetchers.size(); ++i) {
    const ExchangeTransfer& t = both.from_fetchers[i];
    const auto fetch = static_cast<size_t>(both.fetch_of[i]);
    each_of_stage(fetch, t.box, [&](Box&& part, int32_t chunk) {
      add(target(t.target), {target(t.source), 0, true, std::move(part), chunk});
    });
  }
  return Done{};
}

}  // namespace meshplan
