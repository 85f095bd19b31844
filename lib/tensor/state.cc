#include "tensor/state.h"

#include <algorithm>
#include <array>

#include "base/int_math.h"
#include "base/text.h"

namespace meshplan {
namespace {

std::string number(int64_t value) { return std::to_string(value); }

// The mesh dims that shard each tensor dim, in shard order. Mesh dims are inserted from the last to
// the first; mesh dim i is inserted after the later mesh dims whose sizes multiply to its split
// factor (1 for a plain shard: at the front).
Result<std::vector<std::vector<int32_t>>> decode_orders(std::span<const Placement> placements,
                                                        std::span<const int64_t> mesh_shape,
                                                        size_t tensor_rank) {
  std::vector<std::vector<int32_t>> orders(tensor_rank);
  for (size_t i = placements.size(); i-- > 0;) {
    const Placement& p = placements[i];
    if (p.kind != Placement::Kind::shard && p.kind != Placement::Kind::strided_shard) continue;
    if (static_cast<size_t>(p.tensor_dim) >= tensor_rank) {
      return bad_input(to_text(p) + " on mesh dim " + number(static_cast<int64_t>(i)) +
                       " shards tensor dim " + number(p.tensor_dim) + ", but the tensor has " +
                       number(static_cast<int64_t>(tensor_rank)) + " dims");
    }
    std::vector<int32_t>& order = orders[p.tensor_dim];
    int64_t before = 1;
    size_t at = 0;
    while (before != p.split_factor && at < order.size())
      before = saturating_mul(before, mesh_shape[order[at++]]);
    if (before != p.split_factor) {
      return bad_input(
          to_text(p) + " on mesh dim " + number(static_cast<int64_t>(i)) +
          " has no equivalent shard order: no leading run of the later mesh dims that shard tensor dim " +
          number(p.tensor_dim) + " multiplies to " + number(p.split_factor) +
          "; give the order as src_order or dst_order instead");
    }
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(at), static_cast<int32_t>(i));
  }
  return orders;
}

}  // namespace

int64_t product_of_sizes(std::span<const SubAxis> sub_axes) {
  int64_t product = 1;
  for (const SubAxis& sub_axis : sub_axes) product = saturating_mul(product, sub_axis.size);
  return product;
}

std::string to_text(const SubAxis& sub_axis, std::span<const std::string> names,
                    std::span<const int64_t> mesh_shape) {
  const auto dim = static_cast<size_t>(sub_axis.mesh_dim);
  if (sub_axis.before == 1 && sub_axis.size == mesh_shape[dim]) return names[dim];
  return names[dim] + ":(" + number(sub_axis.before) + ")" + number(sub_axis.size);
}

Result<SubAxis> parse_sub_axis(std::string_view text, std::span<const std::string> names,
                               std::span<const int64_t> mesh_shape) {
  auto whole = std::find(names.begin(), names.end(), text);
  if (whole != names.end()) {
    auto dim = static_cast<size_t>(whole - names.begin());
    return SubAxis{static_cast<int32_t>(dim), 1, mesh_shape[dim]};
  }
  size_t colon = text.rfind(":(");
  size_t close = text.rfind(')');
  if (colon != std::string_view::npos && close != std::string_view::npos && close > colon + 2) {
    auto part_of = std::find(names.begin(), names.end(), text.substr(0, colon));
    auto digits = [](std::string_view t) -> std::optional<int64_t> {
      int64_t value = 0;
      if (t.empty() || t.size() > 18) return std::nullopt;
      for (char c : t) {
        if (c < '0' || c > '9') return std::nullopt;
        value = value * 10 + (c - '0');
      }
      return value;
    };
    auto before = digits(text.substr(colon + 2, close - colon - 2));
    auto size = digits(text.substr(close + 1));
    if (part_of != names.end() && before && size && *before >= 1 && *size >= 1) {
      auto dim = static_cast<size_t>(part_of - names.begin());
      auto product = checked_mul(*before, *size);
      if (product && mesh_shape[dim] % *product == 0)
        return SubAxis{static_cast<int32_t>(dim), *before, *size};
      return bad_input("'" + std::string(text) + "' is not a part of mesh dim '" + names[dim] +
                       "': " + number(*before) + " times " + number(*size) +
                       " does not divide its size " + number(mesh_shape[dim]));
    }
  }
  return bad_input("'" + std::string(text) +
                   "' is neither a mesh dim nor a part of one such as b:(1)2");
}

