#include "transfer/exchange_transfers.h"

#include <algorithm>
#include <new>

#include "base/in_order_of.h"
#include "transfer/far_share.h"
#include "transfer/nearest_holders.h"
#include "transfer/two_phases.h"

namespace meshplan {
namespace {

// One side in rank order, and where each rank was in the list.
struct Side {
  SideBoxes boxes;
  std::vector<int32_t> listed;
};

Side in_rank_order(std::span<const RankBox> ranks) {
  Side side;
  for (size_t i = 0; i < ranks.size(); ++i) side.listed.push_back(static_cast<int32_t>(i));
  std::sort(side.listed.begin(), side.listed.end(), [&](int32_t a, int32_t b) {
    return ranks[static_cast<size_t>(a)].rank < ranks[static_cast<size_t>(b)].rank;
  });
  side.boxes.dims = ranks.empty() ? 0 : static_cast<int>(ranks.front().box.size());
  for (int32_t i : side.listed) {
    const RankBox& rank = ranks[static_cast<size_t>(i)];
    side.boxes.id.push_back(rank.rank);
    side.boxes.box.insert(side.boxes.box.end(), rank.box.begin(), rank.box.end());
  }
  return side;
}

// Both sides, and the ranks they make.
struct Question {
  Side sources;
  Side targets;
  ExchangeRanks ranks;

