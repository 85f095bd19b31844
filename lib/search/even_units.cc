#include "search/even_units.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/int_math.h"
#include "transfer/level_units.h"
#include "transfer/rank_places.h"

namespace meshplan {
namespace {

Mesh on_first_ranks(const Mesh& mesh) {
  Mesh shifted = mesh;
  shifted.universe = std::make_shared<Universe>(Universe{mesh.universe->world, {}});
  return shifted;
}

Topology with_units(const Topology& topology, const std::vector<int64_t>& unit_ranks) {
  Topology even = topology;
  for (size_t l = 0; l < unit_ranks.size(); ++l) even.levels[l].ranks = unit_ranks[l];
  return even;
}

// Whether units of these sizes would cut the mesh into digits, on the first ranks.
bool cut_cleanly(const LevelMap& uneven, const std::vector<int64_t>& unit_ranks) {
  return digits_by_strides(on_first_ranks(uneven.mesh()),
                           level_ranks_of(with_units(uneven.topology(), unit_ranks)))
      .has_value();
}

// Ranks of the mesh's first copy in a unit of the level: the most and the least.
struct InUnit {
  int64_t most = 0;
  int64_t least = 0;
};

InUnit ranks_in_units(const LevelMap& levels, int level) {
  std::map<int64_t, int64_t> counts;
  for (const int64_t position : positions_of(levels.mesh())) ++counts[levels.unit(position, level)];
  InUnit ranks{0, INT64_MAX};
  for (const auto& [unit, count] : counts) {
    ranks.most = std::max(ranks.most, count);
    ranks.least = std::min(ranks.least, count);
  }
  return ranks;
}

// Sizes of units that may cut the mesh evenly, descending: no others begin and end where its dims
// do or where these divide.
std::vector<int64_t> sizes_to_try(const Mesh& mesh) {
  std::set<int64_t> sizes{mesh.universe->world};
  for (const MeshDim& dim : mesh.dims) {
    for (const Mode& mode : dim.layout.modes) {
      for (int64_t part = 1; part <= mode.size; ++part) {
        if (mode.size % part == 0) sizes.insert(saturating_mul(mode.stride, part));
      }
    }
  }
  return {sizes.rbegin(), sizes.rend()};
}

}  // namespace

EvenUnits::EvenUnits(const LevelMap& uneven, const std::vector<int64_t>& unit_ranks)
    : mesh_(on_first_ranks(uneven.mesh())),
      topology_(with_units(uneven.topology(), unit_ranks)),
      levels_(mesh_, topology_) {}

std::vector<std::unique_ptr<EvenUnits>> even_units_of(const LevelMap& levels) {
  std::vector<std::unique_ptr<EvenUnits>> all;
  const Mesh& mesh = levels.mesh();
  if (levels.regular() || !is_consecutive(*mesh.universe)) return all;
  std::vector<InUnit> in_units;
  for (int l = 0; l + 1 < levels.levels(); ++l) in_units.push_back(ranks_in_units(levels, l));
  const std::vector<int64_t> sizes = sizes_to_try(mesh);
  std::set<std::vector<int64_t>> known;
  const auto add = [&](const auto& ranks_of) {
    std::vector<int64_t> unit_ranks;
    for (const InUnit& in_unit : in_units) {
      const int64_t inner = unit_ranks.empty() ? 1 : unit_ranks.back();
      // A unit that has the whole mesh has all that is on its ranks and between them.
      const int64_t most = in_unit.least == mesh_size(mesh) ? INT64_MAX : ranks_of(in_unit);
      int64_t size = inner;
      for (const int64_t other : sizes) {
        std::vector<int64_t> tried = unit_ranks;
        tried.resize(in_units.size(), other);
        if (other > most || other % inner != 0 || !cut_cleanly(levels, tried)) continue;
        size = other;
        break;
      }
      unit_ranks.push_back(size);
    }
    if (!known.insert(unit_ranks).second) return;
    if (cut_cleanly(levels, unit_ranks))
      all.push_back(std::make_unique<EvenUnits>(levels, unit_ranks));
  };
  add([](const InUnit& ranks) { return ranks.most; });
  add([](const InUnit& ranks) { return ranks.most / 2; });
  add([](const InUnit& ranks) { return ranks.least; });
  return all;
}

}  // namespace meshplan
