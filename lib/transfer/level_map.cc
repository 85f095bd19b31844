#include "transfer/level_map.h"

#include <algorithm>
#include <set>

#include "base/int_math.h"
#include "transfer/level_units.h"
#include "transfer/list_exchange.h"
#include "transfer/rank_order.h"
#include "transfer/rank_places.h"
#include "transfer/sub_axes.h"
#include "transfer/turns.h"

namespace meshplan {

LevelSet levels_met(const std::vector<GroupShape>& shapes) {
  LevelSet met = 0;
  for (const GroupShape& shape : shapes) {
    for (size_t l = 0; l < shape.members.size(); ++l) {
      const bool meet = shape.uniform ? shape.members[l] > (l == 0 ? 1 : shape.members[l - 1])
                                      : shape.reach[l] > 0;
      if (meet) met |= LevelSet{1} << l;
    }
  }
  return met;
}

LevelMap::LevelMap(const Mesh& mesh, const Topology& topology)
    : mesh_(&mesh), topology_(&topology), level_ranks_(level_ranks_of(topology)) {
  consecutive_ = is_consecutive(*mesh.universe);
  auto digits = level_digits(mesh, level_ranks_);
  regular_ = digits.has_value();
  digits_ = digits ? std::move(*digits) : MeshDigits(mesh.dims.size());
}

bool LevelMap::units_in_one_order() const {
  if (consecutive_) return true;  // ids ascend by strides, inside units as well
  if (units_in_one_order_) return *units_in_one_order_;
  std::vector<SubAxis> inside;
  for (size_t m = 0; m < digits_.size(); ++m) {
    for (const LevelDigit& digit : digits_[m]) {
      if (digit.level == 0) inside.push_back({static_cast<int32_t>(m), digit.before, digit.size});
    }
  }
  const std::vector<int32_t> numbers = numbers_on(inside, mesh_shape(*mesh_));
  const std::vector<int64_t> positions = positions_of(*mesh_);
  bool alike = true;
  std::vector<int32_t> order;                      // of the first unit
  std::vector<std::pair<int64_t, int32_t>> ranks;  // id, number inside
  for (const int64_t copy : sorted_offsets(copy_modes(*mesh_))) {
    ranks.clear();
    for (size_t i = 0; i < positions.size(); ++i)
      ranks.emplace_back(rank_at(*mesh_->universe, copy + positions[i]), numbers[i]);
    std::sort(ranks.begin(), ranks.end());
    const auto size = static_cast<size_t>(product_of_sizes(inside));
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (order.size() < size) {
        order.push_back(ranks[i].second);
      } else {
        alike = alike && ranks[i].second == order[i % size];
      }
    }
  }
  units_in_one_order_ = alike;
  return alike;
}

int64_t LevelMap::members_of(const SubAxis& sub_axis, int level) const {
  // The part of [before, before * size) that digits up to `level` cover.
  int64_t members = 1;
  for (const LevelDigit& digit : digits_[static_cast<size_t>(sub_axis.mesh_dim)]) {
    if (digit.level > level) continue;
    int64_t lo = std::max(digit.before, sub_axis.before);
    int64_t hi = std::min(digit.before * digit.size, sub_axis.before * sub_axis.size);
    if (hi > lo) members *= hi / lo;
  }
  return members;
}

bool LevelMap::aligned(const SubAxis& sub_axis) const {
  for (const LevelDigit& digit : digits_[static_cast<size_t>(sub_axis.mesh_dim)]) {
    int64_t lo = std::max(digit.before, sub_axis.before);
    int64_t hi = std::min(digit.before * digit.size, sub_axis.before * sub_axis.size);
    if (hi > lo && (hi % lo != 0 || lo % digit.before != 0)) return false;
  }
  return true;
}

const LevelMap::Shapes& LevelMap::shapes_of(std::span<const SubAxis> sub_axes) const {
  std::vector<SubAxis> key(sub_axes.begin(), sub_axes.end());
  auto found = remembered_.find(key);
  if (found != remembered_.end()) return found->second;
  Shapes shapes;
  if (regular_ && std::all_of(sub_axes.begin(), sub_axes.end(),
                              [&](const SubAxis& sub_axis) { return aligned(sub_axis); })) {
    GroupShape shape;
    for (int l = 0; l < levels(); ++l) {
      int64_t members = 1;
      for (const SubAxis& sub_axis : sub_axes)
        members *= l + 1 == levels() ? sub_axis.size : members_of(sub_axis, l);
      shape.members.push_back(members);
    }
    shapes.spread = {shape.members.back() / shape.members.front(), shape.members.front()};
    shapes.all.push_back(std::move(shape));
  } else {
    shapes = listed_shapes(sub_axes);
  }
  return remembered_.emplace(std::move(key), std::move(shapes)).first->second;
}

const TurnedGroups& LevelMap::turned_groups(const std::vector<SubAxis>& slowest_first) const {
  const auto [found, fresh] = turned_groups_.try_emplace(slowest_first);
  if (fresh) found->second = meshplan::turned_groups(*mesh_, slowest_first);
  return found->second;
}

int64_t LevelMap::unit(int64_t position, int level) const {
  return LevelUnits(level_ranks_).unit(rank_at(*mesh_->universe, position), level);
}

int LevelMap::level_between(int64_t a, int64_t b) const {
  int level = 0;
  while (unit(a, level) != unit(b, level)) ++level;
  return level;
}

