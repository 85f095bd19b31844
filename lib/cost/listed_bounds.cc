#include "cost/listed_bounds.h"

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <set>

#include "base/int_math.h"
#include "cost/finer_tiers.h"
#include "cost/least_crossing.h"
#include "cost/one_step.h"
#include "cost/rank_links.h"
#include "cost/set_needs.h"
#include "tensor/largest_elements.h"
#include "transfer/rank_places.h"

namespace meshplan {
namespace {

// Ranks sorted into sets that share none; ranks with a negative key are in none.
struct Partition {
  std::vector<int32_t> order;
  std::vector<size_t> begins;  // of each set, and the end
};

// Ranks whose keys ascend, sets one behind the other.
template <class Key>
Partition partition_in_order(const std::vector<RankBoxes>& ranks, Key key) {
  Partition p;
  p.order.reserve(ranks.size());
  int64_t last = -1;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const int64_t own = key(ranks[i]);
    if (own < 0) continue;
    if (p.begins.empty() || own != last) p.begins.push_back(p.order.size());
    p.order.push_back(static_cast<int32_t>(i));
    last = own;
  }
  p.begins.push_back(p.order.size());
  return p;
}

// Keys are below `keys`.
template <class Key>
Partition partition_by(const std::vector<RankBoxes>& ranks, int64_t keys, Key key) {
  std::vector<size_t> next(static_cast<size_t>(keys) + 1, 0);  // by key: where its next rank goes
  for (const RankBoxes& rank : ranks) {
    if (const int64_t own = key(rank); own >= 0) ++next[static_cast<size_t>(own) + 1];
  }
  Partition p;
  for (size_t k = 0; k < static_cast<size_t>(keys); ++k) {
    if (next[k + 1] > 0) p.begins.push_back(next[k]);
    next[k + 1] += next[k];
  }
  p.begins.push_back(next.back());
  p.order.resize(next.back());
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (const int64_t own = key(ranks[i]); own >= 0)
      p.order[next[static_cast<size_t>(own)]++] = static_cast<int32_t>(i);
  }
  return p;
}

// Ways to sort ranks into sets that do not ask where the ranks are.
enum Sorting : uint8_t { by_rank, by_cell, by_held, sources, targets };

// Sets of ranks and what they need.
struct Needs {
  Partition sets;
  std::vector<SetNeed> of_sets;
  std::vector<int64_t> wanting;  // sets that want each box as a whole
};

// What copies share whose ranks stand in one order: all but where the ranks are.
struct Alike {
  explicit Alike(Participants participants) : all(std::move(participants)), needs(all) {}
  Participants all;
  SetNeeds needs;
  std::array<std::optional<Needs>, targets + 1> known;  // by Sorting
};

// The bounds of one copy.
class Copy {
 public:
  // `shift`: from the ids of the participants to those of the copy.
  Copy(const Topology& topology, std::shared_ptr<Alike> alike, int64_t shift, int64_t element_bytes)
      : topology_(&topology),
        alike_(std::move(alike)),
        all_(alike_->all),
        ranks_(shifted(all_.ranks, shift)),
        element_bytes_(element_bytes),
        links_(topology, ranks_) {}

  // Levels on which any two of the copy's ranks meet.
  [[nodiscard]] LevelSet levels() const { return links_.all(); }

