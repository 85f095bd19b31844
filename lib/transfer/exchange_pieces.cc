#include "transfer/exchange_pieces.h"

#include <algorithm>

#include "base/check.h"
#include "transfer/two_phases.h"

namespace meshplan {
namespace {

// One side in rank order, and where each rank stood in the list.
struct Side {
  SideBoxes boxes;
  std::vector<int32_t> listed;
};

Side in_rank_order(std::span<const RankBox> ranks) {
  Side side;
  for (size_t i = 0; i < ranks.size(); ++i) side.listed.push_back(static_cast<int32_t>(i));
  std::sort(side.listed.begin(), side.listed.end(),
            [&](int32_t a, int32_t b) { return ranks[static_cast<size_t>(a)].rank < ranks[static_cast<size_t>(b)].rank; });
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

  Question(std::span<const RankBox> from, std::span<const RankBox> to) : sources(in_rank_order(from)), targets(in_rank_order(to)) {
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

// What every rank has already of what it wants: calls visit(shard, piece), in rank order.
template <class Visitor>
void for_each_kept(const Question& q, Visitor&& visit) {
  for (size_t r = 0; r < q.ranks.size(); ++r) {
    if (q.ranks.wanted[r] < 0 || q.ranks.shard[r] < 0) continue;
    const auto rank = static_cast<int32_t>(r);
    for (const Overlap& overlap : q.ranks.overlaps_of(q.ranks.wanted[r])) {
      if (overlap.shard == q.ranks.shard[r]) visit(overlap.shard, ExchangePiece{q.source_of(rank), q.target_of(rank), q.box_of(rank, overlap)});
    }
  }
}

// A missed part by the even cut: calls visit(piece) for each of its parts.
template <class Visitor>
void cut_evenly(const Question& q, int32_t receiver, const Overlap& overlap, const NearestHolders& near, Visitor&& visit) {
  const Box box = q.box_of(receiver, overlap);
  const int64_t parts = std::min<int64_t>(near.count, overlap.longest);
  for (int64_t i = 0; i < parts; ++i) {
    const int32_t sender = q.ranks.holders_of(overlap.shard)[static_cast<size_t>(near.begin + i)];
    visit(ExchangePiece{q.source_of(sender), q.target_of(receiver), even_part(box, near.count, i)});
  }
}

void by_target(std::vector<ExchangePiece>& pieces) {
  std::stable_sort(pieces.begin(), pieces.end(), [](const ExchangePiece& a, const ExchangePiece& b) { return a.target < b.target; });
}

}  // namespace

Box even_part(const Box& box, int64_t parts, int64_t index) {
  Box part = box;
  if (box.empty()) {
    MESHPLAN_CHECK(index == 0, "a scalar is one slice: there is no part but the first");
    return part;
  }
  size_t longest = 0;
  for (size_t d = 1; d < box.size(); ++d) {
    if (width(box[d]) > width(box[longest])) longest = d;
  }
  const int64_t w = width(box[longest]);
  const int64_t lo = box[longest].lo + index * (w / parts) + std::min(index, w % parts);
  part[longest] = {lo, lo + near_equal(w, parts, index)};
  return part;
}

Nearest::Nearest(const ExchangeRanks& ranks, const LevelUnits& units) : ranks_(&ranks), units_(units), known_(ranks.shards()) {
  unit_.reserve(ranks.size());
  int64_t last = -1;
  for (const int64_t id : ranks.id) {
    const int64_t unit = units.unit(id, 0);
    unit_.push_back(unit_.empty() ? 0 : unit_.back() + (unit != last ? 1 : 0));
    last = unit;
  }
}

void Nearest::find(Known& known, int32_t shard, int32_t rank, int32_t unit) {
  const auto holders = ranks_->holders_of(shard);
  const auto count = static_cast<int32_t>(holders.size());
  auto unit_of = [&](int32_t at) { return unit_[static_cast<size_t>(holders[static_cast<size_t>(at)])]; };
  if (unit < known.unit) known.next = 0;
  known.unit = unit;
  while (known.next < count && unit_of(known.next) < unit) ++known.next;
  int32_t end = known.next;
  while (end < count && unit_of(end) == unit) ++end;
  if (end > known.next) {
    known.near = {0, known.next, end - known.next};
    return;
  }
  const int64_t id = ranks_->id[static_cast<size_t>(rank)];
  for (int l = 1; l + 1 < units_.levels(); ++l) {
    const int64_t wanted = units_.unit(id, l);
    auto unit_at = [&](int32_t holder) { return units_.unit(ranks_->id[static_cast<size_t>(holder)], l); };
    const auto first = std::partition_point(holders.begin(), holders.end(), [&](int32_t h) { return unit_at(h) < wanted; });
    const auto last = std::partition_point(first, holders.end(), [&](int32_t h) { return unit_at(h) == wanted; });
    if (first == last) continue;
    known.near = {l, static_cast<int32_t>(first - holders.begin()), static_cast<int32_t>(last - first)};
    return;
  }
  known.near = {units_.levels() - 1, 0, count};
}

std::vector<ExchangePiece> exchange_pieces(std::span<const RankBox> sources, std::span<const RankBox> targets,
                                           std::span<const int64_t> level_ranks, ExchangeCut cut) {
  const Question q(sources, targets);
  const LevelUnits units(level_ranks);
  std::vector<ExchangePiece> pieces;
  // What ranks keep, and what moves, in the order of shards.
  std::vector<std::pair<int32_t, ExchangePiece>> found;
  for_each_kept(q, [&](int32_t shard, ExchangePiece&& piece) { found.emplace_back(shard, std::move(piece)); });
  if (cut == ExchangeCut::whole) {
    for_each_whole_piece(q.ranks, units, [&](int32_t r, const Overlap& overlap, const NearestHolders&, int32_t sender) {
      found.push_back({overlap.shard, {q.source_of(sender), q.target_of(r), q.box_of(r, overlap)}});
    });
  } else {
    for_each_even_piece(q.ranks, units, [&](int32_t r, const Overlap& overlap, const NearestHolders& near) {
      cut_evenly(q, r, overlap, near, [&](ExchangePiece&& piece) { found.emplace_back(overlap.shard, std::move(piece)); });
    });
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [shard, piece] : found) pieces.push_back(std::move(piece));
  by_target(pieces);
  return pieces;
}

TwoPhasePieces two_phase_pieces(std::span<const RankBox> sources, std::span<const RankBox> targets, std::span<const int64_t> level_ranks) {
  const Question q(sources, targets);
  const LevelUnits units(level_ranks);
  TwoPhasePieces out;
  for_each_kept(q, [&](int32_t, ExchangePiece&& piece) { out.from_sources.push_back(std::move(piece)); });
  for_each_even_piece(q.ranks, units, [&](int32_t r, const Overlap& overlap, const NearestHolders& near) {
    if (near.level == 0) cut_evenly(q, r, overlap, near, [&](ExchangePiece&& piece) { out.from_sources.push_back(std::move(piece)); });
  });
  TwoPhases phases(q.ranks, units);
  UnitExchange unit;
  while (phases.next(unit)) {
    for (const FetchedPart& f : unit.fetched) {
      const Box part = even_part(q.ranks.overlap_box(f.wanted, f.overlap.shard), f.parts, f.part);
      out.fetches.push_back({q.source_of(f.holder), q.target_of(f.fetcher), part});
      for (int32_t m : unit.members) {
        if (q.ranks.wanted[static_cast<size_t>(m)] == f.wanted) out.from_fetches.push_back({q.target_of(f.fetcher), q.target_of(m), part});
      }
    }
  }
  return out;
}

}  // namespace meshplan
