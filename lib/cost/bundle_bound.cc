#include "cost/bundle_bound.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/int_math.h"
#include "cost/bundle_crossings.h"
#include "cost/bundle_relays.h"
#include "cost/collective_time.h"
#include "cost/copy_lines.h"
#include "cost/finer_tiers.h"
#include "cost/listed_bounds.h"
#include "cost/protocols.h"
#include "cost/rank_boxes.h"
#include "cost/unit_counts.h"
#include "mesh/groups.h"
#include "tensor/state.h"

namespace meshplan {
namespace {

int64_t participants_of(const Plan& plan, const Request& request) {
  const Mesh& src = plan.meshes.meshes[request.src_mesh];
  if (request.src_mesh == request.dst_mesh) return src.universe->world;
  return saturating_add(mesh_size(src), mesh_size(plan.meshes.meshes[request.dst_mesh]));
}

class BundleBound {
 public:
  BundleBound(const Plan& plan, const BundleRequest& bundle)
      : plan_(plan),
        bundle_(bundle),
        reduces_(reduces()),
        topology_(bound_topology(plan.topology, reduces_)),
        level_ranks_(level_ranks_of(topology_)),
        units_(level_ranks_),
        relays_(plan.topology, topology_, units_) {}

  BundleBounds bounds() {
    std::map<std::tuple<const void*, size_t>, int64_t> times;  // of members with equal questions
    for (const size_t member : bundle_.members) {
      const PlannedRedistribution& r = plan_.redistributions[member];
      // Equal questions share their steps; those without any are local.
      if (r.steps.empty()) continue;
      const auto [known, fresh] = times.try_emplace({&r.steps.front(), r.steps.size()}, 0);
      if (fresh) firsts_.push_back(member);
      add_up_to(known->second, r.request.count);
      add_up_to(tensors_, r.request.count);
    }
    add_givers();
    for (const size_t member : firsts_) {
      const PlannedRedistribution& r = plan_.redistributions[member];
      add(r, times.at({&r.steps.front(), r.steps.size()}));
    }
    return {most_taken_in(), slowest()};
  }

 private:
  static void add_up_to(int64_t& sum, int64_t more) { sum = saturating_add(sum, more); }

  [[nodiscard]] bool reduces() const {
    return std::any_of(bundle_.members.begin(), bundle_.members.end(), [&](size_t member) {
      const Request& request = plan_.redistributions[member].request;
      return !request.src.partial.empty() || !request.dst.partial.empty();
    });
  }

  void add_givers() {
    std::set<std::pair<size_t, int64_t>> meshes;  // and how many copies of them
    for (const size_t member : firsts_) {
      const size_t mesh = plan_.redistributions[member].request.src_mesh;
      meshes.insert({mesh, copies_of(plan_.redistributions[member].request)});
    }
    for (const auto& [mesh, copies] : meshes) relays_.add_givers(plan_.meshes.meshes[mesh], copies);
  }

  // Of its meshes that take part.
  [[nodiscard]] int64_t copies_of(const Request& request) const {
    const bool same = request.src_mesh == request.dst_mesh;
    return same ? mesh_copies(plan_.meshes.meshes[request.src_mesh]) : 1;
  }

  void add(const PlannedRedistribution& r, int64_t times) {
    const Request& request = r.request;
    const Mesh& src = plan_.meshes.meshes[request.src_mesh];
    const Mesh& dst = plan_.meshes.meshes[request.dst_mesh];
    const bool same = request.src_mesh == request.dst_mesh;
    int64_t width = element_bytes(request.tensor.dtype);
    if (request.reduce_dtype && !request.src.partial.empty())
      width = std::min(width, element_bytes(*request.reduce_dtype));
    const std::optional<std::vector<State>> orders = orders_of_target(r);
    const int64_t weight = orders ? saturating_mul(width, times) : 0;
    const std::vector<State> asked = orders ? *orders : std::vector<State>{r.dst};
    const int64_t copies = copies_of(request);
    for (int64_t copy = 0; copy < copies; ++copy) {
      const auto in_order = [&](const State& order) {
        return list_participants(src, dst, copy, request.tensor.shape, request.src, order);
      };
      const Participants all = in_order(asked.front());
      for (const RankBoxes& rank : all.ranks) ids_.insert(rank.id);
      add_joined(all, same);
      Crossings least = crossings_of(all, request, units_);
      for (const State& other : std::span(asked).subspan(1))
        least.keep_least(crossings_of(in_order(other), request, units_));
      crossings_.add(least, weight);
      // In other orders other ranks of a unit may want the same.
      const bool only = orders && orders->size() == 1;
      if (only && request.src.partial.empty() && r.dst.partial.empty()) relays_.add(all, weight);
    }
  }

