#include "verify/digits.h"

#include <algorithm>

namespace meshplan::verification {
namespace {

// Calls `visit` with every sub-axis of the state.
template <class Visit>
void each_sub_axis(const State& state, Visit visit) {
  for (const std::vector<SubAxis>& list : state.shards) {
    for (const SubAxis& sub_axis : list) visit(sub_axis);
  }
  for (const PendingSubAxis& pending : state.partial) visit(pending.sub_axis);
}

bool is_whole(const SubAxis& sub_axis, std::span<const int64_t> mesh_shape) {
  return sub_axis.before == 1 && sub_axis.size == mesh_shape[sub_axis.mesh_dim];
}

bool append_digit(Digits& digits, int32_t mesh_dim, int64_t before, int64_t size,
                  int64_t mesh_dim_size) {
  if (digits.count == max_digits) return false;
  digits.list[digits.count++] = {mesh_dim, before, size, mesh_dim_size};
  return true;
}

std::string place(const SubAxis& sub_axis) {
  return "mesh dim " + std::to_string(sub_axis.mesh_dim) + " part (" +
         std::to_string(sub_axis.before) + ")" + std::to_string(sub_axis.size);
}

// What is wrong with a state whose sub-axes lie in the mesh, by digits: mesh dims may be split.
Problem check_parts(const State& state, std::span<const int64_t> mesh_shape) {
  Digits digits;
  const State* const states[] = {&state};
  if (!make_digits(mesh_shape, states, {}, digits))
    return std::string("the parts of a mesh dim do not nest");
  DigitSet used = 0;
  // Mesh dims of size 1 among the first 64; beyond those a repeat changes no box.
  uint64_t used_unit_dims = 0;
  const SubAxis* twice = nullptr;
  each_sub_axis(state, [&](const SubAxis& sub_axis) {
    DigitSet set = digits_of({&sub_axis, 1}, digits);
    if ((used & set) != 0) twice = &sub_axis;
    used |= set;
    if (set == 0 && sub_axis.mesh_dim < 64) {
      if ((used_unit_dims >> sub_axis.mesh_dim & 1) != 0) twice = &sub_axis;
      used_unit_dims |= uint64_t{1} << sub_axis.mesh_dim;
    }
  });
  if (twice != nullptr) return place(*twice) + " is used twice";
  return std::nullopt;
}

}  // namespace

ShardList DigitState::shard_list(size_t tensor_dim) const {
  const auto dim = static_cast<int32_t>(tensor_dim);
  size_t start = 0;
  while (start < listed && role[order[start]] < dim) ++start;
  ShardList list{order.data() + start, 0, start < listed ? continues >> start : 0, 0};
  for (; start + list.count < listed && role[list.digits[list.count]] == dim; ++list.count)
    list.set |= digit_bit(list.digits[list.count]);
  return list;
}

bool sub_axis_in_mesh(const SubAxis& sub_axis, std::span<const int64_t> mesh_shape) {
  if (sub_axis.mesh_dim < 0 || static_cast<size_t>(sub_axis.mesh_dim) >= mesh_shape.size())
    return false;
  int64_t size = mesh_shape[sub_axis.mesh_dim];
  if (is_whole(sub_axis, mesh_shape)) return true;
  return sub_axis.before >= 1 && sub_axis.size > 1 && size % sub_axis.before == 0 &&
         size / sub_axis.before % sub_axis.size == 0;
}

bool make_digits(std::span<const int64_t> mesh_shape, std::span<const State* const> states,
                 std::span<const SubAxis> extra, Digits& digits) {
  digits.count = 0;
  bool whole = true;
  for (const State* state : states)
    each_sub_axis(
        *state, [&](const SubAxis& sub_axis) { whole = whole && is_whole(sub_axis, mesh_shape); });
  for (const SubAxis& sub_axis : extra) whole = whole && is_whole(sub_axis, mesh_shape);
  if (whole) {
    for (size_t m = 0; m < mesh_shape.size(); ++m) {
      if (mesh_shape[m] > 1 &&
          !append_digit(digits, static_cast<int32_t>(m), 1, mesh_shape[m], mesh_shape[m]))
        return false;
    }
    return true;
  }
  // (mesh dim, product of the digits before the cut)
  std::vector<std::pair<int32_t, int64_t>> cuts;
  auto add = [&](const SubAxis& sub_axis) {
    cuts.emplace_back(sub_axis.mesh_dim, sub_axis.before);
    cuts.emplace_back(sub_axis.mesh_dim, sub_axis.before * sub_axis.size);
  };
  for (const State* state : states) each_sub_axis(*state, add);
  for (const SubAxis& sub_axis : extra) add(sub_axis);
  for (size_t m = 0; m < mesh_shape.size(); ++m) {
    cuts.emplace_back(static_cast<int32_t>(m), 1);
    cuts.emplace_back(static_cast<int32_t>(m), mesh_shape[m]);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    auto [dim, before] = cuts[i];
    if (cuts[i + 1].first != dim) continue;
    if (cuts[i + 1].second % before != 0) return false;
    if (!append_digit(digits, dim, before, cuts[i + 1].second / before, mesh_shape[dim]))
      return false;
  }
  return true;
}

DigitSet digits_of(std::span<const SubAxis> sub_axes, const Digits& digits) {
  DigitSet set = 0;
  for (const SubAxis& sub_axis : sub_axes) {
    for (size_t i = 0; i < digits.count; ++i) {
      if (is_part_of(digits.list[i], sub_axis)) set |= digit_bit(i);
    }
  }
  return set;
}

void to_digits(const State& state, const Digits& digits, DigitState& out) {
  std::fill_n(out.role.begin(), digits.count, role_free);
  out.listed = 0;
  out.continues = 0;
  out.pending = 0;
  for (size_t d = 0; d < state.shards.size(); ++d) {
    const SubAxis* previous = nullptr;
    for (const SubAxis& sub_axis : state.shards[d]) {
      bool in_run = previous != nullptr && previous->mesh_dim == sub_axis.mesh_dim &&
                    previous->before * previous->size == sub_axis.before;
      for (size_t i = 0; i < digits.count; ++i) {
        if (!is_part_of(digits.list[i], sub_axis)) continue;
        if (in_run) out.continues |= uint64_t{1} << out.listed;
        in_run = true;
        out.order[out.listed++] = static_cast<uint8_t>(i);
        out.role[i] = static_cast<int32_t>(d);
      }
      previous = &sub_axis;
    }
  }
  for (const PendingSubAxis& pending : state.partial) {
    for (size_t i = 0; i < digits.count; ++i) {
      if (!is_part_of(digits.list[i], pending.sub_axis)) continue;
      out.role[i] = role_of(pending.op);
      out.pending |= digit_bit(i);
    }
  }
}

std::optional<PendingDigits> pending_digits(std::span<const int64_t> mesh_shape,
                                            const State& before, const State& after) {
  const State from{{}, before.partial};
  const State to{{}, after.partial};
  const State* const states[] = {&from, &to};
  std::optional<PendingDigits> pending(std::in_place);
  if (!make_digits(mesh_shape, states, {}, pending->digits)) return std::nullopt;
  to_digits(from, pending->digits, pending->before);
  to_digits(to, pending->digits, pending->after);
  return pending;
}

Problem check_state(const State& state, std::span<const int64_t> mesh_shape, size_t tensor_rank) {
  if (state.shards.size() != tensor_rank) {
    return "the state has " + std::to_string(state.shards.size()) +
           " shard lists for a tensor of rank " + std::to_string(tensor_rank);
  }
  const SubAxis* outside = nullptr;
  each_sub_axis(state, [&](const SubAxis& sub_axis) {
    if (outside == nullptr && !sub_axis_in_mesh(sub_axis, mesh_shape)) outside = &sub_axis;
  });
  if (outside != nullptr) return place(*outside) + " is not a part of the mesh";
  for (size_t i = 0; i < state.partial.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!may_mix(state.partial[i].op, state.partial[j].op)) {
        return std::string("pending ") + to_text(state.partial[i].op) + " and " +
               to_text(state.partial[j].op) + " may not mix";
      }
    }
  }
  if (mesh_shape.size() > 64) return check_parts(state, mesh_shape);
  bool whole = true;
  uint64_t used = 0;  // mesh dims
  const SubAxis* twice = nullptr;
  each_sub_axis(state, [&](const SubAxis& sub_axis) {
    whole = whole && is_whole(sub_axis, mesh_shape);
    if ((used >> sub_axis.mesh_dim & 1) != 0) twice = &sub_axis;
    used |= uint64_t{1} << sub_axis.mesh_dim;
  });
  if (!whole) return check_parts(state, mesh_shape);
  if (twice != nullptr) return place(*twice) + " is used twice";
  return std::nullopt;
}

int32_t role_of_unit_dim(const State& state, int32_t mesh_dim) {
  for (size_t d = 0; d < state.shards.size(); ++d) {
    for (const SubAxis& sub_axis : state.shards[d]) {
      if (sub_axis.mesh_dim == mesh_dim) return static_cast<int32_t>(d);
    }
  }
  for (const PendingSubAxis& pending : state.partial) {
    if (pending.sub_axis.mesh_dim == mesh_dim) return role_of(pending.op);
  }
  return role_free;
}

}  // namespace meshplan::verification
