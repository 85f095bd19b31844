// Digits: the mesh dims of one mesh, cut wherever the states at hand cut them.
//
//     mesh a 2 x b 4, before S(0) on b, after S(0) on b:(1)2        digits  a = 2, b0 = 2, b1 = 2
//     before: dim 0 = [b0 b1], after: dim 0 = [b0], b1 free         the step changes b1 only
//
// A rank is one value of every digit. Each digit shards one tensor dim, holds a pending reduction,
// or is free (copies); what a step may do and who holds what are questions about digits, never
// about ranks. Digits have size > 1: there are at most 62 of them in any mesh, so sets of digits
// are 64-bit masks. Mesh dims of size 1 have no digit, as they make no difference to any box.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tensor/state.h"

namespace meshplan::verification {

// What is wrong, as text without the place; nullopt where nothing is.
using Problem = std::optional<std::string>;

using DigitSet = uint64_t;
constexpr size_t max_digits = 64;
[[nodiscard]] constexpr DigitSet digit_bit(size_t digit) { return DigitSet{1} << digit; }
[[nodiscard]] constexpr bool has(DigitSet set, size_t digit) { return (set >> digit & 1) != 0; }

struct Digit {
  int32_t mesh_dim;
  int64_t before;  // product of the sizes of the more major digits of its mesh dim
  int64_t size;
  int64_t mesh_dim_size;
};

// Whether the digit is the sub-axis or one of its factors.
[[nodiscard]] inline bool is_part_of(const Digit& digit, const SubAxis& sub_axis) {
  return digit.mesh_dim == sub_axis.mesh_dim && digit.before >= sub_axis.before &&
         digit.before < sub_axis.before * sub_axis.size;
}

// Only the first `count` entries mean anything; the others are never written, as clearing them
// would cost more than most proofs.
struct Digits {
  std::array<Digit, max_digits> list;
  size_t count = 0;
};

// The digits that shard one tensor dim, major first. Bit i of `continues`: entry i is of the same
// run as entry i-1 (tensor/state.h: a run is consecutive sub-axes of one mesh dim).
struct ShardList {
  const uint8_t* digits = nullptr;
  size_t count = 0;
  uint64_t continues = 0;
  DigitSet set = 0;
};

// What a digit does in a state: free, the tensor dim that it shards, or below that a pending
// reduction.
constexpr int32_t role_free = -1;
[[nodiscard]] constexpr int32_t role_of(ReduceOp op) { return -2 - static_cast<int32_t>(op); }
[[nodiscard]] constexpr bool is_pending_role(int32_t role) { return role <= -2; }
[[nodiscard]] constexpr bool is_shard_role(int32_t role) { return role >= 0; }
[[nodiscard]] constexpr ReduceOp op_of_role(int32_t role) {
  return static_cast<ReduceOp>(-2 - role);
}

// A state in digits. Of `order` the first `listed` entries mean something, of `role` one a digit.
struct DigitState {
  std::array<uint8_t, max_digits> order;  // the shard lists of all tensor dims, one after the other
  std::array<int32_t, max_digits> role;
  size_t listed = 0;
  uint64_t continues = 0;
  DigitSet pending = 0;

  [[nodiscard]] ShardList shard_list(size_t tensor_dim) const;
};

// Whether every sub-axis names a part of the mesh (a whole dim, or a factor of size > 1), every
// part of a mesh dim is used at most once, the factors of a mesh dim nest, pending kinds may mix
// and there is one list a tensor dim.
[[nodiscard]] Problem check_state(const State& state, std::span<const int64_t> mesh_shape,
                                  size_t tensor_rank);

// The digits that serve all the lists of sub-axes at once; false where the cuts of a mesh dim do
// not divide one another (2 and 3 of 6). The states must have passed check_state; `extra` sub-axes
// must lie in the mesh.
[[nodiscard]] bool make_digits(std::span<const int64_t> mesh_shape,
                               std::span<const State* const> states, std::span<const SubAxis> extra,
                               Digits& digits);

// The state written in `digits`, which were made for it.
void to_digits(const State& state, const Digits& digits, DigitState& out);

// What is pending before and after a step on one mesh, in digits of its own: shards may cut mesh
// dims at places that do not divide one another. nullopt where what is pending does so, too.
struct PendingDigits {
  Digits digits;
  DigitState before;
  DigitState after;
};
[[nodiscard]] std::optional<PendingDigits> pending_digits(std::span<const int64_t> mesh_shape,
                                                          const State& before, const State& after);

// The digits of some sub-axes, for which `digits` were made.
[[nodiscard]] DigitSet digits_of(std::span<const SubAxis> sub_axes, const Digits& digits);

// Whether the sub-axis lies in the mesh: a mesh dim, or a factor of size > 1 whose place divides
// the dim.
[[nodiscard]] bool sub_axis_in_mesh(const SubAxis& sub_axis, std::span<const int64_t> mesh_shape);

// What a mesh dim of size 1 does in a state, as a role: its own question, as it has no digit.
[[nodiscard]] int32_t role_of_unit_dim(const State& state, int32_t mesh_dim);

}  // namespace meshplan::verification