  // That it may have; nullopt where they are too many for the ranks to be listed.
  [[nodiscard]] std::optional<std::vector<State>> orders_of_target(
      const PlannedRedistribution& r) const {
    if (!r.request.any_dst_order) return std::vector<State>{r.dst};
    const auto most = static_cast<size_t>(bounded_ranks / participants_of(plan_, r.request));
    std::vector<State> orders = all_orders(r.dst, most + 1);
    if (orders.size() > most) return std::nullopt;
    return orders;
  }

  // The ranks that collectives of a member may join: those of a mesh.
  void add_joined(const Participants& all, bool same_mesh) {
    std::vector<int64_t> sources;
    std::vector<int64_t> targets;
    for (const RankBoxes& rank : all.ranks) {
      if (rank.held >= 0 || same_mesh) sources.push_back(rank.id);
      if (rank.wanted >= 0 && !same_mesh) targets.push_back(rank.id);
    }
    for (std::vector<int64_t>* ranks : {&sources, &targets}) {
      std::sort(ranks->begin(), ranks->end());
      if (!ranks->empty()) joined_.insert(std::move(*ranks));
    }
  }

  using Sets = std::map<std::pair<int, int64_t>, std::vector<int64_t>>;  // ranks, by level and unit

  // MB/s of links.
  struct Rates {
    int64_t full = 0;
    int64_t exchange = 0;  // that exchanges reach
    void add(const Rates& more) {
      add_up_to(full, more.full);
      add_up_to(exchange, more.exchange);
    }
  };

  // Of the links over which the rank meets some of those counted in `others`, less those in `but`.
  [[nodiscard]] Rates rates(int64_t id, const UnitCounts& others, const UnitCounts& but) const {
    Rates sum;
    for (int l = 0; l < units_.levels(); ++l) {
      const TopologyLevel& level = topology_.levels[static_cast<size_t>(l)];
      if (meets(units_, id, others, but, l)) sum.add({level.mb_per_s, exchange_mb_per_s(level)});
    }
    return sum;
  }

  // Of all ranks of a set together over the links to what is outside of it.
  [[nodiscard]] int64_t full_mb_per_s(const std::vector<int64_t>& set) const {
    const UnitCounts inside = counts_of(units_, set);
    int64_t sum = 0;
    for (const int64_t id : set) add_up_to(sum, rates(id, members_, inside).full);
    return sum;
  }

  // Of all ranks of a set together: exchanges at their rate, and as much at the full one as
  // collectives can, whose meshes have ranks inside and outside of it.
  //
  //     40 ranks, 8 more of their mesh outside     40 at the rate of exchanges, 8 of them at full
  [[nodiscard]] int64_t bandwidth(const std::vector<int64_t>& set) const {
    const UnitCounts inside = counts_of(units_, set);
    const std::set<const std::vector<int64_t>*> crossing = crossing_meshes(set);
    Rates all;
    Rates joined;  // of the ranks of those meshes
    for (const int64_t id : set) {
      const Rates of_rank = rates(id, members_, inside);
      all.add(of_rank);
      const auto& meshes = meshes_of_.at(id);
      if (std::any_of(meshes.begin(), meshes.end(),
                      [&](const auto* mesh) { return crossing.count(mesh) > 0; }))
        joined.add(of_rank);
    }
    const int64_t most = joined.full - joined.exchange;
    return saturating_add(all.exchange, faster_by_collectives(set, inside, crossing, most));
  }

