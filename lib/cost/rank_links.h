// Which links ranks have to one another.
//
//     4 ranks on hosts of 2      every rank: level 0 to its host mate, level 1 to the other host;
//                                what leaves a host goes over level 1
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "base/int_math.h"
#include "cost/rank_boxes.h"
#include "plan/plan.h"

namespace meshplan {

using LevelSet = uint32_t;  // bit l: level l

class RankLinks {
 public:
  // `ranks` stand in rank order.
  RankLinks(const Topology& topology, const std::vector<RankBoxes>& ranks);

  // The unit of a level that a global rank lies in.
  [[nodiscard]] int64_t unit(int64_t id, int level) const {
    const auto l = static_cast<size_t>(level);
    return l + 1 == topology_->levels.size() ? 0 : floor_div(id, topology_->levels[l].ranks);
  }
  // Links of the rank at this index, to others of the list.
  [[nodiscard]] LevelSet of_rank(int32_t rank) const { return of_rank_[rank]; }
  [[nodiscard]] LevelSet all() const { return all_; }
  // Those of `set` that leave a unit of the level inside of `level` (0: a rank). Where units do not
  // lie in one another whole, links of inner levels do, too.
  [[nodiscard]] LevelSet leaving(int level, LevelSet set) const;

  // MB/s of all links between members of a set and the ranks outside of it: of each level as many
  // as the fewer of the two sides have. `members`: indices, no rank twice.
  //
  //     hosts of 4, the set {0 1 2}    level 0: 1, what rank 3 has; level 1: 3
  [[nodiscard]] int64_t border_bandwidth(std::span<const int32_t> members);

  // MB/s of all levels of the set together; exchanges and all_to_all reach a percentage, here times
  // 100.
  [[nodiscard]] int64_t bandwidth(LevelSet set) const;
  [[nodiscard]] int64_t exchange_bandwidth(LevelSet set) const;
  [[nodiscard]] int64_t least_per_peer_ns(LevelSet set) const;

  // Steps may reach these levels, too, as those of a mesh with several copies are steps of all of
  // them: no step of these ranks ends further in than where the nearest two of them meet.
  void reach(LevelSet more) {
    const LevelSet nearest = all_ & (~all_ + 1);
    reached_ = all_ | (more & ~(nearest - 1));
  }
  // Of a step on which something leaves a unit of the level inside of `level` (0: a rank): its
  // latency is that of the outermost level that any rank reaches, which may be less than that of
  // the level crossed.
  [[nodiscard]] int64_t least_latency_ns(int level) const;

  // The ranks of one unit, from index `first` on, and the distinct boxes that they hold, ascending.
  struct HoldingUnit {
    size_t first = 0;
    size_t end = 0;
    std::vector<int32_t> boxes;
  };
  // visit(HoldingUnit) for each unit of a level in which few ranks and boxes are to be paired.
  // `ranks`: those of the links.
  template <class Visit>
  void for_holding_units(std::span<const RankBoxes> ranks, int level, Visit visit) const {
    constexpr size_t most_pairs = 1'024;
    HoldingUnit holding;
    for (size_t first = 0; first < ranks.size(); first = holding.end) {
      holding.first = holding.end = first;
      holding.boxes.clear();
      const int64_t here = unit(ranks[first].id, level);
      for (; holding.end < ranks.size() && unit(ranks[holding.end].id, level) == here;
           ++holding.end) {
        if (ranks[holding.end].held >= 0) holding.boxes.push_back(ranks[holding.end].held);
      }
      std::sort(holding.boxes.begin(), holding.boxes.end());
      holding.boxes.erase(std::unique(holding.boxes.begin(), holding.boxes.end()),
                          holding.boxes.end());
      if (holding.boxes.size() * (holding.end - first) <= most_pairs) visit(holding);
    }
  }

 private:
  // Whether units of the outer level are made of whole units of the inner.
  [[nodiscard]] bool nested(int outer, int inner) const {
    return static_cast<size_t>(outer) + 1 == topology_->levels.size() ||
           topology_->levels[outer].ranks % topology_->levels[inner].ranks == 0;
  }
  // The ranks of one unit, and those of them in the set that is counted.
  struct UnitRanks {
    int64_t all = 0;
    int64_t members = 0;
    [[nodiscard]] int64_t others() const { return all - members; }
  };
  [[nodiscard]] UnitRanks& unit_of(int level, int32_t rank) {
    const auto l = static_cast<size_t>(level);
    return units_[l][unit_of_[l][rank]];
  }
  // Those of the innermost units whose ranks do not meet on the level: a rank alone, or a unit of
  // the next inner level.
  [[nodiscard]] UnitRanks nearer_than(int level, int32_t rank) {
    const bool whole = level > 0 && nested(level, level - 1);
    return whole ? unit_of(level - 1, rank) : UnitRanks{1, 1};
  }

  const Topology* topology_;
  std::vector<LevelSet> of_rank_;
  LevelSet all_ = 0;
  LevelSet reached_ = 0;
  std::vector<std::vector<int32_t>> unit_of_;  // by level and rank; units are numbered from 0
  std::vector<std::vector<UnitRanks>> units_;  // by level
};

}  // namespace meshplan
