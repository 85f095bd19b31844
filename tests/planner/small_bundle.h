// Bundles of two meshes, small enough to follow.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "cost/topology.h"
#include "planner/planner.h"

namespace meshplan {

inline Topology hosts_of(int64_t ranks, int64_t latency_ns) {
  Topology topology;
  topology.levels = {{"inside", ranks, 370'000, latency_ns, 0}, {"across", 1'048'576, 45'000, 2 * latency_ns, 0}};
  return topology;
}

// What a plan says of its spec where it has none.
inline const std::string no_spec = "sha256:" + std::string(64, '0');

using Dims = std::vector<std::pair<std::string, int64_t>>;

inline int64_t ranks_in(const Dims& dims) {
  int64_t ranks = 1;
  for (const auto& [name, size] : dims) ranks *= size;
  return ranks;
}

// One universe, its ranks in that order.
inline MeshTable one_root(const Dims& dims, const std::vector<int64_t>& ranks = {}) {
  MeshTable table;
  REQUIRE(add_root(table, "m", ranks_in(dims), ranks, dims).ok());
  return table;
}

inline MeshTable two_roots(const Dims& src, const Dims& dst, int64_t first_of_dst) {
  MeshTable table;
  REQUIRE(add_root(table, "train", ranks_in(src), {}, src).ok());
  std::vector<int64_t> ranks;
  for (int64_t i = 0; i < ranks_in(dst); ++i) ranks.push_back(first_of_dst + i);
  REQUIRE(add_root(table, "serve", ranks_in(dst), ranks, dst).ok());
  return table;
}

inline State state_of(const MeshTable& table, size_t mesh, const std::string& text, size_t dims) {
  auto state = parse_state(text, mesh_shape(table.meshes[mesh]), dims);
  REQUIRE_MESSAGE(state.ok(), text);
  return *state;
}

inline Request request_of(const MeshTable& table, const std::string& id, const std::vector<int64_t>& shape, const std::string& src,
                          const std::string& dst, int64_t count) {
  Request request;
  request.id = id;
  request.dst_mesh = table.meshes.size() > 1 ? 1 : 0;
  request.tensor = {shape, DType::bfloat16};
  request.src = state_of(table, 0, src, shape.size());
  request.dst = state_of(table, request.dst_mesh, dst, shape.size());
  request.count = count;
  return request;
}

// One bundle of all requests.
inline Plan planned(const MeshTable& table, const Topology& topology, const std::vector<Request>& requests, BundleRequest bundle,
                    PlanOptions options = {}) {
  bundle.id = "all";
  for (size_t i = 0; i < requests.size(); ++i) bundle.members.push_back(i);
  options.advice = false;
  PlanOutcome outcome = plan_requests(table, topology, requests, options, no_spec, {bundle});
  for (const PlanFailure& failure : outcome.failures) FAIL(failure.error.message);
  return std::move(outcome.plan);
}

inline double above_bound(const Plan& plan) {
  const BundleTotals& totals = plan.bundles.front().totals;
  return static_cast<double>(totals.predicted_ps) / static_cast<double>(totals.lower_bound_ps);
}

}  // namespace meshplan
