// How a tensor is distributed: which mesh dims (or parts of them) shard which tensor dim, in which
// order, and which have pending reductions.
//
//     mesh a 2 x b 4 x c 2, tensor [8, 8]
//     S(0)S(0)R         shards = {{a, b}, {}}    a cuts dim 0 in 2, then b cuts each half in 4
//     S(0)[1]S(0)[0]R   shards = {{b, a}, {}}    b first, then a: the shard order
//     P(sum)S(1)R       shards = {{}, {b}}, partial = {a: sum}
//     R{S(0):2,R:2}R    shards = {{b:(1)2}, {}}  the major factor 2 of b shards, the minor one not
//
// Meaning of a shard: start with [0, n). For each mesh dim of the order, of size s, with current
// width w and chunk c = ceil(w/s), coordinate j keeps [min(w, j*c), min(w, (j+1)*c)), as
// torch.chunk does. A run of consecutive sub-axes of one mesh dim that starts at its major end cuts
// at the same places as the whole dim: with p the product of the sizes of the run and still c =
// ceil(w/s), index i keeps [min(w, i*(s/p)*c), min(w, (i+1)*(s/p)*c)). A run that starts below the
// major end (whose major part shards elsewhere or replicates) cuts like a mesh dim of its own size.
//
// Two nested shards differ from one shard over the product of the sizes if the division is uneven:
// 10 over 2 and 2 is 3,2,3,2; 10 over 4 is 3,3,3,1.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"
#include "tensor/placement.h"

namespace meshplan {

// A factor of a mesh dim, of size `size`; `before` is the product of the factors that are more
// major. The whole dim is (1, dim size). The coordinate of dim coordinate j on it is (j / (dim size
// / (before * size))) % size.
struct SubAxis {
  int32_t mesh_dim = 0;
  int64_t before = 1;
  int64_t size = 1;
  bool operator==(const SubAxis&) const = default;
  auto operator<=>(const SubAxis&) const = default;
};
[[nodiscard]] inline int64_t sub_axis_coordinate(const SubAxis& sub_axis, int64_t dim_size,
                                                 int64_t dim_coordinate) {
  return dim_coordinate / (dim_size / (sub_axis.before * sub_axis.size)) % sub_axis.size;
}
// The product of their sizes: ranks that differ on these alone, or parts that they cut into.
[[nodiscard]] int64_t product_of_sizes(std::span<const SubAxis> sub_axes);
// "b" for the whole dim, "b:(1)2" for a part. `names` and `mesh_shape` have one entry per mesh dim.
[[nodiscard]] std::string to_text(const SubAxis& sub_axis, std::span<const std::string> names,
                                  std::span<const int64_t> mesh_shape);
[[nodiscard]] Result<SubAxis> parse_sub_axis(std::string_view text,
                                             std::span<const std::string> names,
                                             std::span<const int64_t> mesh_shape);

struct PendingSubAxis {
  SubAxis sub_axis;
  ReduceOp op = ReduceOp::sum;
  bool operator==(const PendingSubAxis&) const = default;
};

struct State {
  std::vector<std::vector<SubAxis>> shards;  // one list per tensor dim, major first
  std::vector<PendingSubAxis> partial;       // ascending by sub-axis
  bool operator==(const State&) const = default;
};

// One entry of src_order or dst_order in a spec: the mesh dims that shard `tensor_dim`, major to
// minor.
struct ShardOrder {
  int32_t tensor_dim = 0;
  std::vector<int32_t> mesh_dims;
  bool operator==(const ShardOrder&) const = default;
};

// The state with these placements, one per mesh dim, in default order unless given in `orders`.
// Strided shards become orders. Errors (bad_input): tensor dim out of range, an order that does not
// list exactly the mesh dims that shard its tensor dim, partials that may not mix, a strided shard
// without an equivalent order. Whether the dtype allows the reduction is checked elsewhere.
[[nodiscard]] Result<State> make_state(std::span<const Placement> placements,
                                       std::span<const int64_t> mesh_shape, size_t tensor_rank,
                                       std::span<const ShardOrder> orders = {});

// Whether both place every mesh dim of more than one rank alike.
[[nodiscard]] bool same_on_ranks(State a, State b);

// Whether every mesh dim has a single placement (false if parts of a mesh dim have different
// placements).
[[nodiscard]] bool has_whole_dims(const State& state, std::span<const int64_t> mesh_shape);
// Requires has_whole_dims.
[[nodiscard]] std::vector<Placement> placements_of(const State& state,
                                                   std::span<const int64_t> mesh_shape);
// Without what it says of mesh dims of one rank: of boxes and contributions the same.
[[nodiscard]] State without_single_ranks(State state);
// Whether the mesh dims of every tensor dim ascend.
[[nodiscard]] bool is_default_order(const State& state);
// One entry per tensor dim that several mesh dims shard, default order or not. Requires
// has_whole_dims.
[[nodiscard]] std::vector<ShardOrder> orders_of(const State& state);

// Every state with the same placements: all orders of the sub-axes within each tensor dim, the
// given one first; at most `limit` of them.
[[nodiscard]] std::vector<State> all_orders(const State& state, size_t limit = 5'000);

// PyTorch's text: "P(sum)RS(0)", "S(0)[0]S(0)[1]R", a split dim as "{S(0):2,R:2}". Law:
// parse_state(to_text(s)) == s. The order is not printed if a single sub-axis shards the tensor
// dim.
[[nodiscard]] std::string to_text(const State& state, std::span<const int64_t> mesh_shape);
void append_text(std::string& out, const State& state, std::span<const int64_t> mesh_shape);
[[nodiscard]] Result<State> parse_state(std::string_view text, std::span<const int64_t> mesh_shape,
                                        size_t tensor_rank);

struct TensorMeta {
  std::vector<int64_t> shape;  // elements; empty: a scalar
  DType dtype = DType::float32;
  bool operator==(const TensorMeta&) const = default;
};
// Bytes of the whole tensor, saturating at INT64_MAX (the spec reader refuses tensors whose bytes
// overflow).
[[nodiscard]] int64_t tensor_bytes(const TensorMeta& tensor);

}  // namespace meshplan
