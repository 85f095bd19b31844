#include "verify/bundle_ranks.h"

#include <algorithm>

#include "base/int_math.h"

namespace meshplan::verification {
namespace {

// The positions at which the copies of the mesh begin; nullopt: there are too many ranks.
std::optional<std::vector<int64_t>> bases_of(const Mesh& mesh, bool across) {
  const int64_t ranks = mesh_size(mesh);
  if (ranks > most_bundle_ranks) return std::nullopt;
  if (across) return std::vector<int64_t>{0};
  std::vector<size_t> all(mesh.dims.size());
  for (size_t d = 0; d < all.size(); ++d) all[d] = d;
  const auto copies = complement(group_layout(mesh, all), mesh.universe->world);
  if (!copies || saturating_mul(ranks, meshplan::size(*copies)) > most_bundle_ranks)
    return std::nullopt;
  return offsets(*copies);
}

std::vector<int64_t> ids_of(const Mesh& mesh, const std::vector<int64_t>& bases) {
  std::vector<int64_t> within{0};  // positions in one copy, row-major
  for (const MeshDim& dim : mesh.dims) {
    const std::vector<int64_t> steps = offsets(dim.layout);
    std::vector<int64_t> next;
    next.reserve(within.size() * steps.size());
    for (const int64_t position : within) {
      for (const int64_t step : steps) next.push_back(position + step);
    }
    within = std::move(next);
  }
  std::vector<int64_t> ids;
  ids.reserve(bases.size() * within.size());
  for (const int64_t base : bases) {
    for (const int64_t position : within) ids.push_back(rank_at(*mesh.universe, base + position));
  }
  return ids;
}

}  // namespace

std::optional<BundleRanks> BundleRanks::of(const BundleView& view) {
  BundleRanks ranks;
  for (const TopologyLevel& level : view.plan->topology.levels)
    ranks.levels_.push_back(std::max<int64_t>(1, level.ranks));
  std::map<std::pair<const Mesh*, bool>, std::vector<int64_t>> ids;
  for (size_t at = 0; at < view.kind.size(); ++at) {
    const Request& request = view.member(at).request;
    const bool across = request.src_mesh != request.dst_mesh;
    for (const size_t index : {request.src_mesh, request.dst_mesh}) {
      const Mesh& mesh = view.plan->meshes.meshes[index];
      const auto [slots, added] = ranks.slots_.try_emplace({&mesh, across});
      if (!added) continue;
      auto bases = bases_of(mesh, across);
      if (!bases) return std::nullopt;
      slots->second.bases = std::move(*bases);
      const auto& here = ids[slots->first] = ids_of(mesh, slots->second.bases);
      ranks.ids_.insert(ranks.ids_.end(), here.begin(), here.end());
      if (std::ssize(ranks.ids_) < 4 * most_bundle_ranks) continue;
      std::sort(ranks.ids_.begin(), ranks.ids_.end());
      ranks.ids_.erase(std::unique(ranks.ids_.begin(), ranks.ids_.end()), ranks.ids_.end());
    }
  }
  std::sort(ranks.ids_.begin(), ranks.ids_.end());
  ranks.ids_.erase(std::unique(ranks.ids_.begin(), ranks.ids_.end()), ranks.ids_.end());
  if (std::ssize(ranks.ids_) > most_bundle_ranks) return std::nullopt;
  for (const auto& [mesh, list] : ids) {
    std::vector<uint32_t>& numbers = ranks.slots_.at(mesh).ranks;
    numbers.reserve(list.size());
    for (const int64_t id : list) numbers.push_back(ranks.number_of(id));
  }
  return ranks;
}

uint32_t BundleRanks::number_of(int64_t id) const {
  // Ids without gaps are their own numbers.
  const int64_t guess = id - ids_.front();
  if (guess >= 0 && guess < std::ssize(ids_) && ids_[guess] == id)
    return static_cast<uint32_t>(guess);
  return static_cast<uint32_t>(std::lower_bound(ids_.begin(), ids_.end(), id) - ids_.begin());
}

size_t BundleRanks::level_of(uint32_t a, uint32_t b) const {
  size_t level = 0;
  while (level + 1 < levels_.size() &&
         floor_div(ids_[a], levels_[level]) != floor_div(ids_[b], levels_[level]))
    ++level;
  return level;
}

}  // namespace meshplan::verification
