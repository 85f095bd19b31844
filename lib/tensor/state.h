// How a tensor is spread: which parts of which mesh dims shard which tensor dim, in which order, and which hold pending reductions.
//
//     mesh a 2 x b 4 x c 2, tensor [8, 8]
//     S(0)S(0)R             shards = {{a, b}, {}}      a cuts dim 0 in 2, then b cuts each half in 4      (default: ascending)
//     S(0)[1]S(0)[0]R       shards = {{b, a}, {}}      b first: the shard order, printed where several mesh dims shard one tensor dim
//     P(sum)S(1)R           shards = {{}, {b}}, partial = {a: sum}
//     R{S(0):2,R:2}R        shards = {{b:(1)2}, {}}    only the factor 2 of b that is major; the other factor 2 holds copies
//
// Meaning of a shard (PLANNING.md): start with [0, n); for each mesh dim of the order, of size s, with w the current width and c =
// ceil(w/s), coordinate j keeps [min(w, j*c), min(w, (j+1)*c)). A run of consecutive atoms of one mesh dim that starts at its major end
// acts as the mesh dim itself cut short: with p the product of the run's sizes and c = ceil(w/s) still, index i keeps [min(w, i*(s/p)*c),
// min(w, (i+1)*(s/p)*c)). A run that starts below the major end (its upper part elsewhere or free) acts as a mesh dim of its own size.
//
// What it is not: two nested shards are not one shard over the product when the division is uneven: 10 over 2x2 is 3,2,3,2; over 4 it is
// 3,3,3,1.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"
#include "tensor/placement.h"

namespace meshplan {

// A factor of a mesh dim: `size` consecutive-digit values after the factors whose product is `before`. The whole dim: before 1, size its
// size. Coordinate of rank coordinate j on it: (j / (dim size / (before * size))) % size.
struct Atom {
  int32_t mesh_dim = 0;
  int64_t before = 1;
  int64_t size = 1;
  bool operator==(const Atom&) const = default;
  auto operator<=>(const Atom&) const = default;
};
[[nodiscard]] inline int64_t atom_coordinate(const Atom& atom, int64_t dim_size, int64_t dim_coordinate) {
  return dim_coordinate / (dim_size / (atom.before * atom.size)) % atom.size;
}
// "b" for the whole dim, "b:(1)2" for a part. `names` and `mesh_shape` run over mesh dims.
[[nodiscard]] std::string to_text(const Atom& atom, std::span<const std::string> names, std::span<const int64_t> mesh_shape);
[[nodiscard]] Result<Atom> parse_atom(std::string_view text, std::span<const std::string> names, std::span<const int64_t> mesh_shape);

struct PendingAtom {
  Atom atom;
  ReduceOp op = ReduceOp::sum;
  bool operator==(const PendingAtom&) const = default;
};

struct State {
  std::vector<std::vector<Atom>> shards;  // one list per tensor dim, major first
  std::vector<PendingAtom> partial;       // ascending by atom
  bool operator==(const State&) const = default;
};

// One entry of a spec's src_order or dst_order: mesh dims that shard `tensor_dim`, major to minor.
struct ShardOrder {
  int32_t tensor_dim = 0;
  std::vector<int32_t> mesh_dims;
  bool operator==(const ShardOrder&) const = default;
};

// The state of whole-dim placements, one per mesh dim, in default order except where `orders` says otherwise. Strided shards are decoded.
// Errors (bad_input): tensor dim out of range, an order that does not list exactly the mesh dims that shard its tensor dim, partials that
// may not mix, a strided shard that no order decodes, P(...) beside no meaning for bool dtypes is not checked here.
[[nodiscard]] Result<State> make_state(std::span<const Placement> placements, std::span<const int64_t> mesh_shape, size_t tensor_rank,
                                       std::span<const ShardOrder> orders = {});

// One placement per mesh dim; a mesh dim that is split between different placements has none and the function is false.
[[nodiscard]] bool has_whole_dims(const State& state, std::span<const int64_t> mesh_shape);
// Requires has_whole_dims.
[[nodiscard]] std::vector<Placement> placements_of(const State& state, std::span<const int64_t> mesh_shape);
// Every tensor dim's mesh dims ascend.
[[nodiscard]] bool is_default_order(const State& state);
// Entries for the tensor dims that several mesh dims shard (all of them, default or not). Requires has_whole_dims.
[[nodiscard]] std::vector<ShardOrder> orders_of(const State& state);

// Every state with the same placements: all orders of the atoms within each tensor dim, the given one first; at most `limit` of them.
[[nodiscard]] std::vector<State> all_orders(const State& state, size_t limit = 5'000);

// PyTorch's text: "P(sum)RS(0)", "S(0)[0]S(0)[1]R", a split dim as "{S(0):2,R:2}".
// Law: parse_state(to_text(s)) == s, except that a lone atom per tensor dim carries no order.
[[nodiscard]] std::string to_text(const State& state, std::span<const int64_t> mesh_shape);
void append_text(std::string& out, const State& state, std::span<const int64_t> mesh_shape);
[[nodiscard]] Result<State> parse_state(std::string_view text, std::span<const int64_t> mesh_shape, size_t tensor_rank);

struct TensorMeta {
  std::vector<int64_t> shape;  // elements; empty: a scalar
  DType dtype = DType::float32;
  bool operator==(const TensorMeta&) const = default;
};
// Bytes of the whole tensor, saturating at INT64_MAX (the spec reader refuses tensors whose bytes overflow).
[[nodiscard]] int64_t tensor_bytes(const TensorMeta& tensor);

}  // namespace meshplan
