// Questions about small meshes, and any arrangement of their sub-axes.
#pragma once

#include <algorithm>
#include <random>

#include "../cost/small_mesh.h"
#include "search/search_state.h"

namespace meshplan::test {

// A question on one mesh with every group allowed. What the problem refers to lives as long as
// this.
struct SmallQuestion {
  SmallQuestion(const std::vector<int64_t>& sizes, Topology of, TensorMeta tensor, std::vector<int64_t> ranks = {})
      : mesh(mesh_of(sizes, std::move(ranks))), topology(std::move(of)), levels(mesh, topology) {
    meshes.meshes = {mesh};
    options.groups = GroupPolicy::any;
    request.tensor = std::move(tensor);
    // Every tensor dim takes part: the first mesh dim shards the first and, in the target, the
    // last.
    request.src.shards.resize(request.tensor.shape.size());
    request.dst.shards.resize(request.tensor.shape.size());
    request.src.shards[0] = {{0, 1, sizes[0]}};
    request.dst.shards.back() = request.src.shards[0];
  }
  SmallQuestion(const SmallQuestion&) = delete;
  SmallQuestion& operator=(const SmallQuestion&) = delete;

  [[nodiscard]] std::optional<PlanProblem> problem() const {
    return make_problem(levels, {&meshes, nullptr, &request, &options}, request, request.dst);
  }

  Mesh mesh;
  MeshTable meshes;
  Topology topology;
  LevelMap levels;
  PlanOptions options;
  Request request;
};

// Sub-axes in `pending` stay out of the lists; each other one is in some list or in none.
inline SearchState random_state(const PlanProblem& p, uint16_t pending, std::mt19937_64& random) {
  SearchState s;
  s.pending = pending;
  for (int i = 0; i < p.sub_axes; ++i) {
    const auto d = static_cast<int>(random() % static_cast<uint64_t>(p.dims + 1));
    if ((pending >> i & 1) == 0 && d < p.dims) append(s, p.dims, d, static_cast<uint8_t>(i));
  }
  // A random order inside each list.
  for (int d = 0; d < p.dims; ++d) std::shuffle(s.sub_axis.begin() + s.begin_of(d), s.sub_axis.begin() + s.end_of(d), random);
  return s;
}

// In which an exchange between these states can be priced.
inline std::vector<ExchangeWay> ways_between(const PlanProblem& p, const SearchState& from, const SearchState& to) {
  std::vector<ExchangeWay> ways{ExchangeWay::one_phase};
  if (from.pending != to.pending) return ways;
  ways.push_back(ExchangeWay::two_phases);
  if (may_go(p, from, to, ExchangeWay::by_all)) ways.push_back(ExchangeWay::by_all);
  return ways;
}

}  // namespace meshplan::test