  // By how much collectives of the meshes that cross the border of the set are faster, `most` at
  // most: they bring no more into the set than their ranks outside can give, and no more out of it
  // than these can take. Where something is pending, `most`.
  [[nodiscard]] int64_t faster_by_collectives(const std::vector<int64_t>& set,
                                              const UnitCounts& inside,
                                              const std::set<const std::vector<int64_t>*>& meshes,
                                              int64_t most) const {
    if (reduces_ || most == 0) return most;
    const std::set<int64_t> of_set(set.begin(), set.end());
    int64_t faster = 0;
    for (const auto* mesh : meshes) {
      for (const int64_t id : *mesh) {
        if (faster >= most) return most;
        if (of_set.count(id) > 0) continue;
        const Rates of_rank = rates(id, inside, {});
        add_up_to(faster, of_rank.full - of_rank.exchange);
      }
    }
    return std::min(faster, most);
  }

  // Those that have ranks inside of the set and outside.
  [[nodiscard]] std::set<const std::vector<int64_t>*> crossing_meshes(
      const std::vector<int64_t>& set) const {
    std::map<const std::vector<int64_t>*, size_t> inside;  // ranks of each mesh
    for (const int64_t id : set) {
      for (const auto* mesh : meshes_of_.at(id)) ++inside[mesh];
    }
    std::set<const std::vector<int64_t>*> crossing;
    for (const auto& [mesh, ranks] : inside) {
      if (ranks != mesh->size()) crossing.insert(mesh);
    }
    return crossing;
  }

  // Whether each mesh lies inside the set or outside of it, so that no collective joins the two.
  [[nodiscard]] bool only_exchanges_cross(const std::vector<int64_t>& set) const {
    return crossing_meshes(set).empty();
  }

  // What a set takes whose ranks have so much bandwidth together.
  void take(const Crossing& crossing, int64_t mb_per_s) {
    const int64_t bytes = std::max(crossing.in, crossing.out);
    if (bytes > 0 && mb_per_s > 0)
      transfer_ps_ = std::max(transfer_ps_, transfer_ps(bytes, 1, mb_per_s));
  }

  // What the ranks of the set, which only exchanges enter and leave, take by their units of a level
  // all together: of the bytes that cross borders of the units those that cross the set's at the
  // rate that exchanges reach.
  void take_in_units(const Crossing& crossing, const std::vector<int64_t>& set, int level,
                     const Sets& sets) {
    std::set<int64_t> units;
    for (const int64_t id : set) units.insert(units_.joined(id, level));
    Crossing all;
    int64_t mb_per_s = 0;
    size_t ranks = 0;
    for (const int64_t unit : units) {
      const std::vector<int64_t>& members = sets.at({level, unit});
      ranks += members.size();
      const Crossing& of_unit = crossings_.units.at({level, unit});
      add_up_to(all.in, of_unit.in);
      add_up_to(all.out, of_unit.out);
      add_up_to(mb_per_s, full_mb_per_s(members));
    }
    if (ranks != set.size()) return;  // some units hold others too
    const auto counted = [&](int64_t bytes, int64_t by_exchange) {
      return saturating_add(std::max<int64_t>(0, bytes - by_exchange), slower(by_exchange, level));
    };
    take({counted(all.in, crossing.in), counted(all.out, crossing.out)}, mb_per_s);
  }

  // Of the full rate, the most that exchanges reach over the level or one outside of it.
  [[nodiscard]] int64_t exchange_percent(int level) const {
    int64_t percent = 0;
    for (auto l = static_cast<size_t>(level); l < topology_.levels.size(); ++l)
      percent = std::max(percent, topology_.levels[l].exchange_percent);
    return percent;
  }

  // The bytes that go over such links at the full rate while exchanges move so many.
  [[nodiscard]] int64_t slower(int64_t bytes, int level) const {
    const int64_t percent = exchange_percent(level);
    return saturating_add(bytes, floor_div(saturating_mul(bytes, 100 - percent), percent));
  }

