#include "transfer/level_digits.h"

#include <algorithm>
#include <utility>

#include "base/int_math.h"
#include "transfer/level_units.h"
#include "transfer/rank_places.h"
#include "transfer/sub_axes.h"

namespace meshplan {
namespace {

// A digit yet without its place: size and level.
using SizeAndLevel = std::pair<int64_t, int>;

// Cuts the mode at every level into digits, innermost first; false where a level cuts it unevenly.
//
//     units of 4 and 32, mode 16:2     2 inside a unit of 4, then 8 inside a unit of 32
bool cut_mode(const Mode& mode, std::span<const int64_t> level_ranks,
              std::vector<SizeAndLevel>& digits) {
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

// Whether positions i -> base + i have a base that is a multiple of every unit: then units cut the
// mesh as they cut the identity.
bool starts_units(const Universe& universe, std::span<const int64_t> level_ranks) {
  if (universe.ranks.empty()) return true;
  return std::all_of(level_ranks.begin(), level_ranks.end() - 1,
                     [&](int64_t unit) { return universe.ranks[0] % unit == 0; });
}

// Gives digits their places; neighbours of one level become one.
std::vector<LevelDigit> major_first(const std::vector<SizeAndLevel>& inner_first) {
  std::vector<LevelDigit> digits;
  int64_t before = 1;
  for (size_t i = inner_first.size(); i-- > 0;) {
    const auto& [size, level] = inner_first[i];
    if (size == 1) continue;
    if (!digits.empty() && digits.back().level == level) {
      digits.back().size *= size;
    } else {
      digits.push_back({before, size, level});
    }
    before *= size;
  }
  return digits;
}

// The level on which ranks of these ids meet.
int level_of(const LevelUnits& units, int64_t a, int64_t b) {
  int level = 0;
  while (units.unit(a, level) != units.unit(b, level)) ++level;
  return level;
}

// Where digits cut a mesh dim, its first ranks say which: the next of stride s and level l goes on
// while ranks s, 2 s, ... are on level l from rank 0. nullopt: sizes do not divide.
//
//     hosts of 4, b 8 on ranks 0 4 1 5 2 6 3 7     level 1 at 1; level 0 at 2, 4 and 6: 2, then 4
std::optional<std::vector<LevelDigit>> first_digits(const Mesh& mesh, size_t mesh_dim,
                                                    const LevelUnits& units) {
  const MeshDim& dim = mesh.dims[mesh_dim];
  const auto level_at = [&](int64_t coordinate) {
    return level_of(units, rank_at(*mesh.universe, 0),
                    rank_at(*mesh.universe, offset_at(dim.layout, coordinate)));
  };
  std::vector<SizeAndLevel> inner_first;
  for (int64_t stride = 1; stride < dim.size;) {
    const int level = level_at(stride);
    int64_t size = 2;
    while (size * stride < dim.size && level_at(size * stride) == level) ++size;
    if (dim.size % (size * stride) != 0) return std::nullopt;
    inner_first.emplace_back(size, level);
    stride *= size;
  }
  return major_first(inner_first);
}

// Whether ranks of each copy share a unit of the level exactly if their numbers on the digits
// further out are the same.
bool is_cut_by(const MeshDigits& digits, const Mesh& mesh, const std::vector<int64_t>& positions,
               const std::vector<int64_t>& copies, const LevelUnits& units, int level) {
  std::vector<SubAxis> outside;
  size_t count = 1;
  for (size_t d = 0; d < digits.size(); ++d) {
    for (const LevelDigit& digit : digits[d]) {
      if (digit.level <= level) continue;
      outside.push_back({static_cast<int32_t>(d), digit.before, digit.size});
      count *= static_cast<size_t>(digit.size);
    }
  }
  const std::vector<int32_t> numbers = numbers_on(outside, mesh_shape(mesh));
  std::vector<int64_t> unit_of;  // by number
  for (const int64_t copy : copies) {
    unit_of.assign(count, -1);
    for (size_t i = 0; i < positions.size(); ++i) {
      int64_t& known = unit_of[static_cast<size_t>(numbers[i])];
      const int64_t unit = units.unit(rank_at(*mesh.universe, copy + positions[i]), level);
      if (known != -1 && known != unit) return false;
      known = unit;
    }
    std::sort(unit_of.begin(), unit_of.end());
    if (std::adjacent_find(unit_of.begin(), unit_of.end()) != unit_of.end()) return false;
  }
  return true;
}

}  // namespace

std::optional<MeshDigits> digits_by_strides(const Mesh& mesh,
                                            std::span<const int64_t> level_ranks) {
  const bool one_level = level_ranks.size() == 1;
  if (!one_level && (!is_consecutive(*mesh.universe) || !starts_units(*mesh.universe, level_ranks)))
    return std::nullopt;
  MeshDigits digits;
  for (const MeshDim& dim : mesh.dims) {
    std::vector<SizeAndLevel> inner_first;
    if (one_level) {
      inner_first.emplace_back(dim.size, 0);
    } else {
      for (size_t i = dim.layout.modes.size(); i-- > 0;) {
        if (!cut_mode(dim.layout.modes[i], level_ranks, inner_first)) return std::nullopt;
      }
    }
    digits.push_back(major_first(inner_first));
  }
  return digits;
}

std::optional<MeshDigits> digits_by_ranks(const Mesh& mesh, std::span<const int64_t> level_ranks) {
  const LevelUnits units(level_ranks);
  MeshDigits digits;
  for (size_t d = 0; d < mesh.dims.size(); ++d) {
    auto of_dim = first_digits(mesh, d, units);
    if (!of_dim) return std::nullopt;
    digits.push_back(std::move(*of_dim));
  }
  const std::vector<int64_t> positions = positions_of(mesh);
  const std::vector<int64_t> copies = sorted_offsets(copy_modes(mesh));
  for (int level = 0; level + 1 < units.levels(); ++level) {
    if (!is_cut_by(digits, mesh, positions, copies, units, level)) return std::nullopt;
  }
  return digits;
}

std::optional<MeshDigits> level_digits(const Mesh& mesh, std::span<const int64_t> level_ranks) {
  auto digits = digits_by_strides(mesh, level_ranks);
  const Universe& universe = *mesh.universe;
  if (!digits && (!universe.ranks.empty() || universe.world <= most_ranks_cut))
    digits = digits_by_ranks(mesh, level_ranks);
  return digits;
}

}  // namespace meshplan