  // `across`: between two meshes, where `src` of this shape starts. `reached`: levels that other
  // copies reach in steps of theirs. `most_ps`: no more is told than that it takes longer.
  Bounds bounds(bool across, const State& src, std::span<const int64_t> shape, LevelSet reached,
                int64_t most_ps) {
    links_.reach(reached);
    const bool timed = topology_->tables.empty();
    int must_reach = consider_ranks() ? 0 : -1;
    const auto least = [&] {
      return LeastCrossing{links_.least_latency_ns(must_reach), transfer_, !slower_outside()};
    };
    const auto so_far = [&] { return Bounds{bytes_, least().ps(links_)}; };
    const auto is_enough = [&] {
      return most_ps < INT64_MAX && timed && must_reach >= 0 && so_far().ps > most_ps;
    };
    if (is_enough()) return so_far();
    if (all_.cell_ranks > 1 && consider(by_cell)) must_reach = 0;
    if (all_.contributions * all_.holders > 1 && consider(by_held)) must_reach = 0;
    // On one mesh both are all ranks, and nothing lies outside.
    for (const Sorting side : {sources, targets}) {
      if (across && consider(side)) must_reach = 0;
    }
    const auto levels = static_cast<int>(topology_->levels.size());
    for (int level = 1; level < levels && timed; ++level) {
      const auto unit = [&](const RankBoxes& r) { return links_.unit(r.id, level - 1); };
      if (take(level, needs_of(partition_in_order(ranks_, unit)))) must_reach = level;
    }
    if (must_reach < 0) return {};
    if (!timed) return {bytes_, 0};
    if (is_enough()) return so_far();
    if (across) take_without_holders();
    Bounds b = so_far();
    if (across && b.ps <= most_ps) {
      const auto steps =
          steps_across_ps(*topology_, all_, links_, src, shape, element_bytes_, least());
      b.ps = std::max(b.ps, steps.value_or(0));
    }
    return b;
  }

 private:
  static std::vector<RankBoxes> shifted(std::vector<RankBoxes> ranks, int64_t shift) {
    for (RankBoxes& rank : ranks) rank.id += shift;
    return ranks;
  }

  Needs needs_of(Partition partition) {
    Needs all{std::move(partition), {}, {}};
    const Partition& sets = all.sets;
    all.of_sets.reserve(sets.begins.size());
    for (size_t s = 0; s + 1 < sets.begins.size(); ++s) {
      const std::span<const int32_t> members = members_of(sets, s);
      all.of_sets.push_back(members.size() == 1 ? alike_->needs.of_rank(members.front())
                                                : alike_->needs.of(members));
    }
    all.wanting = alike_->needs.take_wanting();
    return all;
  }
  static std::span<const int32_t> members_of(const Partition& sets, size_t s) {
    return {sets.order.data() + sets.begins[s], sets.begins[s + 1] - sets.begins[s]};
  }
  // Whether each level is no faster than those inside of it: of the groups of a collective none
  // then ends later than those that reach the outermost level.
  [[nodiscard]] bool slower_outside() const {
    return std::is_sorted(
        topology_->levels.begin(), topology_->levels.end(),
        [](const TopologyLevel& a, const TopologyLevel& b) { return a.mb_per_s > b.mb_per_s; });
  }
  bool consider(Sorting sorting) {
    std::optional<Needs>& known = alike_->known[sorting];
    if (!known) known = needs_of(partition_of(sorting));
    return take(0, *known);
  }
  [[nodiscard]] Partition partition_of(Sorting sorting) const {
    switch (sorting) {
      case by_cell:
        return partition_by(ranks_, std::ssize(all_.wanted.of_ranks()),
                            [](const RankBoxes& r) { return r.cell; });
      case by_held:
        return partition_by(ranks_, all_.held.count(), [](const RankBoxes& r) { return r.held; });
      case sources:
        return partition_in_order(ranks_, [](const RankBoxes& r) { return r.held >= 0 ? 0 : -1; });
      case targets:
        return partition_in_order(ranks_,
                                  [](const RankBoxes& r) { return r.wanted >= 0 ? 0 : -1; });
      default:
        return partition_in_order(ranks_, [i = 0](const RankBoxes&) mutable { return i++; });
    }
  }

  // Of every rank by itself, one after the other: what they need is kept only where contributions
  // lie in several of them.
  bool consider_ranks() {
    if (all_.contributions > 1) return consider(by_rank);
    int64_t most_in = 0;
    int64_t most_crossing = 0;  // over the links of `links`
    LevelSet links = 0;
    for (int32_t rank = 0; rank < std::ssize(ranks_); ++rank) {
      const SetNeed need = alike_->needs.of_rank(rank);
      most_in = std::max(most_in, need.in);
      const int64_t crossing = std::max(need.in, need.out);
      if (crossing == 0 || (links_.of_rank(rank) == links && crossing <= most_crossing)) continue;
      links = links_.of_rank(rank);
      most_crossing = crossing;
      take(0, crossing, links_.bandwidth(links));
    }
    (void)alike_->needs.take_wanting();
    bytes_ = std::max(bytes_, saturating_mul(most_in, element_bytes_));
    return most_crossing > 0;
  }