  // What the units of a level that take longest at the full rate take together, where so few units
  // want one byte, and groups are over so many of these, that a gather brings it in vain to more
  // than it is faster for.
  //
  //     12 hosts, each byte wanted by one     an exchange at 94 % takes 1.06 of the full rate for
  //                                           it, an all_gather brings it to 11 hosts
  void take_busiest_units(int level, const Sets& sets) {
    struct Unit {
      int64_t unit = 0;
      int64_t in = 0;
      int64_t mb_per_s = 0;
      int64_t ps = 0;  // at the full rate
    };
    const int64_t percent = exchange_percent(level);
    if (percent == 100) return;  // each by itself is bounded already
    std::vector<Unit> all;
    int64_t most_ps = 0;
    for (const auto& [set, members] : sets) {
      const int64_t in = crossings_.units.at(set).in;
      if (set.first != level || in == 0) continue;
      Unit& unit = all.emplace_back(Unit{set.second, in, full_mb_per_s(members)});
      if (unit.mb_per_s > 0) unit.ps = transfer_ps(in, 1, unit.mb_per_s);
      most_ps = std::max(most_ps, unit.ps);
    }
    std::set<int64_t> units;
    int64_t in = 0;
    int64_t mb_per_s = 0;
    for (const Unit& unit : all) {
      if (saturating_mul(unit.ps, 100) < saturating_mul(most_ps, percent)) continue;
      units.insert(unit.unit);
      add_up_to(in, unit.in);
      add_up_to(mb_per_s, unit.mb_per_s);
    }
    const int64_t brought = saturating_mul(least_brought(level, units), percent);
    if (saturating_mul(100, crossings_.wanting.at(level)) > brought) return;
    take({slower(in, level), 0}, mb_per_s);
  }

  // To so many of the units a collective over them brings each byte, at least: to all units of its
  // group but one. 0 where groups may be over parts of mesh dims, or something is pending.
  [[nodiscard]] int64_t least_brought(int level, const std::set<int64_t>& units) const {
    if (reduces_) return 0;
    int64_t least = INT64_MAX;
    for (const size_t index : meshes_of_members()) {
      if (!gathers_over_whole_dims(index)) return 0;
      const Mesh& mesh = plan_.meshes.meshes[index];
      for (const MeshDim& dim : mesh.dims) {
        for (const std::vector<int64_t>& group : group_ranks(*mesh.universe, dim.layout)) {
          std::set<int64_t> met;
          for (const int64_t id : group) met.insert(units_.joined(id, level));
          const auto wanting = std::count_if(met.begin(), met.end(),
                                             [&](int64_t unit) { return units.count(unit) > 0; });
          if (met.size() > 1 && wanting > 0) least = std::min<int64_t>(least, wanting - 1);
        }
      }
    }
    return least;
  }

  [[nodiscard]] std::set<size_t> meshes_of_members() const {
    std::set<size_t> meshes;
    for (const size_t member : firsts_) {
      const Request& request = plan_.redistributions[member].request;
      meshes.insert({request.src_mesh, request.dst_mesh});
    }
    return meshes;
  }

  // By a rank.
  [[nodiscard]] int64_t most_taken_in() const {
    int64_t most = 0;
    for (const auto& [set, crossing] : crossings_.units) {
      if (set.first == 0) most = std::max(most, crossing.in);
    }
    return most;
  }