Result<State> make_state(std::span<const Placement> placements, std::span<const int64_t> mesh_shape,
                         size_t tensor_rank, std::span<const ShardOrder> given) {
  if (placements.size() != mesh_shape.size()) {
    return bad_input(number(std::ssize(placements)) + " placements for a mesh of " +
                     number(std::ssize(mesh_shape)) + " dims: give one for each dim");
  }
  auto orders = decode_orders(placements, mesh_shape, tensor_rank);
  if (!orders) return orders.error();
  for (const ShardOrder& entry : given) {
    if (entry.tensor_dim < 0 || static_cast<size_t>(entry.tensor_dim) >= tensor_rank) {
      return bad_input("shard order of tensor dim " + number(entry.tensor_dim) +
                       ", but the tensor has " + number(static_cast<int64_t>(tensor_rank)) +
                       " dims");
    }
    std::vector<int32_t>& order = (*orders)[entry.tensor_dim];
    std::vector<int32_t> want = order;
    std::vector<int32_t> have = entry.mesh_dims;
    std::sort(want.begin(), want.end());
    std::sort(have.begin(), have.end());
    if (want != have) {
      return bad_input("the order of tensor dim " + number(entry.tensor_dim) + " lists " +
                       number(std::ssize(have)) + " mesh dims, but the placements shard it on " +
                       number(std::ssize(want)) + ": list exactly those, major to minor");
    }
    order = entry.mesh_dims;
  }
  State state;
  state.shards.resize(tensor_rank);
  for (size_t d = 0; d < tensor_rank; ++d) {
    for (int32_t dim : (*orders)[d]) state.shards[d].push_back({dim, 1, mesh_shape[dim]});
  }
  for (size_t i = 0; i < placements.size(); ++i) {
    if (!is_partial(placements[i])) continue;
    ReduceOp op = placements[i].op;
    for (const PendingSubAxis& other : state.partial) {
      if (may_mix(other.op, op)) continue;
      return bad_input(
          std::string("P(") + to_text(other.op) + ") on mesh dim " +
          number(other.sub_axis.mesh_dim) + " beside P(" + to_text(op) + ") on mesh dim " +
          number(static_cast<int64_t>(i)) +
          ": the result would depend on the order of the reductions; only sum and avg may be pending together");
    }
    state.partial.push_back({{static_cast<int32_t>(i), 1, mesh_shape[i]}, op});
  }
  return state;
}