  Question(std::span<const RankBox> from, std::span<const RankBox> to)
      : sources(in_rank_order(from)), targets(in_rank_order(to)) {
    // They are numbered in 32 bits; so many take 50 GB.
    auto made = make_exchange_ranks(sources.boxes, targets.boxes, INT32_MAX);
    if (!made) throw std::bad_alloc();
    ranks = *std::move(made);
  }
  [[nodiscard]] int32_t source_of(int32_t rank) const {
    return sources.listed[static_cast<size_t>(ranks.source[static_cast<size_t>(rank)])];
  }
  [[nodiscard]] int32_t target_of(int32_t rank) const {
    return targets.listed[static_cast<size_t>(ranks.target[static_cast<size_t>(rank)])];
  }
  [[nodiscard]] Box box_of(int32_t receiver, const Overlap& overlap) const {
    return ranks.overlap_box(ranks.wanted[static_cast<size_t>(receiver)], overlap.shard);
  }
};

bool any_rank(int32_t /*rank*/) { return true; }

// Calls visit(rank, overlap, kept) for every overlap of the box that each rank wants which is asked
// for, in rank order, then shard. Kept: the rank holds the shard itself.
template <class AskedFor, class Visitor>
void for_each_overlap(const ExchangeRanks& ranks, AskedFor&& asked_for, Visitor&& visit) {
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (ranks.wanted[r] < 0 || !asked_for(static_cast<int32_t>(r))) continue;
    for (const Overlap& overlap : ranks.overlaps_of(ranks.wanted[r]))
      visit(static_cast<int32_t>(r), overlap, overlap.shard == ranks.shard[r]);
  }
}

// What comes from one holder: some slices of an overlap.
struct Part {
  int32_t holder = 0;
  int32_t receiver = 0;
  const Overlap* overlap = nullptr;
  int64_t first = 0;
  int64_t slices = 1;
};
Part all_of(const Overlap& overlap, int32_t holder, int32_t receiver) {
  return {holder, receiver, &overlap, 0, overlap.longest};
}

// The even cut: calls visit(part) for a part from each nearest holder.
template <class Visitor>
void cut_evenly(const Question& q, int32_t receiver, const Overlap& overlap,
                const NearestHolders& near, Visitor&& visit) {
  const auto holders = q.ranks.holders_of(overlap.shard);
  const int64_t parts = std::min<int64_t>(near.count, overlap.longest);
  for (int64_t i = 0; i < parts; ++i) {
    visit(Part{holders[static_cast<size_t>(near.begin + i)], receiver, &overlap,
               near_equal_begin(overlap.longest, near.count, i),
               near_equal(overlap.longest, near.count, i)});
  }
}

ExchangeTransfer transfer_of(const Question& q, const Part& part) {
  return {q.source_of(part.holder), q.target_of(part.receiver),
          slices_of(q.box_of(part.receiver, *part.overlap), part.overlap->dim, part.first,
                    part.slices)};
}

ExchangeElements elements_of(const Question& q, const Part& part) {
  const int64_t slice = floor_div(part.overlap->elements, part.overlap->longest);
  return {q.source_of(part.holder), q.target_of(part.receiver), slice * part.slices};
}

// Calls visit(part) for every part of an exchange in one phase that goes to a rank which is asked
// for, by receiver, in rank order.
template <class AskedFor, class Visitor>
void for_each_part(const Question& q, const LevelUnits& units, ExchangeCut cut, int64_t far_64ths,
                   AskedFor&& asked_for, Visitor&& visit) {
  Nearest nearest(q.ranks, units);
  FarShares shares(q.ranks, units, far_64ths);
  std::vector<int64_t> asked(q.ranks.shards(), 0);  // ranks so far that miss part of the shard
  for_each_overlap(q.ranks, asked_for, [&](int32_t rank, const Overlap& overlap, bool kept) {
    if (kept) return visit(all_of(overlap, rank, rank));
    if (far_64ths > 0) {
      shares.for_each_share(rank, overlap, [&](const Share& share) {
        visit(Part{share.holder, rank, &overlap, share.first, share.slices});
      });
      return;
    }
    const NearestHolders& near = nearest.of(overlap.shard, rank);
    if (cut == ExchangeCut::whole) {
      const int64_t turn = asked[static_cast<size_t>(overlap.shard)]++ % near.count;
      const auto holder = static_cast<size_t>(near.begin + turn);
      visit(all_of(overlap, q.ranks.holders_of(overlap.shard)[holder], rank));
    } else {
      cut_evenly(q, rank, overlap, near, visit);
    }
  });
}

// Ranks that have no holder of anything in their units but the outermost: the nearest holders of a
// shard are all of them, and of ranks that want the same box each part is the same.
struct FarReceivers {
  std::vector<bool> is_far;                     // by rank
  std::vector<std::vector<int32_t>> of_wanted;  // ranks, by wanted box
};
FarReceivers far_receivers(const ExchangeRanks& ranks, const LevelUnits& units, ExchangeCut cut) {
  FarReceivers far{std::vector<bool>(ranks.size(), false), {}};
  // Whole pieces come by turns where a shard has several holders.
  const bool by_turns = cut == ExchangeCut::whole && ranks.holders.size() > ranks.shards();
  if (by_turns) return far;
  far.of_wanted.resize(ranks.wants());
  const auto unit = [&](size_t r) { return units.joined(ranks.id[r], units.levels() - 1); };
  for (size_t begin = 0, end = 0; begin < ranks.size(); begin = end) {
    bool holds = false;
    for (end = begin; end < ranks.size() && unit(end) == unit(begin); ++end)
      holds = holds || ranks.shard[end] >= 0;
    for (size_t r = begin; r < end && !holds; ++r) {
      if (ranks.wanted[r] < 0) continue;
      far.is_far[r] = true;
      far.of_wanted[static_cast<size_t>(ranks.wanted[r])].push_back(static_cast<int32_t>(r));
    }
  }
  return far;
}

// In two: calls from_source(part) for what stays or comes from inside of units, then, of each part
// that comes from other units, fetched(part) and passed_on(part, member) for those that want it,
// its fetcher among them.
template <class FromSource, class Fetched, class PassedOn>
void for_each_part_in_two_phases(const Question& q, std::span<const int64_t> level_ranks,
                                 Fetchers fetchers, FromSource&& from_source, Fetched&& fetched,
                                 PassedOn&& passed_on) {
  const LevelUnits units(level_ranks);
  for_each_overlap(q.ranks, any_rank, [&](int32_t rank, const Overlap& overlap, bool kept) {
    if (kept) from_source(all_of(overlap, rank, rank));
  });
  Nearest nearest(q.ranks, units);
  for_each_overlap(q.ranks, any_rank, [&](int32_t rank, const Overlap& overlap, bool kept) {
    if (kept) return;
    const NearestHolders& near = nearest.of(overlap.shard, rank);
    if (near.level == 0) cut_evenly(q, rank, overlap, near, from_source);
  });
  TwoPhases phases(q.ranks, units, fetchers);
  UnitExchange unit;
  while (phases.next(unit)) {
    for (const FetchedPart& f : unit.fetched) {
      fetched(f);
      for (const int32_t m : unit.members) {
        if (q.ranks.wanted[static_cast<size_t>(m)] == f.wanted) passed_on(f, m);
      }
    }
  }
}

}  // namespace