namespace {

// Members count together by unit of each level, from the inside out. `ids` ascend; `lead` is one of
// them.
GroupShape shape_of(std::span<const int64_t> level_ranks, std::span<const int64_t> ids,
                    int64_t lead) {
  GroupShape group;
  group.reach.assign(level_ranks.size(), 0);
  std::vector<int64_t> inner(ids.size(), 1);  // members in the unit below
  for (size_t l = 0; l < level_ranks.size(); ++l) {
    const bool all = l + 1 == level_ranks.size();
    int64_t& reach = group.reach[l];
    int64_t of_lead = 0;
    int64_t any = 0;
    for (size_t begin = 0, end = 0; begin < ids.size(); begin = end) {
      const int64_t unit = all ? 0 : floor_div(ids[begin], level_ranks[l]);
      const int64_t last =
          all || unit == INT64_MAX / level_ranks[l] ? INT64_MAX : (unit + 1) * level_ranks[l] - 1;
      bool leads = false;
      for (; end < ids.size() && ids[end] <= last; ++end) leads = leads || ids[end] == lead;
      const auto here = static_cast<int64_t>(end - begin);
      if (leads) of_lead = here;
      if (any != 0 && here != any) group.uniform = false;
      any = here;
      for (size_t k = begin; k < end; ++k) {
        reach = std::max(reach, here - inner[k]);
        inner[k] = here;
      }
    }
    group.members.push_back(of_lead);
  }
  if (group.uniform) group.reach.clear();
  return group;
}

// Raises the spread to that of one group. `ids` ascend.
void add_spread(LevelMap::Spread& most, int64_t unit_ranks, std::span<const int64_t> ids) {
  int64_t units = 0;
  for (size_t begin = 0, end = 0; begin < ids.size(); begin = end) {
    end = end_of_unit(ids, begin, unit_ranks);
    ++units;
    most.inside = std::max(most.inside, static_cast<int64_t>(end - begin));
  }
  most.units = std::max(most.units, units);
}

}  // namespace

LevelMap::Shapes LevelMap::listed_shapes(std::span<const SubAxis> sub_axes) const {
  std::set<GroupShape> shapes;
  Spread spread;
  int64_t listed = 0;
  std::vector<int64_t> ids;
  auto modes = modes_of(*mesh_, sub_axes);
  if (consecutive_ && modes && level_ranks_.size() > 1) {
    const std::vector<int64_t> members = sorted_offsets(modes->sub_axes);
    const std::vector<Mode> copies = copy_modes(*mesh_);
    modes->others.insert(modes->others.end(), copies.begin(), copies.end());
    const int64_t base = rank_at(*mesh_->universe, 0);
    for (const int64_t place :
         distinct_places(modes->others, level_ranks_[level_ranks_.size() - 2])) {
      ids.clear();
      for (const int64_t offset : members) ids.push_back(base + place + offset);
      listed += static_cast<int64_t>(ids.size());
      shapes.insert(shape_of(level_ranks_, ids, ids.front()));
      add_spread(spread, level_ranks_.front(), ids);
    }
    return {{shapes.begin(), shapes.end()}, listed, spread};
  }
  // By the coordinates that members share.
  const std::vector<int64_t> sizes = mesh_shape(*mesh_);
  const std::vector<int64_t> positions = positions_of(*mesh_);
  const CoordinatesOn differ(sub_axes, sizes);
  std::map<int64_t, std::vector<int64_t>> groups;  // positions, by that of the lead
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    groups[index - differ.part(index)].push_back(positions[i]);
  }
  for (const int64_t copy : sorted_offsets(copy_modes(*mesh_))) {
    for (const auto& [lead, members] : groups) {
      ids.clear();
      for (const int64_t position : members)
        ids.push_back(rank_at(*mesh_->universe, copy + position));
      const int64_t first = ids.front();
      std::sort(ids.begin(), ids.end());
      listed += static_cast<int64_t>(ids.size());
      shapes.insert(shape_of(level_ranks_, ids, first));
      add_spread(spread, level_ranks_.front(), ids);
    }
  }
  return {{shapes.begin(), shapes.end()}, listed, spread};
}

const std::vector<RankClass>& LevelMap::classes(const std::vector<SubAxis>& apart,
                                                const std::vector<int64_t>& kinds) const {
  const auto [found, fresh] = classes_.try_emplace({apart, kinds});
  if (fresh) found->second = list_rank_classes(*mesh_, level_ranks_, apart, kinds);
  return found->second;
}

const std::vector<UnitMembers>& LevelMap::few_units(int level, size_t most_members) const {
  const auto [found, fresh] = few_units_.try_emplace({level, most_members});
  if (fresh)
    found->second =
        list_few_units(classes({}, {}), level_ranks_[static_cast<size_t>(level)], most_members);
  return found->second;
}

const UnitMembers& LevelMap::unit_of(int level, int64_t index, size_t most_members) const {
  const auto [found, fresh] = unit_of_.try_emplace({level, index, most_members});
  if (fresh)
    found->second = list_unit_of(classes({}, {}), level_ranks_[static_cast<size_t>(level)], index,
                                 most_members);
  return found->second;
}

int64_t LevelMap::most_coordinates_inside(const SubAxis& sub_axis) const {
  const auto [found, fresh] = most_inside_.try_emplace(sub_axis);
  if (fresh)
    found->second = meshplan::most_coordinates_inside(classes({}, {}), level_ranks_.front(),
                                                      sub_axis, mesh_shape(*mesh_));
  return found->second;
}

const std::shared_ptr<ListingMemory>& LevelMap::shared_listings() const {
  if (!listings_) listings_ = std::make_shared<ListingMemory>();
  return listings_;
}

TurnMemory& LevelMap::turns() const {
  if (!turns_) turns_ = std::make_shared<TurnMemory>();
  return *turns_;
}

}  // namespace meshplan