namespace {

// One sub-axis with its placement, for listing the parts of a mesh dim in order.
struct Placed {
  SubAxis sub_axis;
  Placement placement;
  int64_t order = -1;  // position in its tensor dim's order
};

// The parts of every mesh dim, major first, gaps filled with R.
std::vector<std::vector<Placed>> parts_by_dim(const State& state,
                                              std::span<const int64_t> mesh_shape) {
  std::vector<std::vector<Placed>> parts(mesh_shape.size());
  for (size_t d = 0; d < state.shards.size(); ++d) {
    for (size_t i = 0; i < state.shards[d].size(); ++i) {
      const SubAxis& sub_axis = state.shards[d][i];
      parts[sub_axis.mesh_dim].push_back(
          {sub_axis, shard(static_cast<int32_t>(d)), static_cast<int64_t>(i)});
    }
  }
  for (const PendingSubAxis& p : state.partial)
    parts[p.sub_axis.mesh_dim].push_back({p.sub_axis, partial(p.op), -1});
  for (size_t m = 0; m < parts.size(); ++m) {
    std::vector<Placed>& list = parts[m];
    std::sort(list.begin(), list.end(),
              [](const Placed& a, const Placed& b) { return a.sub_axis < b.sub_axis; });
    std::vector<Placed> full;
    int64_t reached = 1;
    for (const Placed& p : list) {
      if (p.sub_axis.before > reached && p.sub_axis.before % reached == 0) {
        full.push_back(
            {{static_cast<int32_t>(m), reached, p.sub_axis.before / reached}, replicate(), -1});
      }
      full.push_back(p);
      reached = p.sub_axis.before * p.sub_axis.size;
    }
    if (reached < mesh_shape[m])
      full.push_back(
          {{static_cast<int32_t>(m), reached, mesh_shape[m] / reached}, replicate(), -1});
    // an unused mesh dim of size 1
    if (full.empty())
      full.push_back({{static_cast<int32_t>(m), 1, mesh_shape[m]}, replicate(), -1});
    list = std::move(full);
  }
  return parts;
}

// The placement of each mesh dim in a state where every sub-axis is a whole mesh dim, the common
// case. A fast path without allocation.
struct WholeDims {
  static constexpr size_t most = 8;
  std::array<Placement, most> placement;
  std::array<int32_t, most> order;  // position in its tensor dim's order
};

// False if some sub-axis is a part of a mesh dim or the mesh has more dims than `most`.
bool whole_dims(const State& state, std::span<const int64_t> mesh_shape, WholeDims& dims) {
  if (mesh_shape.size() > WholeDims::most) return false;
  std::fill_n(dims.placement.begin(), mesh_shape.size(), replicate());
  const auto put = [&](const SubAxis& sub_axis, const Placement& placement, size_t order) {
    const auto m = static_cast<size_t>(sub_axis.mesh_dim);
    if (sub_axis.size != mesh_shape[m] || !is_replicate(dims.placement[m])) return false;
    dims.placement[m] = placement;
    dims.order[m] = static_cast<int32_t>(order);
    return true;
  };
  for (size_t d = 0; d < state.shards.size(); ++d) {
    for (size_t i = 0; i < state.shards[d].size(); ++i) {
      if (!put(state.shards[d][i], shard(static_cast<int32_t>(d)), i)) return false;
    }
  }
  return std::all_of(
      state.partial.begin(), state.partial.end(),
      [&](const PendingSubAxis& pending) { return put(pending.sub_axis, partial(pending.op), 0); });
}

}  // namespace

bool same_on_ranks(State a, State b) {
  for (State* s : {&a, &b}) {
    for (std::vector<SubAxis>& list : s->shards)
      std::erase_if(list, [](const SubAxis& sub_axis) { return sub_axis.size == 1; });
    std::erase_if(s->partial, [](const PendingSubAxis& p) { return p.sub_axis.size == 1; });
  }
  return a == b;
}

bool has_whole_dims(const State& state, std::span<const int64_t> mesh_shape) {
  for (const auto& list : parts_by_dim(state, mesh_shape)) {
    if (list.size() != 1) return false;
  }
  return true;
}

std::vector<Placement> placements_of(const State& state, std::span<const int64_t> mesh_shape) {
  std::vector<Placement> placements;
  if (WholeDims whole; whole_dims(state, mesh_shape, whole)) {
    placements.assign(whole.placement.begin(),
                      whole.placement.begin() + static_cast<std::ptrdiff_t>(mesh_shape.size()));
    return placements;
  }
  for (const auto& list : parts_by_dim(state, mesh_shape)) {
    MESHPLAN_CHECK(list.size() == 1, "placements_of needs a state of whole mesh dims, not " +
                                         to_text(state, mesh_shape));
    placements.push_back(list[0].placement);
  }
  return placements;
}

