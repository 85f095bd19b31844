#include "search/telling_units.h"

#include <algorithm>

#include "base/int_math.h"
#include "cost/collective_time.h"
#include "cost/listed_bounds.h"
#include "search/search_state.h"

namespace meshplan {
namespace {

// Members differ, so they are a grid where they are as many as its combinations.
void find_grid(const PlanProblem& p, UnitRanks& unit) {
  int64_t combinations = 1;
  std::vector<int32_t> on;
  for (int a = 0; a < p.sub_axes; ++a) {
    on.clear();
    for (size_t m = 0; m < unit.count; ++m)
      on.push_back(p.sides.coordinate(unit.first + m, as_index(a)));
    std::sort(on.begin(), on.end());
    const auto count = std::unique(on.begin(), on.end()) - on.begin();
    unit.inside[as_index(a)] = count;
    if (count == p.size[as_index(a)]) unit.whole = static_cast<uint16_t>(unit.whole | 1U << a);
    combinations = saturating_mul(combinations, count);
  }
  unit.grid = combinations == unit.members();
}

UnitRanks ranks_of(PlanProblem& p, const UnitMembers& members, int level, size_t number) {
  UnitRanks unit;
  unit.number = number;
  unit.level = level;
  unit.exchange_latency_ns = unit.per_peer_ns = INT64_MAX;
  for (size_t l = static_cast<size_t>(level); l < p.topology->levels.size(); ++l) {
    unit.exchange_latency_ns = std::min(unit.exchange_latency_ns, p.topology->levels[l].latency_ns);
    unit.links.mb_per_s =
        saturating_add(unit.links.mb_per_s, exchange_mb_per_s(p.topology->levels[l]));
    unit.per_peer_ns = std::min(unit.per_peer_ns, p.topology->levels[l].per_peer_ns);
  }
  if (as_index(level) + 1 == p.topology->levels.size()) unit.links = p.topology->levels.back();
  p.sides.add_ranks(p, members);
  unit.first = p.sides.begin_of(unit.part());
  unit.count = members.size();
  find_grid(p, unit);
  return unit;
}

// The indices in the mesh of rank 0, and of those that differ from it on one sub-axis: by 1, or so
// much that they are the last to have a part of a tensor dim that the sub-axis alone cuts.
std::vector<int64_t> near_first_rank(const PlanProblem& p) {
  std::vector<int64_t> indices{0};
  for (int a = 0; a < p.sub_axes; ++a) {
    const SubAxis& sub_axis = p.sub_axis[as_index(a)];
    const auto dim = static_cast<size_t>(sub_axis.mesh_dim);
    int64_t below = floor_div(p.mesh_sizes[dim], sub_axis.before * sub_axis.size);
    for (size_t d = dim + 1; d < p.mesh_sizes.size(); ++d) below *= p.mesh_sizes[d];
    indices.push_back(below);
    for (int d = 0; d < p.dims && !is_scalar(p); ++d) {
      const int64_t parts = p.tensor.shape[as_index(p.tensor_dim[as_index(d)])];
      if (parts > 2 && parts < sub_axis.size) indices.push_back((parts - 1) * below);
    }
  }
  return indices;
}

}  // namespace

void look_at_units(PlanProblem& p) {
  std::vector<UnitRanks>& units = p.units;
  // One rank needs nothing.
  if (p.sub_axes == 0 || p.ranks > bounded_ranks) return;
  const std::vector<int64_t> near_first = near_first_rank(p);
  std::vector<const UnitMembers*> looked;
  for (int level = 1; level < p.levels->levels(); ++level) {
    looked.clear();
    const auto look_at = [&](const UnitMembers& members) {
      looked.push_back(&members);
      units.push_back(ranks_of(p, members, level, units.size()));
    };
    for (const UnitMembers& members : p.levels->few_units(level - 1, most_unit_members))
      look_at(members);
    for (const int64_t index : near_first) {
      const UnitMembers& members = p.levels->unit_of(level - 1, index, most_unit_members);
      const bool known = std::any_of(looked.begin(), looked.end(),
                                     [&](const UnitMembers* other) { return *other == members; });
      if (!members.empty() && !known) look_at(members);
    }
  }
}

std::array<int64_t, max_sub_axes> inside_units(const PlanProblem& p) {
  if (p.exact_levels || p.ranks > bounded_ranks) return p.size;
  std::array<int64_t, max_sub_axes> most{};
  for (int a = 0; a < p.sub_axes; ++a)
    most[as_index(a)] = p.levels->most_coordinates_inside(p.sub_axis[as_index(a)]);
  return most;
}

}  // namespace meshplan
