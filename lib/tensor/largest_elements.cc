#include "tensor/largest_elements.h"

#include "base/int_math.h"
#include "tensor/box.h"

namespace meshplan {

int64_t largest_elements(const State& state, std::span<const int64_t> shape,
                         std::span<const int64_t> mesh_shape) {
  int64_t elements = 1;
  for (const int64_t side : largest_box(state, shape, mesh_shape))
    elements = saturating_mul(elements, side);
  return elements;
}

int64_t largest_bytes(const State& state, const TensorMeta& tensor,
                      std::span<const int64_t> mesh_shape) {
  return saturating_mul(element_bytes(tensor.dtype),
                        largest_elements(state, tensor.shape, mesh_shape));
}

}  // namespace meshplan
