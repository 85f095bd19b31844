#include "verify/step_rules.h"

#include <algorithm>

#include "base/int_math.h"
#include "verify/coverage.h"
#include "verify/figures.h"
#include "verify/op_rules.h"

namespace meshplan::verification {
namespace {

std::string name_of(const Digit& digit, const Mesh& mesh, std::span<const int64_t> mesh_shape) {
  return to_text(SubAxis{digit.mesh_dim, digit.before, digit.size}, dim_names(mesh), mesh_shape);
}

std::string role_text(int32_t role) {
  if (role == role_free) return "R";
  return is_pending_role(role) ? to_text(partial(op_of_role(role))) : to_text(shard(role));
}

// mesh_dims: parts of the mesh, in mesh order, none twice.
Problem check_mesh_dims(const Step& step, std::span<const int64_t> mesh_shape) {
  if (step.mesh_dims.empty()) return std::string("mesh_dims is empty");
  for (size_t i = 0; i < step.mesh_dims.size(); ++i) {
    const SubAxis& sub_axis = step.mesh_dims[i];
    if (!sub_axis_in_mesh(sub_axis, mesh_shape))
      return "mesh_dims entry " + std::to_string(i) + " is not a part of the mesh";
    if (i == 0) continue;
    const SubAxis& last = step.mesh_dims[i - 1];
    // Of a dim of size 1 nothing is left.
    if (sub_axis.mesh_dim < last.mesh_dim ||
        (sub_axis.mesh_dim == last.mesh_dim &&
         (last.size == 1 || sub_axis.before < last.before * last.size))) {
      return "mesh_dims entries " + std::to_string(i - 1) + " and " + std::to_string(i) +
             " are not in mesh order or overlap";
    }
  }
  return std::nullopt;
}

bool lists_every_dim(std::span<const SubAxis> sub_axes, std::span<const int64_t> mesh_shape) {
  std::vector<int64_t> listed(mesh_shape.size(), 1);
  for (const SubAxis& sub_axis : sub_axes) listed[sub_axis.mesh_dim] *= sub_axis.size;
  return std::equal(listed.begin(), listed.end(), mesh_shape.begin());
}

// What is asked of far holders, though some are near.
Problem check_far_share(const Step& step) {
  if (step.far_64ths == 0) return std::nullopt;
  const std::string has = std::string(to_text(step.op)) + " with far_64ths: ";
  if (step.op != Op::exchange) return has + "only an exchange asks far holders";
  if (step.far_64ths < 0 || step.far_64ths > most_far_64ths) {
    return "an exchange with far_64ths " + std::to_string(step.far_64ths) + ": expected 1 to " +
           std::to_string(most_far_64ths);
  }
  if (step.phases != 1) return has + "its two phases ask the nearest holders alone";
  if (step.whole_pieces) return has + "it cuts its pieces, yet it has whole_pieces";
  if (step.reduce_op) return has + "it reduces nothing, yet it has a reduce op";
  return std::nullopt;
}

// Attributes that only some ops have.
Problem check_attributes(const Step& step) {
  if (step.phases != 1 && (step.op != Op::exchange || step.phases != 2)) {
    return std::string(to_text(step.op)) + " with " + std::to_string(step.phases) +
           " phases: an exchange has 1 or 2, all others 1";
  }
  if (step.chunks != 1 && step.phases != 2) {
    return std::string(to_text(step.op)) + " of " + std::to_string(step.phases) + " phase in " +
           std::to_string(step.chunks) + " chunks: only two phases are pipelined";
  }
  if (step.chunks < 1 || step.chunks > most_chunks) {
    return "an exchange in " + std::to_string(step.chunks) + " chunks: they are 1 to " +
           std::to_string(most_chunks);
  }
  if (step.phases == 2 && step.reduce_op)
    return std::string("an exchange of two phases reduces nothing, yet it has a reduce op");
  if (step.phases == 2 && step.whole_pieces)
    return std::string("an exchange of two phases cuts its pieces, yet it has whole_pieces");
  if (step.fetched_by_all && step.phases != 2)
    return std::string(to_text(step.op)) + " with fetched_by_all: only two phases fetch for others";
  if (step.laps != 1 && (step.phases != 2 || step.laps != 2)) {
    return std::string(to_text(step.op)) + " with " + std::to_string(step.laps) +
           " laps: 1, or 2 in two phases";
  }
  if (step.at_once != 0 && (step.chunks == 1 || step.at_once < 0 || step.at_once > most_at_once)) {
    return std::string(to_text(step.op)) + " with at_once " + std::to_string(step.at_once) +
           ": 1 to " + std::to_string(most_at_once) + " of chunks, or none";
  }
  if (auto problem = check_far_share(step)) return problem;
  if (step.whole_pieces && step.op != Op::exchange)
    return std::string(to_text(step.op)) + " with whole_pieces: only an exchange cuts pieces";
  if (!rule_of(step.op).may_reduce && step.reduce_op)
    return std::string(to_text(step.op)) + " with reduce op " + to_text(*step.reduce_op) +
           ": it reduces nothing";
  if (!step.reduce_op && step.scale_divisor != 1) {
    return "a scale of 1/" + std::to_string(step.scale_divisor) + " without a reduce op";
  }
  return std::nullopt;
}

// A step that changes no digit: it must be about mesh dims of size 1, and name exactly those that
// it changes.
Problem check_unit_step(const Mesh& mesh, std::span<const int64_t> mesh_shape, const State& before,
                        const Step& step) {
  bool changes = false;
  std::vector<PendingSubAxis> reduced;
  for (size_t m = 0; m < mesh_shape.size(); ++m) {
    if (mesh_shape[m] != 1) continue;
    const auto dim = static_cast<int32_t>(m);
    const bool listed =
        std::any_of(step.mesh_dims.begin(), step.mesh_dims.end(),
                    [&](const SubAxis& sub_axis) { return sub_axis.mesh_dim == dim; });
    const int32_t from = role_of_unit_dim(before, dim);
    const int32_t to = role_of_unit_dim(step.state, dim);
    if (from == to) continue;
    changes = true;
    if (!listed)
      return "mesh dim " + mesh.dims[m].name + " changes from " + role_text(from) + " to " +
             role_text(to) + " but is not in mesh_dims";
    // One rank's value is any reduction of itself, and holds all of any shard.
    const bool becomes_pending = step.op == Op::to_partial && is_pending_role(to);
    if (!becomes_pending && !may_change(step.op, step.reduce_op.has_value(), from, to)) {
      return std::string(to_text(step.op)) + " cannot take mesh dim " + mesh.dims[m].name +
             " from " + role_text(from) + " to " + role_text(to);
    }
    if (is_pending_role(from) && !becomes_pending)
      reduced.push_back({{dim, 1, 1}, op_of_role(from)});
  }
  if (!changes) return std::string("it changes nothing");
  for (const SubAxis& sub_axis : step.mesh_dims) {
    if (sub_axis.size > 1)
      return "mesh dim " + mesh.dims[sub_axis.mesh_dim].name +
             " is in mesh_dims but does not change";
  }
  return check_reduction(reduced, step);
}

// Op, roles and who is senders, for a step that changes digits.
Problem check_roles(const Mesh& mesh, std::span<const int64_t> mesh_shape, const Digits& digits,
                    const DigitState& before, const DigitState& after, DigitSet changed,
                    const Step& step) {
  const OpRule rule = rule_of(step.op);
  const DigitSet listed = digits_of(step.mesh_dims, digits);
  for (size_t i = 0; i < digits.count; ++i) {
    const int32_t from = before.role[i];
    const int32_t to = after.role[i];
    auto says = [&] { return "mesh dim " + name_of(digits.list[i], mesh, mesh_shape) + " "; };
    if (!has(changed, i)) {
      if (step.op != Op::exchange && has(listed, i))
        return says() + "is in mesh_dims but keeps " + role_text(from);
      continue;
    }
    const bool sliced_within =
        rule.slices_too && !has(listed, i) && from == role_free && is_shard_role(to);
    if (sliced_within) continue;
    if (!has(listed, i))
      return says() + "changes from " + role_text(from) + " to " + role_text(to) +
             " but is not in mesh_dims";
    if (!may_change(step.op, step.reduce_op.has_value(), from, to)) {
      return std::string(to_text(step.op)) + " cannot take mesh dim " +
             name_of(digits.list[i], mesh, mesh_shape) + " from " + role_text(from) + " to " +
             role_text(to);
    }
  }
  return std::nullopt;
}

// The pending sub-axes before that are no longer pending after, as digits.
std::vector<PendingSubAxis> reduced_sub_axes(const Digits& digits, const DigitState& before,
                                             DigitSet reduced) {
  std::vector<PendingSubAxis> sub_axes;
  for (size_t i = 0; i < digits.count; ++i) {
    const Digit& digit = digits.list[i];
    if (has(reduced, i))
      sub_axes.push_back({{digit.mesh_dim, digit.before, digit.size}, op_of_role(before.role[i])});
  }
  return sub_axes;
}

// An exchange between states that cut a mesh dim at places that do not divide one another (2 and 3
// of 6): any shards may become any other shards. What is pending stays or is reduced, by parts.
Problem check_exchange_of_unlike_parts(std::span<const int64_t> mesh_shape, const State& before,
                                       const Step& step) {
  const auto pending = pending_digits(mesh_shape, before, step.state);
  if (!pending) {
    return std::string(
        "the parts of a mesh dim pending before it and after it do not divide one another");
  }
  const DigitState& from = pending->before;
  const DigitState& to = pending->after;
  for (size_t i = 0; i < pending->digits.count; ++i) {
    if (has(to.pending, i) && from.role[i] != to.role[i])
      return "an exchange cannot make " + role_text(to.role[i]) + " of " + role_text(from.role[i]);
  }
  return check_reduction(reduced_sub_axes(pending->digits, from, from.pending & ~to.pending), step);
}

// Where every digit has the same role in both.
bool same_lists(const DigitState& a, const DigitState& b) {
  return a.listed == b.listed &&
         std::equal(a.order.begin(), a.order.begin() + a.listed, b.order.begin());
}

// A step that changes digits or their order: op, roles, reduction, then whether every rank finds
// its data.
Problem check_data(const Mesh& mesh, std::span<const int64_t> mesh_shape,
                   std::span<const int64_t> tensor_shape, const Digits& digits,
                   const DigitState& before, const DigitState& after, DigitSet changed,
                   const Step& step) {
  if (auto problem = check_roles(mesh, mesh_shape, digits, before, after, changed, step))
    return problem;
  if (auto problem =
          check_reduction(reduced_sub_axes(digits, before, before.pending & ~after.pending), step))
    return problem;
  // In an exchange a rank may receive from every rank with its coordinates on what stays pending,
  // and those hold the whole tensor together.
  if (step.op == Op::exchange) return std::nullopt;
  if (std::any_of(tensor_shape.begin(), tensor_shape.end(), [](int64_t n) { return n == 0; }))
    return std::nullopt;
  const bool receives = rule_of(step.op).receives;
  for (size_t d = 0; d < tensor_shape.size(); ++d) {
    if (auto problem = check_covered(digits, before.shard_list(d), after.shard_list(d),
                                     receives ? changed : 0, tensor_shape[d])) {
      return "tensor dim " + std::to_string(d) + ": " + *problem;
    }
  }
  return std::nullopt;
}

}  // namespace

Problem check_reduction(std::span<const PendingSubAxis> reduced, const Step& step) {
  if (reduced.empty()) {
    if (rule_of(step.op).must_reduce) return std::string(to_text(step.op)) + " reduces nothing";
    if (step.reduce_op)
      return std::string("reduce op ") + to_text(*step.reduce_op) +
             " is set, but nothing pending is reduced";
    return std::nullopt;
  }
  if (!step.reduce_op) return std::string("it reduces without a reduce op");
  int64_t divisor = 1;
  ReduceOp op = ReduceOp::avg;
  for (const PendingSubAxis& pending : reduced) {
    if (pending.op == ReduceOp::avg) {
      divisor = saturating_mul(divisor, pending.sub_axis.size);
    } else {
      op = pending.op;
    }
  }
  if (op == ReduceOp::avg) {
    if (step.reduce_op == ReduceOp::avg && step.scale_divisor == 1) return std::nullopt;
    op = ReduceOp::sum;
  }
  if (step.reduce_op != op)
    return std::string("reduce op ") + to_text(*step.reduce_op) + " where " + to_text(op) +
           " is asked for";
  if (step.scale_divisor != divisor) {
    return "scale 1/" + std::to_string(step.scale_divisor) + " where the averages ask for 1/" +
           std::to_string(divisor);
  }
  return std::nullopt;
}

Problem check_step(const Mesh& mesh, std::span<const int64_t> mesh_shape,
                   std::span<const int64_t> tensor_shape, const State& before, const Step& step) {
  if (auto problem = check_state(step.state, mesh_shape, tensor_shape.size()))
    return "the state after it: " + *problem;
  if (auto problem = check_mesh_dims(step, mesh_shape)) return problem;
  if (auto problem = check_attributes(step)) return problem;
  if (step.at_once != 0) {
    return std::string(to_text(step.op)) + " with at_once " + std::to_string(step.at_once) +
           " on one mesh: expected none, only an exchange from one mesh to another has shifts";
  }
  if (step.op == Op::exchange && !lists_every_dim(step.mesh_dims, mesh_shape))
    return std::string("an exchange lists every mesh dim");
  const State* const states[] = {&before, &step.state};
  Digits digits;
  if (!make_digits(mesh_shape, states, step.mesh_dims, digits)) {
    if (step.op == Op::exchange) return check_exchange_of_unlike_parts(mesh_shape, before, step);
    return std::string(
        "the parts of a mesh dim before it, after it and in mesh_dims do not divide one another");
  }
  DigitState from;
  DigitState to;
  to_digits(before, digits, from);
  to_digits(step.state, digits, to);
  DigitSet changed = 0;
  for (size_t i = 0; i < digits.count; ++i) {
    if (from.role[i] != to.role[i]) changed |= digit_bit(i);
  }
  Problem problem =
      changed == 0 && same_lists(from, to)
          ? check_unit_step(mesh, mesh_shape, before, step)
          : check_data(mesh, mesh_shape, tensor_shape, digits, from, to, changed, step);
  return problem ? problem : check_moves(digits, mesh_shape, from, to, before, step);
}

Problem check_crossing(std::span<const int64_t> src_mesh_shape,
                       std::span<const int64_t> dst_mesh_shape, size_t tensor_rank,
                       const State& before, const Step& step) {
  if (step.op != Op::exchange)
    return std::string(to_text(step.op)) +
           " from one mesh to another: only an exchange crosses meshes";
  if (auto problem = check_state(step.state, dst_mesh_shape, tensor_rank))
    return "the state after it: " + *problem;
  if (auto problem = check_mesh_dims(step, dst_mesh_shape)) return problem;
  if (auto problem = check_attributes(step)) return problem;
  if (!lists_every_dim(step.mesh_dims, dst_mesh_shape))
    return std::string("an exchange across meshes lists every mesh dim of the target's mesh");
  if (step.src || step.dst || step.tensor_dim || !step.moves.empty())
    return std::string(
        "an exchange across meshes names no src, dst, tensor_dim or moves: the mesh dims before it "
        "are others");
  if (!step.state.partial.empty())
    return std::string("nothing pending can cross from one mesh to another");
  std::vector<PendingSubAxis> reduced;
  for (const PendingSubAxis& pending : before.partial) {
    if (src_mesh_shape[pending.sub_axis.mesh_dim] > 1) reduced.push_back(pending);
  }
  return check_reduction(reduced, step);
}

}  // namespace meshplan::verification