  int64_t slowest() {
    if (ids_.empty()) return 0;
    members_ = counts_of(units_, {ids_.begin(), ids_.end()});
    for (const std::vector<int64_t>& mesh : joined_) {
      for (const int64_t id : mesh) meshes_of_[id].push_back(&mesh);
    }
    Sets sets;  // those of crossings_
    for (const int64_t id : ids_) {
      for (int level = 0; level < units_.levels(); ++level)
        sets[{level, units_.joined(id, level)}].push_back(id);
    }
    int must_reach = -1;
    for (const auto& [set, crossing] : crossings_.units) {
      take(crossing, bandwidth(sets.at(set)));
      if (crossing.in > 0 || crossing.out > 0) must_reach = std::max(must_reach, set.first);
    }
    for (const auto& [index, crossing] : crossings_.meshes) {
      std::vector<int64_t> set = materialise(plan_.meshes.meshes[index]);
      std::erase_if(set, [&](int64_t id) { return ids_.count(id) == 0; });
      take(crossing, bandwidth(set));
      if (!only_exchanges_cross(set)) continue;
      for (int level = 0; level < units_.levels(); ++level)
        take_in_units(crossing, set, level, sets);
    }
    for (int level = 0; level < units_.levels(); ++level) take_busiest_units(level, sets);
    if (must_reach < 0) return 0;
    int64_t latency_ns = INT64_MAX;
    for (auto l = static_cast<size_t>(must_reach); l < topology_.levels.size(); ++l)
      latency_ns = std::min(latency_ns, topology_.levels[l].latency_ns);
    const std::vector<int64_t> takers = relays_.takers(ids_);
    int64_t relays_ps = 0;
    if (only_exchanges_cross(takers)) {
      relays_ps = relays_.ps(takers, transfer_ps_, tensors_ == 1);
      if (tensors_ == 1 && gathers_over_whole_dims(only_target()))
        relays_ps = std::max(relays_ps, lone_ps(takers));
    }
    return std::max(relays_ps, saturating_add(saturating_mul(latency_ns, 1000), transfer_ps_));
  }

  // Whether no group may be over a part of a mesh dim: where other meshes have its ranks, they may
  // declare one.
  [[nodiscard]] bool gathers_over_whole_dims(size_t mesh) const {
    if (plan_.options.groups != GroupPolicy::declared) return false;
    const std::vector<Mesh>& meshes = plan_.meshes.meshes;
    for (size_t m = 0; m < meshes.size(); ++m) {
      if (m != mesh && meshes[m].universe == meshes[mesh].universe) return false;
    }
    return true;
  }

  [[nodiscard]] size_t only_target() const {
    return plan_.redistributions[firsts_.front()].request.dst_mesh;
  }

  [[nodiscard]] int64_t lone_ps(const std::vector<int64_t>& takers) const {
    const PlannedRedistribution& r = plan_.redistributions[firsts_.front()];
    const Mesh& target = plan_.meshes.meshes[only_target()];
    return relays_.lone_ps(takers, copy_lines(target, r.dst, units_));
  }

  const Plan& plan_;
  const BundleRequest& bundle_;
  bool reduces_;  // whether something is pending
  Topology topology_;
  std::vector<int64_t> level_ranks_;
  LevelUnits units_;
  BundleRelays relays_;
  std::vector<size_t> firsts_;
  int64_t tensors_ = 0;
  std::set<int64_t> ids_;                  // of all ranks of the bundle
  std::set<std::vector<int64_t>> joined_;  // ranks of each mesh, ascending
  std::map<int64_t, std::vector<const std::vector<int64_t>*>> meshes_of_;  // each rank
  Crossings crossings_;                                                    // in bytes
  UnitCounts members_;                                                     // ranks of the bundle
  int64_t transfer_ps_ = 0;
};

}  // namespace

BundleBounds bundle_bounds(const Plan& plan, const BundleRequest& bundle) {
  BundleBounds least;  // of members one by one
  int64_t all = 0;
  bool listed = true;
  for (const size_t member : bundle.members) {
    const PlannedRedistribution& r = plan.redistributions[member];
    const int64_t bytes = saturating_mul(r.totals.lower_bound_bytes, r.request.count);
    least.bytes = std::max(least.bytes, bytes);
    all = saturating_add(all, bytes);
    listed = listed && participants_of(plan, r.request) <= bounded_ranks;
  }
  if (!listed) return least;
  BundleBounds bounds = BundleBound(plan, bundle).bounds();
  bounds.bytes = std::clamp(bounds.bytes, least.bytes, all);
  if (has_tables(plan.topology)) bounds.ps = 0;
  return bounds;
}

}  // namespace meshplan