std::vector<ExchangeTransfer> exchange_transfers(std::span<const RankBox> sources,
                                                 std::span<const RankBox> targets,
                                                 std::span<const int64_t> level_ranks,
                                                 ExchangeCut cut, int64_t far_64ths) {
  const Question q(sources, targets);
  std::vector<ExchangeTransfer> transfers;
  for_each_part(q, LevelUnits(level_ranks), cut, far_64ths, any_rank,
                [&](const Part& part) { transfers.push_back(transfer_of(q, part)); });
  // Of one target they are in the order of shards already.
  return in_order_of(std::move(transfers), targets.size(),
                     [](const ExchangeTransfer& t) { return static_cast<size_t>(t.target); });
}

void exchange_elements(std::span<const RankBox> sources, std::span<const RankBox> targets,
                       std::span<const int64_t> level_ranks, ExchangeCut cut,
                       const std::function<void(const ReceivedAlike&)>& use) {
  const Question q(sources, targets);
  const LevelUnits units(level_ranks);
  const FarReceivers far = far_receivers(q.ranks, units, cut);
  ReceivedAlike alike;
  const auto add = [&](const Part& part) {
    if (part.holder == part.receiver) return;
    const ExchangeElements sent = elements_of(q, part);
    alike.parts.push_back({sent.source, sent.elements});
  };
  const auto use_up = [&] {
    if (!alike.parts.empty()) use(alike);
    alike.parts.clear();
    alike.to.clear();
  };
  Nearest nearest(q.ranks, units);
  for (size_t w = 0; w < far.of_wanted.size(); ++w) {
    if (far.of_wanted[w].empty()) continue;
    const int32_t first = far.of_wanted[w].front();
    for (const int32_t r : far.of_wanted[w]) alike.to.push_back(q.target_of(r));
    for (const Overlap& overlap : q.ranks.overlaps_of(static_cast<int32_t>(w)))
      cut_evenly(q, first, overlap, nearest.of(overlap.shard, first), add);
    use_up();
  }
  int32_t receiver = -1;
  const auto is_left = [&](int32_t rank) { return !far.is_far[static_cast<size_t>(rank)]; };
  for_each_part(q, units, cut, 0, is_left, [&](const Part& part) {
    if (part.receiver != receiver) use_up();
    receiver = part.receiver;
    alike.to.assign(1, q.target_of(receiver));
    add(part);
  });
  use_up();
}

TwoPhaseTransfers two_phase_transfers(std::span<const RankBox> sources,
                                      std::span<const RankBox> targets,
                                      std::span<const int64_t> level_ranks, Fetchers fetchers) {
  const Question q(sources, targets);
  TwoPhaseTransfers out;
  const auto from_source = [&](const Part& part) {
    out.from_sources.push_back(transfer_of(q, part));
  };
  const auto fetched = [&](const FetchedPart& f) {
    const Box box = q.ranks.overlap_box(f.wanted, f.overlap.shard);
    out.first_phase.push_back({q.source_of(f.holder), q.target_of(f.fetcher),
                               slices_of(box, f.overlap.dim, f.first, f.slices)});
  };
  const auto passed_on = [&](const FetchedPart& f, int32_t member) {
    out.from_fetchers.push_back(
        {q.target_of(f.fetcher), q.target_of(member), out.first_phase.back().box});
    out.fetch_of.push_back(static_cast<int32_t>(out.first_phase.size()) - 1);
  };
  for_each_part_in_two_phases(q, level_ranks, fetchers, from_source, fetched, passed_on);
  return out;
}

TwoPhaseElements two_phase_elements(std::span<const RankBox> sources,
                                    std::span<const RankBox> targets,
                                    std::span<const int64_t> level_ranks, Fetchers fetchers) {
  const Question q(sources, targets);
  TwoPhaseElements out;
  const auto from_source = [&](const Part& part) {
    if (part.holder != part.receiver) out.from_sources.push_back(elements_of(q, part));
  };
  const auto fetched = [&](const FetchedPart& f) {
    out.first_phase.push_back({q.source_of(f.holder), q.target_of(f.fetcher), f.elements});
  };
  const auto passed_on = [&](const FetchedPart& f, int32_t member) {
    if (member != f.fetcher)
      out.from_fetchers.push_back({q.target_of(f.fetcher), q.target_of(member), f.elements});
  };
  for_each_part_in_two_phases(q, level_ranks, fetchers, from_source, fetched, passed_on);
  return out;
}

}  // namespace meshplan