  // Of sets whose links to outside are of `level` and further out. Whether something crosses them.
  bool take(int level, const Needs& needs) {
    bool crossed = false;
    bool meet = false;  // some set holds and wants
    int64_t most_contributions = 1;
    for (size_t s = 0; s < needs.of_sets.size(); ++s) {
      const SetNeed& need = needs.of_sets[s];
      meet = meet || (need.holds && need.wants);
      most_contributions = std::max(most_contributions, need.contributions);
      if (need.in == 0 && need.out == 0) continue;
      crossed = true;
      const std::span<const int32_t> members = members_of(needs.sets, s);
      const auto count = std::ssize(members);
      bytes_ = std::max(bytes_, ceil_div(saturating_mul(need.in, element_bytes_), count));
      take(level, std::max(need.in, need.out), links_.border_bandwidth(members));
    }
    const int64_t holding = ceil_div(all_.contributions, most_contributions);
    if (holding == 1) return crossed;
    // Contributions lie in several sets.
    int64_t carried = 0;
    for (size_t box = 0; box < needs.wanting.size(); ++box) {
      const int64_t wanting = needs.wanting[box];
      if (wanting == 0) continue;
      const int64_t values = holding - 1 + wanting - 1 + (meet ? 0 : 1);
      carried = saturating_add(
          carried, saturating_mul(values, all_.wanted.volume(static_cast<int32_t>(box))));
    }
    const auto ranks = std::ssize(ranks_);
    bytes_ = std::max(bytes_, ceil_div(saturating_mul(carried, element_bytes_), ranks));
    take(level, carried,
         saturating_mul(ranks, links_.bandwidth(links_.leaving(level, links_.all()))));
    return crossed || carried > 0;
  }

  // The ranks of each innermost unit but those that hold one box, or any box that their mates want:
  // what they miss leaves the holders, or comes from other units.
  //
  //     hosts of 8, RS(0) -> S(0)S(1)    rank i of host i alone holds there what its 7 mates want
  //                                      of 8 x 8 -> 4 x 8 two ranks hold what the 6 others want
  void take_without_holders() {
    if (topology_->levels.size() < 2) return;
    std::vector<int32_t> members;
    links_.for_holding_units(ranks_, 0, [&](const RankLinks::HoldingUnit& unit) {
      std::vector<int32_t> asked;
      for (const int32_t box : unit.boxes) {
        if (take_without({&box, 1}, unit, members) && is_asked_for(box, unit)) asked.push_back(box);
      }
      if (asked.size() > 1) take_without(asked, unit, members);
    });
    (void)alike_->needs.take_wanting();
  }

  // What the unit's ranks miss that hold none of the boxes; whether they miss anything. `members`:
  // for reuse.
  bool take_without(std::span<const int32_t> boxes, const RankLinks::HoldingUnit& unit,
                    std::vector<int32_t>& members) {
    members.clear();
    for (size_t i = unit.first; i < unit.end; ++i) {
      if (!std::binary_search(boxes.begin(), boxes.end(), ranks_[i].held))
        members.push_back(static_cast<int32_t>(i));
    }
    if (members.empty()) return false;
    const int64_t missed = alike_->needs.of(members).in;
    if (missed > 0) take(0, missed, links_.border_bandwidth(members));
    return missed > 0;
  }
  // Whether ranks of the unit that do not hold the box want part of it.
  [[nodiscard]] bool is_asked_for(int32_t box, const RankLinks::HoldingUnit& unit) const {
    for (size_t i = unit.first; i < unit.end; ++i) {
      const int32_t wanted = ranks_[i].wanted;
      if (wanted >= 0 && ranks_[i].held != box &&
          shared_elements(all_.wanted, wanted, all_.held, box) > 0)
        return true;
    }
    return false;
  }