State without_single_ranks(State state) {
  for (auto& order : state.shards)
    std::erase_if(order, [](const SubAxis& sub_axis) { return sub_axis.size == 1; });
  std::erase_if(state.partial, [](const PendingSubAxis& p) { return p.sub_axis.size == 1; });
  return state;
}

bool is_default_order(const State& state) {
  for (const auto& order : state.shards) {
    if (!std::is_sorted(order.begin(), order.end())) return false;
  }
  return true;
}

std::vector<ShardOrder> orders_of(const State& state) {
  std::vector<ShardOrder> orders;
  for (size_t d = 0; d < state.shards.size(); ++d) {
    if (state.shards[d].size() < 2) continue;
    ShardOrder order{static_cast<int32_t>(d), {}};
    for (const SubAxis& sub_axis : state.shards[d]) order.mesh_dims.push_back(sub_axis.mesh_dim);
    orders.push_back(std::move(order));
  }
  return orders;
}

std::vector<State> all_orders(const State& state, size_t limit) {
  std::vector<State> all{state};
  for (size_t d = 0; d < state.shards.size(); ++d) {
    std::vector<SubAxis> order = state.shards[d];
    std::sort(order.begin(), order.end());
    std::vector<State> more;
    do {
      if (order == state.shards[d]) continue;
      for (const State& s : all) {
        if (all.size() + more.size() == limit) break;
        more.push_back(s);
        more.back().shards[d] = order;
      }
    } while (all.size() + more.size() < limit && std::next_permutation(order.begin(), order.end()));
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

void append_text(std::string& out, const State& state, std::span<const int64_t> mesh_shape) {
  const auto print = [&](const Placement& placement, int64_t order) {
    append_text(out, placement);
    if (!is_shard(placement) || state.shards[placement.tensor_dim].size() < 2) return;
    if (order < 10) {
      const std::array<char, 3> text{'[', static_cast<char>('0' + order), ']'};
      out.append(text.data(), text.size());
      return;
    }
    out += '[';
    append_integer(out, order);
    out += ']';
  };
  if (WholeDims whole; whole_dims(state, mesh_shape, whole)) {
    for (size_t m = 0; m < mesh_shape.size(); ++m) print(whole.placement[m], whole.order[m]);
    return;
  }
  for (const auto& list : parts_by_dim(state, mesh_shape)) {
    if (list.size() == 1) {
      print(list[0].placement, list[0].order);
      continue;
    }
    out += '{';
    for (size_t i = 0; i < list.size(); ++i) {
      if (i != 0) out += ',';
      print(list[i].placement, list[i].order);
      out += ':';
      append_integer(out, list[i].sub_axis.size);
    }
    out += '}';
  }
}

std::string to_text(const State& state, std::span<const int64_t> mesh_shape) {
  std::string out;
  out.reserve(6 * mesh_shape.size());
  append_text(out, state, mesh_shape);
  return out;
}

namespace {

// Parses the text of a state; errors name the column.
class StateParser {
 public:
  StateParser(std::string_view text, std::span<const int64_t> mesh_shape, size_t tensor_rank)
      : text_(text), mesh_shape_(mesh_shape), slots_(tensor_rank) {}

  Result<State> parse() {
    for (size_t m = 0; m < mesh_shape_.size(); ++m) {
      if (peek() != '{') {
        if (auto done = placed(m, 1, mesh_shape_[m]); !done) return done.error();
        continue;
      }
      ++at_;
      int64_t before = 1;
      while (true) {
        size_t start = at_;
        // The size follows the placement, so read it first by looking ahead to the ':' of this
        // entry.
        size_t colon = text_.find(':', at_);
        if (colon == std::string_view::npos) return fail("':' and the size of a part");
        size_t after = colon + 1;
        int64_t part_size = 0;
        while (after < text_.size() && text_[after] >= '0' && text_[after] <= '9' &&
               part_size < (int64_t{1} << 40)) {
          part_size = part_size * 10 + (text_[after++] - '0');
        }
        auto end = checked_mul(before, part_size);
        if (part_size < 1 || !end || mesh_shape_[m] % *end != 0) {
          at_ = colon;
          return fail("a part whose size divides mesh dim " + number(static_cast<int64_t>(m)) +
                      " of size " + number(mesh_shape_[m]));
        }
        at_ = start;
        if (auto done = placed(m, before, part_size); !done) return done.error();
        if (at_ != colon) return fail("':' and the size of a part");
        at_ = after;
        before = *end;
        if (peek() == ',') {
          ++at_;
          continue;
        }
        break;
      }
      if (peek() != '}' || before != mesh_shape_[m])
        return fail("'}' after parts that multiply to " + number(mesh_shape_[m]));
      ++at_;
    }
    if (at_ != text_.size()) return fail("the end of the state");
    State state;
    state.shards.resize(slots_.size());
    for (size_t d = 0; d < slots_.size(); ++d) {
      auto& list = slots_[d];
      std::sort(list.begin(), list.end(),
                [](const auto& a, const auto& b) { return a.first < b.first; });
      for (size_t i = 0; i < list.size(); ++i) {
        if (list[i].first != static_cast<int64_t>(i))
          return fail("an order that counts from [0] for tensor dim " +
                      number(static_cast<int64_t>(d)));
        state.shards[d].push_back(list[i].second);
      }
    }
    state.partial = std::move(partial_);
    return state;
  }

 private:
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  [[nodiscard]] Error fail(const std::string& expected) const {
    return bad_input("state '" + std::string(text_) + "', column " +
                     number(static_cast<int64_t>(at_) + 1) + ": expected " + expected);
  }

  // One placement with its order, such as "S(0)[1]", for the sub-axis (m, before, sub_axis_size).
  Status placed(size_t m, int64_t before, int64_t sub_axis_size) {
    size_t start = at_;
    if (peek() == 'R') {
      ++at_;
      return Done{};
    }
    size_t close = text_.find(')', at_);
    if (close == std::string_view::npos) return fail("a placement");
    auto placement = parse_placement(text_.substr(start, close - start + 1));
    if (!placement || placement->kind == Placement::Kind::strided_shard)
      return fail("R, S(dim) or P(op)");
    at_ = close + 1;
    SubAxis sub_axis{static_cast<int32_t>(m), before, sub_axis_size};
    if (is_partial(*placement)) {
      for (const PendingSubAxis& other : partial_) {
        if (!may_mix(other.op, placement->op)) return fail("partials that may be pending together");
      }
      partial_.push_back({sub_axis, placement->op});
      return Done{};
    }
    if (static_cast<size_t>(placement->tensor_dim) >= slots_.size())
      return fail("a tensor dim below " + number(std::ssize(slots_)));
    int64_t order = 0;
    if (peek() == '[') {
      ++at_;
      size_t digits = at_;
      while (peek() >= '0' && peek() <= '9' && at_ - digits < 9)
        order = order * 10 + (text_[at_++] - '0');
      if (at_ == digits || peek() != ']') return fail("an order such as [0]");
      ++at_;
    }
    slots_[placement->tensor_dim].emplace_back(order, sub_axis);
    return Done{};
  }

  std::string_view text_;
  std::span<const int64_t> mesh_shape_;
  std::vector<std::vector<std::pair<int64_t, SubAxis>>> slots_;  // per tensor dim (order, sub-axis)
  std::vector<PendingSubAxis> partial_;
  size_t at_ = 0;
};

}  // namespace

Result<State> parse_state(std::string_view text, std::span<const int64_t> mesh_shape,
                          size_t tensor_rank) {
  return StateParser(text, mesh_shape, tensor_rank).parse();
}

int64_t tensor_bytes(const TensorMeta& tensor) {
  int64_t bytes = element_bytes(tensor.dtype);
  for (int64_t extent : tensor.shape) {
    if (extent == 0) return 0;
    bytes = saturating_mul(bytes, extent);
  }
  return bytes;
}

}  // namespace meshplan
