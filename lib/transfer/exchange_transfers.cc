#include "transfer/exchange_transfers.h"

#include <algorithm>

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
    ranks = *make_exchange_ranks(sources.boxes, targets.boxes);
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

// Calls visit(rank, overlap, kept) for every overlap of the box that each rank wants, in rank
// order, then shard. Kept: the rank holds the shard itself.
template <class Visitor>
void for_each_overlap(const ExchangeRanks& ranks, Visitor&& visit) {
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (ranks.wanted[r] < 0) continue;
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

// Calls visit(part) for every part of an exchange in one phase, by receiver, in rank order.
template <class Visitor>
void for_each_part(const Question& q, std::span<const int64_t> level_ranks, ExchangeCut cut,
                   int64_t far_64ths, Visitor&& visit) {
  const LevelUnits units(level_ranks);
  Nearest nearest(q.ranks, units);
  FarShares shares(q.ranks, units, far_64ths);
  std::vector<int64_t> asked(q.ranks.shards(), 0);  // ranks so far that miss part of the shard
  for_each_overlap(q.ranks, [&](int32_t rank, const Overlap& overlap, bool kept) {
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

// In two: calls from_source(part) for what stays or comes from inside of units, then
// fetched(part, members of its unit) for what comes from other units.
template <class FromSource, class Fetched>
void for_each_part_in_two_phases(const Question& q, std::span<const int64_t> level_ranks,
                                 Fetchers fetchers, FromSource&& from_source, Fetched&& fetched) {
  const LevelUnits units(level_ranks);
  for_each_overlap(q.ranks, [&](int32_t rank, const Overlap& overlap, bool kept) {
    if (kept) from_source(all_of(overlap, rank, rank));
  });
  Nearest nearest(q.ranks, units);
  for_each_overlap(q.ranks, [&](int32_t rank, const Overlap& overlap, bool kept) {
    if (kept) return;
    const NearestHolders& near = nearest.of(overlap.shard, rank);
    if (near.level == 0) cut_evenly(q, rank, overlap, near, from_source);
  });
  TwoPhases phases(q.ranks, units, fetchers);
  UnitExchange unit;
  while (phases.next(unit)) {
    for (const FetchedPart& f : unit.fetched) fetched(f, unit.members);
  }
}

// In the order of targets, of which there are so many; those of one target as they were.
std::vector<ExchangeTransfer> by_target(std::vector<ExchangeTransfer> transfers, size_t targets) {
  const auto less = [](const auto& a, const auto& b) { return a.target < b.target; };
  if (std::is_sorted(transfers.begin(), transfers.end(), less)) return transfers;
  std::vector<size_t> next(targets + 1, 0);  // place of the next transfer, by target
  for (const ExchangeTransfer& t : transfers) ++next[static_cast<size_t>(t.target) + 1];
  for (size_t t = 1; t < next.size(); ++t) next[t] += next[t - 1];
  std::vector<ExchangeTransfer> sorted(transfers.size());
  for (ExchangeTransfer& t : transfers)
    sorted[next[static_cast<size_t>(t.target)]++] = std::move(t);
  return sorted;
}

}  // namespace

std::vector<ExchangeTransfer> exchange_transfers(std::span<const RankBox> sources,
                                                 std::span<const RankBox> targets,
                                                 std::span<const int64_t> level_ranks,
                                                 ExchangeCut cut, int64_t far_64ths) {
  const Question q(sources, targets);
  std::vector<ExchangeTransfer> transfers;
  for_each_part(q, level_ranks, cut, far_64ths,
                [&](const Part& part) { transfers.push_back(transfer_of(q, part)); });
  // Of one target they are in the order of shards already.
  return by_target(std::move(transfers), targets.size());
}

void exchange_elements(std::span<const RankBox> sources, std::span<const RankBox> targets,
                       std::span<const int64_t> level_ranks, ExchangeCut cut,
                       const std::function<void(const ExchangeElements&)>& use) {
  const Question q(sources, targets);
  for_each_part(q, level_ranks, cut, 0, [&](const Part& part) {
    if (part.holder != part.receiver) use(elements_of(q, part));
  });
}

TwoPhaseTransfers two_phase_transfers(std::span<const RankBox> sources,
                                      std::span<const RankBox> targets,
                                      std::span<const int64_t> level_ranks, Fetchers fetchers) {
  const Question q(sources, targets);
  TwoPhaseTransfers out;
  const auto from_source = [&](const Part& part) {
    out.from_sources.push_back(transfer_of(q, part));
  };
  for_each_part_in_two_phases(
      q, level_ranks, fetchers, from_source, [&](const FetchedPart& f, const auto& members) {
        const Box part = slices_of(q.ranks.overlap_box(f.wanted, f.overlap.shard), f.overlap.dim,
                                   f.first, f.slices);
        const int32_t fetcher = q.target_of(f.fetcher);
        out.first_phase.push_back({q.source_of(f.holder), fetcher, part});
        for (int32_t m : members) {
          if (q.ranks.wanted[static_cast<size_t>(m)] != f.wanted) continue;
          out.from_fetchers.push_back({fetcher, q.target_of(m), part});
          out.fetch_of.push_back(static_cast<int32_t>(out.first_phase.size()) - 1);
        }
      });
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
  for_each_part_in_two_phases(
      q, level_ranks, fetchers, from_source, [&](const FetchedPart& f, const auto& members) {
        const int32_t fetcher = q.target_of(f.fetcher);
        out.first_phase.push_back({q.source_of(f.holder), fetcher, f.elements});
        for (int32_t m : members) {
          if (m == f.fetcher || q.ranks.wanted[static_cast<size_t>(m)] != f.wanted) continue;
          out.from_fetchers.push_back({fetcher, q.target_of(m), f.elements});
        }
      });
  return out;
}

}  // namespace meshplan
