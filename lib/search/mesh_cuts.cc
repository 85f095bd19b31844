#include "search/mesh_cuts.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "cost/listed_bounds.h"

namespace meshplan {
namespace {

bool is_pending(size_t mesh_dim, const State& s) {
  return std::any_of(s.partial.begin(), s.partial.end(), [&](const PendingSubAxis& p) {
    return static_cast<size_t>(p.sub_axis.mesh_dim) == mesh_dim;
  });
}

bool is_reduced(size_t mesh_dim, const State& src, const State& dst) {
  return is_pending(mesh_dim, src) && !is_pending(mesh_dim, dst);
}

}  // namespace

void MeshCuts::find(const LevelMap& levels, size_t mesh_dim, const State& src, const State& dst,
                    bool split) {
  const int64_t size = levels.mesh().dims[mesh_dim].size;
  cuts_.assign({1, size});
  for (const State* s : {&src, &dst}) {
    for (const auto& order : s->shards) {
      for (const SubAxis& sub_axis : order) use(mesh_dim, sub_axis);
    }
    for (const PendingSubAxis& p : s->partial) use(mesh_dim, p.sub_axis);
  }
  sort();
  const size_t of_ends = cuts_.size();
  if (split && levels.regular()) {
    for (const LevelDigit& digit : levels.digits(mesh_dim)) cuts_.push_back(digit.before);
    sort();
  } else if (split && is_reduced(mesh_dim, src, dst)) {
    cut_inside_units(levels, static_cast<int32_t>(mesh_dim), size);
  }
  at_levels_ = cuts_.size() > of_ends;
  if (cuts_.size() == 2) return;
  for (size_t i = 0; i + 1 < cuts_.size(); ++i) {
    if (cuts_[i + 1] % cuts_[i] != 0) {
      cuts_.assign({1, size});
      at_levels_ = false;
      break;
    }
  }
}

void MeshCuts::cut_inside_units(const LevelMap& levels, int32_t mesh_dim, int64_t size) {
  if (levels.levels() == 1 || mesh_size(levels.mesh()) > bounded_ranks) return;
  const int64_t most = std::gcd(size, levels.topology().levels.front().ranks);
  for (int64_t part = most; part > 1; --part) {
    if (most % part != 0 || part == size) continue;
    const SubAxis minor{mesh_dim, size / part, part};
    if (levels.spread(std::span(&minor, 1)).units > 1) continue;
    cuts_.push_back(size / part);
    sort();
    return;
  }
}

void MeshCuts::sort() {
  if (cuts_.size() == 2) return;
  std::sort(cuts_.begin(), cuts_.end());
  cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
}

void MeshCuts::use(size_t mesh_dim, const SubAxis& sub_axis) {
  if (static_cast<size_t>(sub_axis.mesh_dim) != mesh_dim) return;
  cuts_.push_back(sub_axis.before);
  cuts_.push_back(sub_axis.before * sub_axis.size);
}

}  // namespace meshplan
