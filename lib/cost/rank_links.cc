#include "cost/rank_links.h"

#include <algorithm>

#include "base/int_math.h"

namespace meshplan {
namespace {

template <class Value>
int64_t least_of(const Topology& topology, LevelSet set, Value value) {
  int64_t least = INT64_MAX;
  for (size_t l = 0; l < topology.levels.size(); ++l) {
    if ((set >> l & 1) != 0) least = std::min(least, value(topology.levels[l]));
  }
  return least == INT64_MAX ? 0 : least;
}

template <class Value>
int64_t sum_of(const Topology& topology, LevelSet set, Value value) {
  int64_t sum = 0;
  for (size_t l = 0; l < topology.levels.size(); ++l) {
    if ((set >> l & 1) != 0) sum = saturating_add(sum, value(topology.levels[l]));
  }
  return sum;
}

}  // namespace

RankLinks::RankLinks(const Topology& topology, const std::vector<RankBoxes>& ranks)
    : topology_(&topology),
      of_rank_(ranks.size(), 0),
      unit_of_(topology.levels.size(), std::vector<int32_t>(ranks.size())),
      units_(topology.levels.size()) {
  const auto levels = static_cast<int>(topology.levels.size());
  for (int l = 0; l < levels; ++l) {
    std::vector<UnitRanks>& units = units_[l];
    // Ranks of a unit follow one another.
    for (size_t first = 0, end = 0; first < ranks.size(); first = end) {
      bool apart = false;  // two of them meet on this level
      for (end = first; end < ranks.size() && unit(ranks[end].id, l) == unit(ranks[first].id, l);
           ++end) {
        if (end == first) continue;
        apart = apart || l == 0 || unit(ranks[end].id, l - 1) != unit(ranks[first].id, l - 1) ||
                !nested(l, l - 1);
      }
      std::fill(unit_of_[l].begin() + static_cast<std::ptrdiff_t>(first),
                unit_of_[l].begin() + static_cast<std::ptrdiff_t>(end),
                static_cast<int32_t>(units.size()));
      units.push_back({static_cast<int64_t>(end - first), 0});
      if (!apart) continue;
      for (size_t i = first; i < end; ++i) of_rank_[i] |= LevelSet{1} << l;
      all_ |= LevelSet{1} << l;
    }
  }
  reached_ = all_;
}

LevelSet RankLinks::leaving(int level, LevelSet set) const {
  for (int l = 0; l < level; ++l) {
    if (nested(level - 1, l)) set &= ~(LevelSet{1} << l);
  }
  return set;
}

// Two ranks meet on the innermost level that has both in one unit. So a member meets no other on a
// unit's level where all others of the unit are nearer to it, and another meets no member where all
// members are nearer. Where units do not lie in one another whole, any two ranks of a unit count as
// if they met on its level.
int64_t RankLinks::border_bandwidth(std::span<const int32_t> members) {
  if (members.size() == 1) return bandwidth(of_rank(members.front()));
  const auto levels = static_cast<int>(topology_->levels.size());
  for (int l = 0; l < levels; ++l) {
    for (const int32_t rank : members) ++unit_of(l, rank).members;
  }
  int64_t bandwidth = 0;
  for (int l = levels - 1; l >= 0; --l) {
    int64_t inside = 0;
    for (const int32_t rank : members) {
      const UnitRanks nearer = nearer_than(l, rank);
      inside += unit_of(l, rank).others() > nearer.others() ? 1 : 0;
    }
    int64_t outside = 0;
    for (const int32_t rank : members) {
      UnitRanks& unit = unit_of(l, rank);
      if (unit.members == 0) continue;  // counted
      const UnitRanks nearer = nearer_than(l, rank);
      outside += unit.others() - (nearer.members == unit.members ? nearer.others() : 0);
      unit.members = 0;
    }
    const int64_t mb_per_s = topology_->levels[l].mb_per_s;
    bandwidth = saturating_add(bandwidth, saturating_mul(std::min(inside, outside), mb_per_s));
  }
  return bandwidth;
}

int64_t RankLinks::bandwidth(LevelSet set) const {
  return sum_of(*topology_, set, [](const TopologyLevel& l) { return l.mb_per_s; });
}

int64_t RankLinks::exchange_bandwidth(LevelSet set) const {
  return sum_of(*topology_, set, [](const TopologyLevel& l) {
    return saturating_mul(l.mb_per_s, l.exchange_percent);
  });
}

int64_t RankLinks::least_latency_ns(int level) const {
  return least_of(*topology_, leaving(level, reached_),
                  [](const TopologyLevel& l) { return l.latency_ns; });
}

int64_t RankLinks::least_per_peer_ns(LevelSet set) const {
  return least_of(*topology_, set, [](const TopologyLevel& l) { return l.per_peer_ns; });
}

}  // namespace meshplan
