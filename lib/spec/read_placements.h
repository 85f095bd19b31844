// Reads placements and shard orders into a state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "json/reader.h"
#include "mesh/mesh.h"
#include "tensor/state.h"

namespace meshplan {

// Where a state is read: the mesh and the tensor, where they could be read themselves.
struct StateContext {
  // null: reported already; each placement is checked by itself, and there is no state
  const Mesh* mesh = nullptr;
  const std::vector<int64_t>* mesh_shape = nullptr;
  const TensorMeta* tensor = nullptr;  // null: reported already; what needs it is not checked
  uint32_t any_order = 0;  // where the spec leaves the order to the planner; 0: it does not
};

// "src" or "dst" (one placement per mesh dim, or an object from mesh dim to placement) with its
// shard order (node 0: default).
[[nodiscard]] std::optional<State> read_state(Reader& reader, uint32_t placements, uint32_t order,
                                              std::string_view what, const StateContext& context);

// The placement that was probably meant by `text`: "Shard(0)" -> "S(0)", "P(mean)" -> "P(avg)".
// `tensor_rank` resolves negative dims; -1: unknown.
[[nodiscard]] std::optional<std::string> placement_meant(std::string_view text,
                                                         int64_t tensor_rank);

}  // namespace meshplan
