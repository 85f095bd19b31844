#include "transfer/rank_places.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "base/check.h"

namespace meshplan {

std::vector<int64_t> distinct_places(std::span<const Mode> modes, int64_t period) {
  std::vector<int64_t> places{0};
  std::unordered_set<int64_t> met{0};
  for (const Mode& mode : modes) {
    // Along one mode remainders repeat once it comes back to a multiple of the period.
    const int64_t steps =
        mode.stride == 0 ? 1 : std::min(mode.size, period / std::gcd(period, mode.stride));
    const size_t known = places.size();
    for (int64_t j = 1; j < steps; ++j) {
      for (size_t i = 0; i < known; ++i) {
        const int64_t place = places[i] + j * mode.stride;
        if (met.insert(place % period).second) places.push_back(place);
      }
    }
  }
  return places;
}

std::vector<int64_t> sorted_offsets(std::span<const Mode> modes) {
  std::vector<Mode> descending(modes.begin(), modes.end());
  std::sort(descending.begin(), descending.end(),
            [](const Mode& a, const Mode& b) { return a.stride > b.stride; });
  std::vector<int64_t> all{0};
  for (const Mode& mode : descending) {
    std::vector<int64_t> next;
    next.reserve(all.size() * static_cast<size_t>(mode.size));
    for (const int64_t offset : all) {
      for (int64_t j = 0; j < mode.size; ++j) next.push_back(offset + j * mode.stride);
    }
    all = std::move(next);
  }
  if (!std::is_sorted(all.begin(), all.end())) std::sort(all.begin(), all.end());
  return all;
}

std::optional<SubAxisModes> modes_of(const Mesh& mesh, std::span<const SubAxis> sub_axes) {
  SubAxisModes out;
  std::vector<SubAxis> here;  // of one mesh dim, major first
  for (size_t m = 0; m < mesh.dims.size(); ++m) {
    here.clear();
    for (const SubAxis& sub_axis : sub_axes) {
      if (static_cast<size_t>(sub_axis.mesh_dim) == m && sub_axis.size > 1)
        here.push_back(sub_axis);
    }
    std::sort(here.begin(), here.end());
    int64_t mode_begin = 1;  // product of the sizes of the modes before
    for (const Mode& mode : mesh.dims[m].layout.modes) {
      const int64_t mode_end = mode_begin * mode.size;
      int64_t at = mode_begin;  // factors before it are in `out`
      auto cut_to = [&](int64_t end, std::vector<Mode>& to) {
        if (end % at != 0 || mode_end % end != 0) return false;
        if (end > at) to.push_back({end / at, mode.stride * (mode_end / end)});
        at = end;
        return true;
      };
      for (const SubAxis& sub_axis : here) {
        const int64_t lo = std::max(mode_begin, sub_axis.before);
        const int64_t hi = std::min(mode_end, sub_axis.before * sub_axis.size);
        if (hi <= lo) continue;
        if (lo < at || !cut_to(lo, out.others) || !cut_to(hi, out.sub_axes)) return std::nullopt;
      }
      if (!cut_to(mode_end, out.others)) return std::nullopt;
      mode_begin = mode_end;
    }
  }
  return out;
}

bool is_consecutive(const Universe& universe) {
  for (size_t i = 1; i < universe.ranks.size(); ++i) {
    if (universe.ranks[i] != universe.ranks[i - 1] + 1) return false;
  }
  return true;
}

std::vector<Mode> copy_modes(const Mesh& mesh) {
  std::vector<size_t> all(mesh.dims.size());
  std::iota(all.begin(), all.end(), size_t{0});
  auto copies = complement(group_layout(mesh, all), mesh.universe->world);
  MESHPLAN_CHECK(copies.ok(), "the copies of a mesh tile its universe: " + copies.error().message);
  return std::move(copies).value().modes;
}

std::vector<int64_t> positions_of(const Mesh& mesh) {
  std::vector<int64_t> all{0};
  for (const MeshDim& dim : mesh.dims) {
    std::vector<int64_t> next;
    next.reserve(all.size() * static_cast<size_t>(dim.size));
    const std::vector<int64_t> along = offsets(dim.layout);
    for (const int64_t position : all) {
      for (const int64_t offset : along) next.push_back(position + offset);
    }
    all = std::move(next);
  }
  return all;
}

std::vector<MeshRank> ranks_by_id(const Mesh& mesh) {
  const std::vector<int64_t> positions = positions_of(mesh);
  std::vector<MeshRank> ranks;
  ranks.reserve(positions.size());
  for (const int64_t position : positions)
    ranks.push_back({rank_at(*mesh.universe, position), static_cast<int64_t>(ranks.size())});
  if (!std::is_sorted(ranks.begin(), ranks.end())) std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace meshplan
