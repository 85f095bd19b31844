// Meshes and topologies that tests and benchmarks ask questions on.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "mesh/mesh.h"
#include "plan/plan.h"

namespace meshplan::test {

// `ranks`: row-major; empty: from 0 on.
inline Mesh mesh_of(const std::vector<int64_t>& sizes, std::vector<int64_t> ranks = {}) {
  std::vector<std::pair<std::string, int64_t>> dims;
  for (size_t i = 0; i < sizes.size(); ++i) dims.emplace_back(std::string(1, static_cast<char>('a' + i)), sizes[i]);
  return *make_mesh("mesh", dims, std::move(ranks));
}

// NVLink 370 GB/s and 10 us, a NIC of 45 GB/s and 25 us.
inline Topology two_levels(int64_t inside, int64_t per_peer_ns) {
  Topology t;
  t.levels = {{"in", inside, 370'000, 10'000, per_peer_ns, 100}, {"out", 1'048'576, 45'000, 25'000, per_peer_ns, 100}};
  return t;
}

inline Topology one_level(int64_t latency_ns, int64_t per_peer_ns) {
  Topology t;
  t.levels = {{"link", 1'048'576, 100'000, latency_ns, per_peer_ns, 100}};
  return t;
}

}  // namespace meshplan::test