  // So many elements out of units inside of `level` (0: a rank), over links of so many MB/s
  // together.
  void take(int level, int64_t elements, int64_t mb_per_s) {
    if (mb_per_s == 0) return;
    int64_t& transfer = transfer_[static_cast<size_t>(level)];
    transfer =
        std::max(transfer, transfer_ps(saturating_mul(elements, element_bytes_), 1, mb_per_s));
  }

  const Topology* topology_;
  std::shared_ptr<Alike> alike_;
  const Participants& all_;
  std::vector<RankBoxes> ranks_;
  int64_t element_bytes_;
  RankLinks links_;
  int64_t bytes_ = 0;
  std::array<int64_t, max_levels> transfer_{};  // ps, by level that is crossed
};

// Rank 0 has the largest target, and holds no more than the largest source.
Bounds unlisted(const Topology& topology, const Mesh& src_mesh, const Mesh& dst_mesh,
                std::span<const int64_t> shape, int64_t element_bytes, const State& src,
                const State& dst) {
  auto has_pending = [](const State& state) {
    return std::any_of(state.partial.begin(), state.partial.end(),
                       [](const PendingSubAxis& p) { return p.sub_axis.size > 1; });
  };
  if (has_pending(dst)) return {};
  const int64_t wanted = largest_elements(dst, shape, mesh_shape(dst_mesh));
  const int64_t held = has_pending(src) ? 0 : largest_elements(src, shape, mesh_shape(src_mesh));
  Bounds b;
  b.bytes = saturating_mul(std::max<int64_t>(0, wanted - held), element_bytes);
  if (b.bytes == 0) return b;
  int64_t bandwidth = 0;
  int64_t latency = INT64_MAX;
  for (const TopologyLevel& level : topology.levels) {
    bandwidth = saturating_add(bandwidth, level.mb_per_s);
    latency = std::min(latency, level.latency_ns);
  }
  if (!has_tables(topology))
    b.ps = saturating_add(saturating_mul(latency, 1000), transfer_ps(b.bytes, 1, bandwidth));
  return b;
}

}  // namespace

Bounds listed_bounds(const Topology& topology, const Mesh& src_mesh, const Mesh& dst_mesh,
                     std::span<const int64_t> shape, int64_t element_bytes, const State& src,
                     const State& dst, int64_t most_ranks, int64_t most_ps) {
  const bool same = &src_mesh == &dst_mesh;
  const int64_t copies = same ? mesh_copies(src_mesh) : 1;
  const int64_t ranks =
      same ? src_mesh.universe->world : saturating_add(mesh_size(src_mesh), mesh_size(dst_mesh));
  if (ranks > most_ranks)
    return unlisted(topology, src_mesh, dst_mesh, shape, element_bytes, src, dst);
  std::deque<Copy> every;  // which stay where they are
  // What the copies of two meshes that do not cross themselves reach is not listed.
  const bool by_others = !same && (mesh_copies(src_mesh) > 1 || mesh_copies(dst_mesh) > 1);
  LevelSet reached = by_others ? ~LevelSet{0} : 0;
  // Copies that stand in units alike are bounded once.
  const bool in_order = same && is_consecutive(*src_mesh.universe);
  const size_t levels = topology.levels.size();
  const int64_t period = levels > 1 ? topology.levels[levels - 2].ranks : 1;
  std::set<int64_t> places;
  std::shared_ptr<Alike> alike;
  for (int64_t copy = 0; copy < copies; ++copy) {
    const int64_t place = position_of(src_mesh, copy, 0);
    if (in_order && !places.insert(place % period).second) continue;
    if (!alike || !in_order)
      alike = std::make_shared<Alike>(list_participants(src_mesh, dst_mesh, copy, shape, src, dst));
    every.emplace_back(topology, alike, in_order ? place - position_of(src_mesh, 0, 0) : 0,
                       element_bytes);
    reached |= every.back().levels();
  }
  Bounds most;
  for (Copy& one : every) {
    const Bounds b = one.bounds(!same, src, shape, reached, most_ps);
    most.bytes = std::max(most.bytes, b.bytes);
    most.ps = std::max(most.ps, b.ps);
  }
  return most;
}

}  // namespace meshplan
