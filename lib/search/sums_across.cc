#include "search/sums_across.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "transfer/sub_axes.h"

namespace meshplan {
namespace {

// Of every rank of the mesh, by ascending rank: the number of the slot that is first of those which
// differ on pending sub-axes alone.
std::vector<std::pair<int64_t, int64_t>> first_of_sums(const Mesh& mesh, const State& state) {
  std::vector<SubAxis> pending;
  for (const PendingSubAxis& p : state.partial) pending.push_back(p.sub_axis);
  const CoordinatesOn on_pending(pending, mesh_shape(mesh));
  std::vector<std::pair<int64_t, int64_t>> of_rank;
  for (const int64_t rank : materialise(mesh)) {
    const auto slot = static_cast<int64_t>(of_rank.size());
    of_rank.emplace_back(rank, slot - on_pending.part(slot));
  }
  std::sort(of_rank.begin(), of_rank.end());
  return of_rank;
}

}  // namespace

bool sums_may_cross(const Request& request, const MeshTable& meshes) {
  if (request.src.partial.empty() || request.dst.partial.empty()) return false;
  const auto before = first_of_sums(meshes.meshes[request.src_mesh], request.src);
  const auto after = first_of_sums(meshes.meshes[request.dst_mesh], request.dst);
  if (before.size() != after.size()) return false;
  std::vector<std::pair<int64_t, int64_t>> both;
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i].first != after[i].first) return false;
    both.emplace_back(before[i].second, after[i].second);
  }
  std::sort(both.begin(), both.end());
  for (size_t i = 0; i < both.size(); ++i) {
    const bool with_last = i > 0 && both[i - 1] == both[i];
    const bool with_next = i + 1 < both.size() && both[i + 1] == both[i];
    if (!with_last && !with_next) return false;
  }
  return true;
}

}  // namespace meshplan
