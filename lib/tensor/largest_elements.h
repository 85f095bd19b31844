// How much of a tensor a rank has at most.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/state.h"

namespace meshplan {

// Elements of the largest box of the state (tensor/box.h); held at 2^63 - 1.
[[nodiscard]] int64_t largest_elements(const State& state, std::span<const int64_t> shape,
                                       std::span<const int64_t> mesh_shape);

// Bytes of it, held alike.
[[nodiscard]] int64_t largest_bytes(const State& state, const TensorMeta& tensor,
                                    std::span<const int64_t> mesh_shape);

}  // namespace meshplan
