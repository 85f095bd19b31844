#include "replay/exchange_pieces.h"

#include <algorithm>
#include <map>

#include "base/check.h"

namespace meshplan {
namespace {

struct BoxLess {
  bool operator()(const Box& a, const Box& b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                        [](const Interval& x, const Interval& y) { return x.lo != y.lo ? x.lo < y.lo : x.hi < y.hi; });
  }
};

// One distinct box and the ranks that have it, as indices in rank order.
struct Shard {
  Box box;
  std::vector<int32_t> members;
};

std::vector<int32_t> in_rank_order(std::span<const RankBox> ranks) {
  std::vector<int32_t> order(ranks.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return ranks[static_cast<size_t>(a)].rank < ranks[static_cast<size_t>(b)].rank; });
  return order;
}

// Distinct non-empty boxes, in order of the first rank that has each.
std::vector<Shard> shards_of(std::span<const RankBox> ranks, const std::vector<int32_t>& order) {
  std::vector<Shard> shards;
  std::map<Box, size_t, BoxLess> known;
  for (int32_t i : order) {
    const Box& box = ranks[static_cast<size_t>(i)].box;
    if (volume(box) == 0) continue;
    auto [at, added] = known.emplace(box, shards.size());
    if (added) shards.push_back({box, {}});
    shards[at->second].members.push_back(i);
  }
  return shards;
}

bool overlaps(const Box& a, const Box& b) {
  for (size_t d = 0; d < a.size(); ++d) {
    if (std::max(a[d].lo, b[d].lo) >= std::min(a[d].hi, b[d].hi)) return false;
  }
  return true;
}

// The innermost level on which `rank` has company among `holders`, and those holders, in rank order.
std::vector<int32_t> nearest(std::span<const RankBox> sources, const std::vector<int32_t>& holders, int64_t rank,
                             std::span<const int64_t> level_ranks) {
  std::vector<int32_t> near;
  for (size_t l = 0; l + 1 < level_ranks.size(); ++l) {
    for (int32_t h : holders) {
      if (sources[static_cast<size_t>(h)].rank / level_ranks[l] == rank / level_ranks[l]) near.push_back(h);
    }
    if (!near.empty()) return near;
  }
  return holders;
}

int64_t unit_of(int64_t rank, std::span<const int64_t> level_ranks) { return level_ranks.size() < 2 ? 0 : rank / level_ranks[0]; }

}  // namespace

Box even_part(const Box& box, int64_t parts, int64_t index) {
  Box part = box;
  if (box.empty()) {  // a scalar goes whole, with part 0; the others would repeat it
    MESHPLAN_CHECK(parts == 1, "a scalar cannot be cut");
    return part;
  }
  size_t longest = 0;
  for (size_t d = 1; d < box.size(); ++d) {
    if (width(box[d]) > width(box[longest])) longest = d;
  }
  const int64_t w = width(box[longest]);
  const int64_t each = w / parts;
  const int64_t longer = w % parts;
  const int64_t lo = index * each + std::min(index, longer);
  part[longest] = {box[longest].lo + lo, box[longest].lo + lo + each + (index < longer ? 1 : 0)};
  return part;
}

