// check_moves of figures.h: src, dst, tensor_dim and moves of a step against what its digits do.
#include "verify/figures.h"

namespace meshplan::verification {
namespace {

Placement placement_of_role(int32_t role) {
  if (role == role_free) return replicate();
  return is_pending_role(role) ? partial(op_of_role(role)) : shard(role);
}

// The one role that all of a sub-axis has; nullopt where its digits differ.
std::optional<int32_t> role_of_sub_axis(const Digits& digits, const DigitState& in_digits,
                                        const State& state, const SubAxis& sub_axis) {
  std::optional<int32_t> role;
  for (size_t i = 0; i < digits.count; ++i) {
    if (!is_part_of(digits.list[i], sub_axis)) continue;
    if (role && *role != in_digits.role[i]) return std::nullopt;
    role = in_digits.role[i];
  }
  return role ? role : role_of_unit_dim(state, sub_axis.mesh_dim);
}

// What the digits of one mesh do in a step, and whether the step says so.
struct DigitChange {
  const Digits& digits;
  const DigitState& before;
  const DigitState& after;
  const State& state_before;
  const Step& step;

  [[nodiscard]] Problem says(const SubAxis& sub_axis, const Placement& src,
                             const Placement& dst) const {
    const auto from = role_of_sub_axis(digits, before, state_before, sub_axis);
    const auto to = role_of_sub_axis(digits, after, step.state, sub_axis);
    if (from && to && placement_of_role(*from) == src && placement_of_role(*to) == dst)
      return std::nullopt;
    const std::string dim = "mesh dim " + std::to_string(sub_axis.mesh_dim);
    if (!from || !to)
      return dim + " is split, and its parts do not all go from " + to_text(src) + " to " +
             to_text(dst);
    return "it says that " + dim + " goes from " + to_text(src) + " to " + to_text(dst) +
           ", but it goes from " + to_text(placement_of_role(*from)) + " to " +
           to_text(placement_of_role(*to));
  }

  // Shards change places, and no mesh dim does anything else than before.
  [[nodiscard]] Problem changes_nothing() const {
    for (size_t i = 0; i < digits.count; ++i) {
      if (before.role[i] == after.role[i]) continue;
      return "mesh dim " + std::to_string(digits.list[i].mesh_dim) + " goes from " +
             to_text(placement_of_role(before.role[i])) + " to " +
             to_text(placement_of_role(after.role[i])) +
             ", but it has neither src and dst nor moves";
    }
    return std::nullopt;
  }

  // One src and dst for all mesh dims of the step.
  [[nodiscard]] Problem check_common() const {
    std::optional<int32_t> tensor_dim;
    if (is_shard(*step.src) != is_shard(*step.dst))
      tensor_dim = is_shard(*step.src) ? step.src->tensor_dim : step.dst->tensor_dim;
    if (step.tensor_dim != tensor_dim)
      return std::string("tensor_dim is not the one that its src and dst name");
    if (step.op != Op::exchange) {
      for (const SubAxis& sub_axis : step.mesh_dims) {
        if (auto problem = says(sub_axis, *step.src, *step.dst)) return problem;
      }
      return std::nullopt;
    }
    // Src and dst are of those mesh dims of an exchange that change; where none does, shards change
    // places under one src and dst.
    for (size_t i = 0; i < digits.count; ++i) {
      const Digit& digit = digits.list[i];
      if (before.role[i] == after.role[i]) continue;
      if (auto problem = says({digit.mesh_dim, digit.before, digit.size}, *step.src, *step.dst))
        return problem;
    }
    return std::nullopt;
  }

  // One move for each mesh dim that changes.
  [[nodiscard]] Problem check_each(std::span<const int64_t> mesh_shape) const {
    DigitSet named = 0;
    for (size_t i = 0; i < step.moves.size(); ++i) {
      const Move& move = step.moves[i];
      if (!sub_axis_in_mesh(move.sub_axis, mesh_shape))
        return "move " + std::to_string(i) + " is not of a part of the mesh";
      if (i > 0 && !(step.moves[i - 1].sub_axis < move.sub_axis))
        return "moves " + std::to_string(i - 1) + " and " + std::to_string(i) + " are out of order";
      if (auto problem = says(move.sub_axis, move.src, move.dst)) return problem;
      named |= digits_of({&move.sub_axis, 1}, digits);
    }
    for (size_t i = 0; i < digits.count; ++i) {
      if (before.role[i] == after.role[i] || has(named, i)) continue;
      return "its moves leave out mesh dim " + std::to_string(digits.list[i].mesh_dim);
    }
    return std::nullopt;
  }
};

}  // namespace

Problem check_moves(const Digits& digits, std::span<const int64_t> mesh_shape,
                    const DigitState& before, const DigitState& after, const State& state_before,
                    const Step& step) {
  const DigitChange change{digits, before, after, state_before, step};
  if (!step.moves.empty()) {
    if (step.src || step.dst || step.tensor_dim)
      return std::string("it has both moves and a common src, dst or tensor_dim");
    return change.check_each(mesh_shape);
  }
  if (step.src && step.dst) return change.check_common();
  const bool says_nothing = !step.src && !step.dst && !step.tensor_dim;
  if (step.op != Op::exchange || !says_nothing)
    return std::string("it has neither src and dst nor moves");
  return change.changes_nothing();
}

}  // namespace meshplan::verification
