// A smaller tensor shape that is equivalent for a plan.
//
// Law: for every tensor dim and shard order, the small extent has remainders at the same places,
// the same shards are empty, and the cut points of all orders are in the same sequence, with the
// same ones equal. So a redistribution moves the same pieces between the same ranks on both shapes.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/state.h"

namespace meshplan {

// A state of the redistribution, and its mesh.
struct StateOnMesh {
  const State* state = nullptr;
  std::vector<int64_t> mesh_shape;
};

// Of a shape; held at 2^63 - 1.
[[nodiscard]] int64_t elements_of(const std::vector<int64_t>& shape);

// Whether extents `a` and `b` of tensor dim `d` are equivalent for all states.
[[nodiscard]] bool same_pattern(int64_t a, int64_t b, size_t d,
                                const std::vector<StateOnMesh>& states);

// The largest equivalent shape of at most `max_elements` elements found by halving; the smallest
// equivalent shape if none is that small. Dims that are not sharded shrink to 1 at the end, others
// keep two elements per chunk if possible.
[[nodiscard]] std::vector<int64_t> shrink_shape(const std::vector<int64_t>& shape,
                                                const std::vector<StateOnMesh>& states,
                                                int64_t max_elements);

}  // namespace meshplan