std::vector<ExchangePiece> exchange_pieces(std::span<const RankBox> sources, std::span<const RankBox> targets,
                                           std::span<const int64_t> level_ranks, ExchangeCut cut) {
  const std::vector<Shard> shards = shards_of(sources, in_rank_order(sources));
  std::vector<int64_t> missed(shards.size(), 0);  // ranks so far that miss part of the shard
  std::vector<ExchangePiece> pieces;
  std::vector<int32_t> own(targets.size(), -1);  // the source that is the same rank
  std::map<int64_t, int32_t> by_rank;
  for (size_t i = 0; i < sources.size(); ++i) by_rank.emplace(sources[i].rank, static_cast<int32_t>(i));
  for (size_t t = 0; t < targets.size(); ++t) {
    auto same = by_rank.find(targets[t].rank);
    if (same != by_rank.end()) own[t] = same->second;
  }
  for (int32_t t : in_rank_order(targets)) {
    const RankBox& target = targets[static_cast<size_t>(t)];
    const int32_t self = own[static_cast<size_t>(t)];
    for (size_t s = 0; s < shards.size(); ++s) {
      if (!overlaps(shards[s].box, target.box)) continue;
      const Box part = intersect(shards[s].box, target.box);
      if (self >= 0 && sources[static_cast<size_t>(self)].box == shards[s].box) {
        pieces.push_back({self, t, part});
        continue;
      }
      const std::vector<int32_t> near = nearest(sources, shards[s].members, target.rank, level_ranks);
      const auto h = static_cast<int64_t>(near.size());
      if (cut == ExchangeCut::whole || part.empty()) {
        pieces.push_back({near[static_cast<size_t>(missed[s]++ % h)], t, part});
        continue;
      }
      for (int64_t i = 0; i < h; ++i) {
        Box cut_part = even_part(part, h, i);
        if (volume(cut_part) > 0) pieces.push_back({near[static_cast<size_t>(i)], t, std::move(cut_part)});
      }
    }
  }
  std::stable_sort(pieces.begin(), pieces.end(), [](const ExchangePiece& a, const ExchangePiece& b) { return a.target < b.target; });
  return pieces;
}

TwoPhasePieces two_phase_pieces(std::span<const RankBox> sources, std::span<const RankBox> targets, std::span<const int64_t> level_ranks) {
  TwoPhasePieces out;
  const std::vector<Shard> shards = shards_of(sources, in_rank_order(sources));
  const std::vector<int32_t> target_order = in_rank_order(targets);
  std::map<int64_t, std::vector<int32_t>> hosts;  // unit -> members among the targets, in rank order
  for (int32_t t : target_order) hosts[unit_of(targets[static_cast<size_t>(t)].rank, level_ranks)].push_back(t);
  std::map<int64_t, std::vector<RankBox>> host_sources;
  std::map<int64_t, std::vector<int32_t>> host_source_index;
  for (int32_t s : in_rank_order(sources)) {
    const int64_t unit = unit_of(sources[static_cast<size_t>(s)].rank, level_ranks);
    host_sources[unit].push_back(sources[static_cast<size_t>(s)]);
    host_source_index[unit].push_back(s);
  }
  for (const auto& [unit, members] : hosts) {
    std::vector<RankBox> wanting;
    for (int32_t t : members) wanting.push_back(targets[static_cast<size_t>(t)]);
    // What the host holds: an ordinary exchange inside.
    for (const ExchangePiece& p : exchange_pieces(host_sources[unit], wanting, level_ranks, ExchangeCut::even)) {
      out.from_sources.push_back({host_source_index[unit][static_cast<size_t>(p.source)], members[static_cast<size_t>(p.target)], p.box});
    }
    // What it lacks: once for every distinct wanted box.
    const auto m = static_cast<int64_t>(members.size());
    for (const Shard& wanted : shards_of(wanting, in_rank_order(wanting))) {
      for (const Shard& shard : shards) {
        if (!overlaps(shard.box, wanted.box)) continue;
        const bool held = std::any_of(shard.members.begin(), shard.members.end(), [&, host = unit](int32_t s) {
          return unit_of(sources[static_cast<size_t>(s)].rank, level_ranks) == host;
        });
        if (held) continue;
        const Box missing = intersect(shard.box, wanted.box);
        const int64_t parts = missing.empty() ? 1 : m;
        for (int64_t i = 0; i < parts; ++i) {
          const Box part = even_part(missing, parts, i);
          if (volume(part) == 0) continue;
          const int32_t fetcher = members[static_cast<size_t>(i)];
          const std::vector<int32_t> near = nearest(sources, shard.members, targets[static_cast<size_t>(fetcher)].rank, level_ranks);
          out.fetches.push_back({near[static_cast<size_t>(i) % near.size()], fetcher, part});
          for (int32_t w : wanted.members) out.from_fetches.push_back({fetcher, members[static_cast<size_t>(w)], part});
        }
      }
    }
  }
  return out;
}

}  // namespace meshplan
