// What one step moves over each level of a topology.
#pragma once

#include <array>
#include <cstdint>

namespace meshplan {

constexpr int max_levels = 8;  // the spec reader refuses topologies with more

// Bytes per rank over each level, as fractions with a common denominator, and peers per level.
struct Traffic {
  std::array<int64_t, max_levels> bytes{};  // numerators
  int64_t denominator = 1;
  std::array<int64_t, max_levels> peers{};
  bool operator==(const Traffic&) const = default;
};

}  // namespace meshplan
