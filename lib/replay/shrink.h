// A smaller tensor that every plan treats alike.
//
// Law: for every tensor dim and every shard order given, the small extent divides or leaves a remainder at the same places, the same shards
// are empty, and the cut points of all orders together stand in the same sequence, equal ones equal. So a redistribution that is right on
// the small shape moves the same pieces between the same ranks as on the large one.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/state.h"

namespace meshplan {

// A state that occurs on the way, and its mesh.
struct StateOnMesh {
  const State* state = nullptr;
  std::vector<int64_t> mesh_shape;
};

// Whether extents `a` and `b` of tensor dim `d` are alike under all states.
[[nodiscard]] bool same_pattern(int64_t a, int64_t b, size_t d, const std::vector<StateOnMesh>& states);

// The largest alike shape of at most `max_elements` elements that halving finds; the smallest alike shape where none is so small. Dims that
// nothing shards shrink to 1 at the end, others keep two elements a chunk where they can.
[[nodiscard]] std::vector<int64_t> shrink_shape(const std::vector<int64_t>& shape, const std::vector<StateOnMesh>& states,
                                                int64_t max_elements);

}  // namespace meshplan
