#include "transfer/level_map.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

namespace meshplan {
namespace {

// Cuts the mode (size, stride) at every level boundary, innermost digit first; nullopt-like false where a level cuts it unevenly.
bool cut_mode(const Mode& mode, const std::vector<int64_t>& level_ranks, std::vector<std::pair<int64_t, int>>& digits) {
  int64_t left = mode.size;
  int64_t stride = mode.stride;
  for (size_t l = 0; l < level_ranks.size() && left > 1; ++l) {
    int64_t unit = level_ranks[l];
    if (l + 1 == level_ranks.size()) {
      digits.emplace_back(left, static_cast<int>(l));
      return true;
    }
    if (stride % unit == 0) continue;  // all of it is outside of this unit
    if (unit % stride != 0) return false;
    int64_t inside = std::min(left, unit / stride);
    if (inside == left ? unit % (stride * left) != 0 : left % inside != 0) return false;
    digits.emplace_back(inside, static_cast<int>(l));
    left /= inside;
    stride *= inside;
  }
  return true;
}

// positions i -> base + i, with base a multiple of every unit: the same as the identity for all that units decide.
bool whole_unit_shift(const Universe& universe, const std::vector<int64_t>& level_ranks) {
  if (universe.ranks.empty()) return true;
  int64_t base = universe.ranks[0];
  for (size_t l = 0; l + 1 < level_ranks.size(); ++l) {
    if (base % level_ranks[l] != 0) return false;
  }
  for (size_t i = 0; i < universe.ranks.size(); ++i) {
    if (universe.ranks[i] != base + static_cast<int64_t>(i)) return false;
  }
  return true;
}

// positions i -> base + i.
bool universe_is_consecutive(const Universe& universe) {
  for (size_t i = 1; i < universe.ranks.size(); ++i) {
    if (universe.ranks[i] != universe.ranks[0] + static_cast<int64_t>(i)) return false;
  }
  return true;
}

}  // namespace

LevelMap::LevelMap(const Mesh& mesh, const Topology& topology) : mesh_(&mesh), topology_(&topology) {
  for (const TopologyLevel& level : topology.levels) level_ranks_.push_back(level.ranks);
  level_ranks_.back() = std::numeric_limits<int64_t>::max();
  regular_ = level_ranks_.size() == 1 || whole_unit_shift(*mesh.universe, level_ranks_);
  digits_.resize(mesh.dims.size());
  for (size_t d = 0; d < mesh.dims.size() && regular_; ++d) {
    std::vector<std::pair<int64_t, int>> inner_first;
    if (level_ranks_.size() == 1) {
      if (mesh.dims[d].size > 1) inner_first.emplace_back(mesh.dims[d].size, 0);
    } else {
      const std::vector<Mode>& modes = mesh.dims[d].layout.modes;
      for (size_t i = modes.size(); i-- > 0 && regular_;) regular_ = cut_mode(modes[i], level_ranks_, inner_first);
    }
    int64_t before = 1;
    for (size_t i = inner_first.size(); i-- > 0;) {
      auto [size, level] = inner_first[i];
      if (size == 1) continue;
      if (!digits_[d].empty() && digits_[d].back().level == level) {
        digits_[d].back().size *= size;
      } else {
        digits_[d].push_back({before, size, level});
      }
      before *= size;
    }
  }
}

int64_t LevelMap::members_of(const Atom& atom, int level) const {
  // The part of [before, before * size) that digits up to `level` cover.
  int64_t members = 1;
  for (const LevelDigit& digit : digits_[static_cast<size_t>(atom.mesh_dim)]) {
    if (digit.level > level) continue;
    int64_t lo = std::max(digit.before, atom.before);
    int64_t hi = std::min(digit.before * digit.size, atom.before * atom.size);
    if (hi > lo) members *= hi / lo;
  }
  return members;
}

bool LevelMap::aligned(const Atom& atom) const {
  for (const LevelDigit& digit : digits_[static_cast<size_t>(atom.mesh_dim)]) {
    int64_t lo = std::max(digit.before, atom.before);
    int64_t hi = std::min(digit.before * digit.size, atom.before * atom.size);
    if (hi > lo && (hi % lo != 0 || lo % digit.before != 0)) return false;
  }
  return true;
}

const std::vector<GroupShape>& LevelMap::shapes(std::span<const Atom> atoms) const {
  std::vector<Atom> key(atoms.begin(), atoms.end());
  auto found = remembered_.find(key);
  if (found != remembered_.end()) return found->second;
  std::vector<GroupShape> shapes;
  if (regular_ && std::all_of(atoms.begin(), atoms.end(), [&](const Atom& atom) { return aligned(atom); })) {
    GroupShape shape;
    for (int l = 0; l < levels(); ++l) {
      int64_t members = 1;
      for (const Atom& atom : atoms) members *= l + 1 == levels() ? atom.size : members_of(atom, l);
      shape.members.push_back(members);
    }
    shapes.push_back(std::move(shape));
  } else {
    shapes = listed_shapes(atoms);
  }
  return remembered_.emplace(std::move(key), std::move(shapes)).first->second;
}

int64_t LevelMap::unit(int64_t position, int level) const {
  return level + 1 == levels() ? 0 : rank_at(*mesh_->universe, position) / level_ranks_[static_cast<size_t>(level)];
}

int LevelMap::level_between(int64_t a, int64_t b) const {
  int level = 0;
  while (unit(a, level) != unit(b, level)) ++level;
  return level;
}

namespace {

// Members count together by unit of each level, from the inside out.
GroupShape shape_of(const LevelMap& map, std::span<const int64_t> positions) {
  GroupShape group;
  group.reach.assign(static_cast<size_t>(map.levels()), 0);
  std::vector<int64_t> inner(positions.size(), 1);                   // members in the unit below
  std::vector<std::pair<int64_t, size_t>> by_unit(positions.size());  // and number of the member
  for (int l = 0; l < map.levels(); ++l) {
    for (size_t i = 0; i < positions.size(); ++i) by_unit[i] = {map.unit(positions[i], l), i};
    std::sort(by_unit.begin(), by_unit.end());
    int64_t first = 0;  // members in the unit of the first one
    int64_t any = 0;
    for (size_t begin = 0, end = 0; begin < by_unit.size(); begin = end) {
      while (end < by_unit.size() && by_unit[end].first == by_unit[begin].first) ++end;
      const auto here = static_cast<int64_t>(end - begin);
      if (any != 0 && here != any) group.uniform = false;
      any = here;
      for (size_t k = begin; k < end; ++k) {
        const size_t i = by_unit[k].second;
        if (i == 0) first = here;
        int64_t& reach = group.reach[static_cast<size_t>(l)];
        reach = std::max(reach, here - inner[i]);
        inner[i] = here;
      }
    }
    group.members.push_back(first);
  }
  if (group.uniform) group.reach.clear();
  return group;
}


}  // namespace

std::vector<GroupShape> LevelMap::listed_shapes(std::span<const Atom> atoms) const {
  const std::vector<int64_t> shape = mesh_shape(*mesh_);
  const int64_t ranks = mesh_size(*mesh_);
  // Index offsets of the members relative to the member whose group coordinates are all 0.
  std::vector<int64_t> index_stride(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) index_stride[i - 1] = index_stride[i] * shape[i];
  std::vector<int64_t> members{0};
  std::vector<bool> leads(static_cast<size_t>(ranks), true);
  for (const Atom& atom : atoms) {
    auto dim = static_cast<size_t>(atom.mesh_dim);
    int64_t stride = index_stride[dim] * (shape[dim] / (atom.before * atom.size));
    std::vector<int64_t> next;
    for (int64_t base : members) {
      for (int64_t j = 0; j < atom.size; ++j) next.push_back(base + j * stride);
    }
    members = std::move(next);
    for (int64_t i = 0; i < ranks; ++i) {
      if (i / stride % atom.size != 0) leads[static_cast<size_t>(i)] = false;
    }
  }
  // Positions of the members relative to the leader's, and whether they are the same for every
  // leader: across mesh dims they are, and within one where it has one stride or is a member's
  // alone. Then a group's shape only depends on where its leader stands in the outermost unit that
  // ends.
  bool alike = universe_is_consecutive(*mesh_->universe) && level_ranks_.size() > 1;
  for (const Atom& atom : atoms) {
    const MeshDim& dim = mesh_->dims[static_cast<size_t>(atom.mesh_dim)];
    alike = alike && (dim.layout.modes.size() == 1 || atom.size == dim.size);
  }
  const int64_t outermost = level_ranks_.size() > 1 ? level_ranks_[level_ranks_.size() - 2] : 1;
  std::set<int64_t> places;
  std::set<GroupShape> shapes;
  std::vector<int64_t> positions(members.size());
  for (int64_t copy = 0; copy < mesh_copies(*mesh_); ++copy) {
    for (int64_t lead = 0; lead < ranks; ++lead) {
      if (!leads[static_cast<size_t>(lead)]) continue;
      if (alike &&
          !places.insert(rank_at(*mesh_->universe, position_of(*mesh_, copy, lead)) % outermost)
               .second)
        continue;
      for (size_t i = 0; i < members.size(); ++i)
        positions[i] = position_of(*mesh_, copy, lead + members[i]);
      shapes.insert(shape_of(*this, positions));
    }
  }
  return {shapes.begin(), shapes.end()};
}

}  // namespace meshplan
