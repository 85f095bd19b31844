// What one step moves over each level of a topology.
#pragma once

#include <array>
#include <cstdint>

namespace meshplan {

constexpr int max_levels = 8;  // the spec reader refuses topologies with more

// The most bytes that a rank sends or receives over each level, as fractions with a common
// denominator, and the most peers that it has there.
//
//     all_reduce of 4 B, 3 ranks of a host: each receives 2 x 2/3 of it: bytes 16, denominator 3
struct Traffic {
  std::array<int64_t, max_levels> bytes{};  // numerators
  int64_t denominator = 1;
  std::array<int64_t, max_levels> peers{};
  bool operator==(const Traffic&) const = default;
};

}  // namespace meshplan
