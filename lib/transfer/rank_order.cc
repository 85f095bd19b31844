#include "transfer/rank_order.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "transfer/rank_places.h"
#include "transfer/sub_axes.h"

namespace meshplan {
namespace {

// From strides: one step of a mode goes further than all modes behind it. nullopt: a mode is cut
// where it does not divide.
std::optional<bool> positions_ascend(const Mesh& mesh, std::span<const SubAxis> slowest_first) {
  int64_t behind = 0;  // how far the modes behind reach
  for (size_t i = slowest_first.size(); i-- > 0;) {
    const auto modes = modes_of(mesh, slowest_first.subspan(i, 1));
    if (!modes) return std::nullopt;
    for (size_t m = modes->sub_axes.size(); m-- > 0;) {
      const Mode& mode = modes->sub_axes[m];
      if (mode.stride <= behind) return false;
      behind += (mode.size - 1) * mode.stride;
    }
  }
  return true;
}

TurnedGroups listed_turned(const Mesh& mesh, std::span<const SubAxis> slowest_first) {
  const std::vector<int64_t> positions = positions_of(mesh);
  const CoordinatesOn on(slowest_first, mesh_shape(mesh));
  // By the coordinates that members share, then by their own.
  std::map<std::pair<int64_t, int64_t>, int64_t> members;
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    members[{index - on.part(index), on.number(index)}] = positions[i];
  }
  TurnedGroups turned;
  for (const int64_t copy : sorted_offsets(copy_modes(mesh))) {
    const auto id = [&](const auto& member) {
      return rank_at(*mesh.universe, copy + member->second);
    };
    for (auto at = members.begin(), next = std::next(at); next != members.end(); at = next++) {
      if (at->first.first == next->first.first && id(at) > id(next))
        turned.first_ranks.push_back(at->first.first);
    }
  }
  std::sort(turned.first_ranks.begin(), turned.first_ranks.end());
  turned.first_ranks.erase(std::unique(turned.first_ranks.begin(), turned.first_ranks.end()),
                           turned.first_ranks.end());
  return turned;
}

}  // namespace

TurnedGroups turned_groups(const Mesh& mesh, std::span<const SubAxis> slowest_first) {
  const std::vector<int64_t>& ids = mesh.universe->ranks;
  if (std::is_sorted(ids.begin(), ids.end())) {
    if (const auto ascend = positions_ascend(mesh, slowest_first)) return {!*ascend, {}};
  }
  return listed_turned(mesh, slowest_first);
}

}  // namespace meshplan
