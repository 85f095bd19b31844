// Runs plans element by element on every rank of a small mesh: the oracle of the verifier's tests.
//
// It knows nothing of digits, coverage or groups: a rank keeps a value for every element of its
// box; a step hands out values as its op, its states and its mesh_dims say. What nobody may give is
// poison, and so is what two givers disagree on. At the end the values are compared with those that
// the source's contributions reduce to. Values are integers chosen so that sums, averages and
// products are exact.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "mesh/mesh.h"
#include "plan/plan.h"
#include "tensor/box.h"

namespace meshplan::test {

using Coordinates = std::vector<int64_t>;

inline uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// One value a rank and element; nullopt: poison (or not held).
struct World {
  std::vector<int64_t> mesh_shape;
  std::vector<Coordinates> ranks;  // coordinates of every rank
  std::vector<std::vector<std::optional<int64_t>>> values;
};

inline int64_t elements_of(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t n : shape) count *= n;
  return count;
}

inline bool in_box(const Box& box, const std::vector<int64_t>& shape, int64_t element) {
  const std::vector<int64_t> at = coordinates_of(element, shape);
  for (size_t d = 0; d < box.size(); ++d) {
    if (at[d] < box[d].lo || at[d] >= box[d].hi) return false;
  }
  return true;
}

// The coordinates of a rank on some sub-axes.
inline Coordinates on_sub_axes(const std::vector<SubAxis>& sub_axes, const World& world, const Coordinates& rank) {
  Coordinates out;
  for (const SubAxis& a : sub_axes) {
    const auto m = static_cast<size_t>(a.mesh_dim);
    out.push_back(sub_axis_coordinate(a, world.mesh_shape[m], rank[m]));
  }
  return out;
}

inline std::vector<SubAxis> pending_sub_axes(const State& state) {
  std::vector<SubAxis> sub_axes;
  for (const PendingSubAxis& p : state.partial) sub_axes.push_back(p.sub_axis);
  return sub_axes;
}

// Whether two ranks differ on the given sub-axes alone: putting b's coordinates on the sub-axes
// into a gives b.
inline bool differ_only_on(const std::vector<SubAxis>& sub_axes, const World& world, const Coordinates& a, const Coordinates& b) {
  Coordinates moved = a;
  for (const SubAxis& sub_axis : sub_axes) {
    const auto m = static_cast<size_t>(sub_axis.mesh_dim);
    const int64_t below = world.mesh_shape[m] / (sub_axis.before * sub_axis.size);
    moved[m] +=
        (sub_axis_coordinate(sub_axis, world.mesh_shape[m], b[m]) - sub_axis_coordinate(sub_axis, world.mesh_shape[m], moved[m])) * below;
  }
  return moved == b;
}

struct Reduction {
  ReduceOp op = ReduceOp::sum;
  int64_t divisor = 1;
  bool empty = true;
  bool poisoned = false;
  int64_t value = 0;
  int64_t count = 0;

  void take(const std::optional<int64_t>& given) {
    ++count;
    if (!given) {
      poisoned = true;
      return;
    }
    const int64_t v = *given;
    if (empty) {
      value = v;
    } else if (op == ReduceOp::sum || op == ReduceOp::avg) {
      value += v;
    } else if (op == ReduceOp::min) {
      value = std::min(value, v);
    } else if (op == ReduceOp::max) {
      value = std::max(value, v);
    } else {
      value *= v;
    }
    empty = false;
  }
  [[nodiscard]] std::optional<int64_t> result() const {
    const int64_t by = divisor * (op == ReduceOp::avg ? count : 1);
    if (poisoned || empty || by == 0 || value % by != 0) return std::nullopt;
    return value / by;
  }
};

// The op and divisor that reduce all of these together.
inline Reduction reduction_of(const std::vector<PendingSubAxis>& pending) {
  Reduction reduction;
  for (const PendingSubAxis& p : pending) {
    if (p.op == ReduceOp::avg) {
      reduction.divisor *= p.sub_axis.size;
    } else {
      reduction.op = p.op;
    }
  }
  return reduction;
}

inline World make_world(const std::vector<int64_t>& mesh_shape) {
  World world;
  world.mesh_shape = mesh_shape;
  const int64_t count = elements_of(mesh_shape);
  for (int64_t r = 0; r < count; ++r) world.ranks.push_back(coordinates_of(r, mesh_shape));
  return world;
}

// The contribution of the ranks with these pending coordinates to an element.
inline int64_t contribution(const State& state, const World& world, const Coordinates& rank, int64_t element, uint64_t seed) {
  uint64_t h = mixed(seed ^ mixed(static_cast<uint64_t>(element)));
  for (int64_t c : on_sub_axes(pending_sub_axes(state), world, rank)) h = mixed(h ^ static_cast<uint64_t>(c + 1));
  const bool product = !state.partial.empty() && state.partial.front().op == ReduceOp::product;
  if (product) return static_cast<int64_t>(h % 3) + 2;
  const auto scale = static_cast<int64_t>(world.ranks.size());
  return (static_cast<int64_t>(h % 1000) + 1) * scale * scale * scale;
}

inline void fill_source(World& world, const State& src, const std::vector<int64_t>& shape, uint64_t seed) {
  const auto count = static_cast<size_t>(elements_of(shape));
  world.values.assign(world.ranks.size(), std::vector<std::optional<int64_t>>(count));
  for (size_t r = 0; r < world.ranks.size(); ++r) {
    const Box box = box_of(src, shape, world.mesh_shape, world.ranks[r]);
    for (size_t e = 0; e < count; ++e) {
      if (in_box(box, shape, static_cast<int64_t>(e)))
        world.values[r][e] = contribution(src, world, world.ranks[r], static_cast<int64_t>(e), seed);
    }
  }
}

// What the pending values of a state reduce to for one rank's coordinates outside of the pending
// sub-axes, given a value for each rank.
template <class ValueOf>
std::optional<int64_t> reduced(const State& state, const World& world, const Coordinates& rank, ValueOf value_of) {
  const std::vector<SubAxis> pending = pending_sub_axes(state);
  Reduction reduction = reduction_of(state.partial);
  for (size_t r = 0; r < world.ranks.size(); ++r) {
    if (differ_only_on(pending, world, rank, world.ranks[r])) reduction.take(value_of(r));
  }
  return reduction.result();
}

// The state with every sub-axis cut at the places where `others` cut its mesh dim, so that pending
// sub-axes can be compared. The places must divide one another.
inline State cut_alike(const State& state, const std::vector<SubAxis>& others) {
  auto parts_of = [&](const SubAxis& sub_axis) {
    std::vector<int64_t> cuts{sub_axis.before, sub_axis.before * sub_axis.size};
    for (const SubAxis& other : others) {
      if (other.mesh_dim != sub_axis.mesh_dim) continue;
      for (int64_t cut : {other.before, other.before * other.size}) {
        if (cut > cuts.front() && cut < sub_axis.before * sub_axis.size) cuts.push_back(cut);
      }
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<SubAxis> parts;
    if (cuts.size() == 1) parts.push_back(sub_axis);
    for (size_t i = 0; i + 1 < cuts.size(); ++i) parts.push_back({sub_axis.mesh_dim, cuts[i], cuts[i + 1] / cuts[i]});
    return parts;
  };
  State out;
  for (const auto& list : state.shards) {
    std::vector<SubAxis>& cut = out.shards.emplace_back();
    for (const SubAxis& sub_axis : list) {
      for (const SubAxis& part : parts_of(sub_axis)) cut.push_back(part);
    }
  }
  for (const PendingSubAxis& pending : state.partial) {
    for (const SubAxis& part : parts_of(pending.sub_axis)) out.partial.push_back({part, pending.op});
  }
  return out;
}

inline std::vector<SubAxis> sub_axes_of(const State& state) {
  std::vector<SubAxis> sub_axes = pending_sub_axes(state);
  for (const auto& list : state.shards) sub_axes.insert(sub_axes.end(), list.begin(), list.end());
  return sub_axes;
}

// One step on one mesh.
inline void run_step(World& world, const State& state_before, const Step& whole_step, const std::vector<int64_t>& shape) {
  // In an exchange any shards may become any others: only what is pending is cut alike.
  const bool exchanges = whole_step.op == Op::exchange;
  std::vector<SubAxis> all;
  for (const State* state : {&state_before, &whole_step.state}) {
    for (const SubAxis& sub_axis : exchanges ? pending_sub_axes(*state) : sub_axes_of(*state)) all.push_back(sub_axis);
  }
  Step step = whole_step;
  State before = cut_alike(state_before, all);
  step.state = cut_alike(whole_step.state, all);
  if (exchanges) {
    before.shards = state_before.shards;
    step.state.shards = whole_step.state.shards;
  }
  const auto count = static_cast<size_t>(elements_of(shape));
  std::vector<PendingSubAxis> old_pending;  // pending before and not after
  std::vector<PendingSubAxis> new_pending;  // pending after and not before
  for (const PendingSubAxis& p : before.partial) {
    if (std::find(step.state.partial.begin(), step.state.partial.end(), p) == step.state.partial.end()) old_pending.push_back(p);
  }
  for (const PendingSubAxis& p : step.state.partial) {
    if (std::find(before.partial.begin(), before.partial.end(), p) == before.partial.end()) new_pending.push_back(p);
  }
  auto was_sharded = [&](const SubAxis& sub_axis) {
    for (const auto& list : before.shards) {
      if (std::find(list.begin(), list.end(), sub_axis) != list.end()) return true;
    }
    return false;
  };
  std::vector<Box> old_boxes;
  for (const Coordinates& rank : world.ranks) old_boxes.push_back(box_of(before, shape, world.mesh_shape, rank));
  std::vector<std::vector<std::optional<int64_t>>> next(world.ranks.size(), std::vector<std::optional<int64_t>>(count));
  for (size_t r = 0; r < world.ranks.size(); ++r) {
    const Coordinates& rank = world.ranks[r];
    const Box box = box_of(step.state, shape, world.mesh_shape, rank);
    for (size_t e = 0; e < count; ++e) {
      const auto element = static_cast<int64_t>(e);
      if (!in_box(box, shape, element)) continue;
      auto held_by = [&](size_t other) { return in_box(old_boxes[other], shape, element); };
      // The one value that all givers agree on.
      auto agreed = [&](auto may_give) {
        std::optional<int64_t> value;
        bool any = false;
        for (size_t other = 0; other < world.ranks.size(); ++other) {
          if (!held_by(other) || !may_give(world.ranks[other])) continue;
          if (any && value != world.values[other][e]) return std::optional<int64_t>();
          value = world.values[other][e];
          any = true;
        }
        return value;
      };
      if (step.op == Op::slice) {
        next[r][e] = world.values[r][e];
      } else if (step.op == Op::to_partial) {
        bool keeps = true;
        bool zero_filled = false;
        for (const PendingSubAxis& p : new_pending) {
          if (was_sharded(p.sub_axis)) {
            zero_filled = true;
          } else if ((p.op == ReduceOp::sum || p.op == ReduceOp::product) && on_sub_axes({p.sub_axis}, world, rank)[0] != 0) {
            keeps = false;
          }
        }
        const bool product = !new_pending.empty() && new_pending.front().op == ReduceOp::product;
        next[r][e] = world.values[r][e];
        if (!keeps || (zero_filled && !held_by(r))) next[r][e] = product ? 1 : 0;
      } else if (step.op == Op::all_gather || step.op == Op::all_to_all || (step.op == Op::exchange && !step.reduce_op)) {
        const std::vector<SubAxis> pending = pending_sub_axes(before);
        next[r][e] = agreed([&](const Coordinates& giver) {
          if (step.op == Op::exchange) return on_sub_axes(pending, world, giver) == on_sub_axes(pending, world, rank);
          return differ_only_on(step.mesh_dims, world, rank, giver);
        });
      } else {
        Reduction reduction;
        reduction.op = step.reduce_op.value_or(ReduceOp::sum);
        reduction.divisor = step.scale_divisor;
        if (step.op == Op::exchange) {
          std::vector<SubAxis> sub_axes;
          for (const PendingSubAxis& p : old_pending) sub_axes.push_back(p.sub_axis);
          std::vector<SubAxis> kept;
          for (const PendingSubAxis& p : step.state.partial) kept.push_back(p.sub_axis);
          std::vector<Coordinates> combinations;
          for (const Coordinates& other : world.ranks) combinations.push_back(on_sub_axes(sub_axes, world, other));
          std::sort(combinations.begin(), combinations.end());
          combinations.erase(std::unique(combinations.begin(), combinations.end()), combinations.end());
          for (const Coordinates& combination : combinations) {
            reduction.take(agreed([&](const Coordinates& giver) {
              return on_sub_axes(sub_axes, world, giver) == combination &&
                     on_sub_axes(kept, world, giver) == on_sub_axes(kept, world, rank);
            }));
          }
        } else {
          for (size_t other = 0; other < world.ranks.size(); ++other) {
            if (!differ_only_on(step.mesh_dims, world, rank, world.ranks[other])) continue;
            reduction.take(held_by(other) ? world.values[other][e] : std::nullopt);
          }
        }
        next[r][e] = reduction.result();
      }
    }
  }
  world.values = std::move(next);
}

// Whether every rank holds what `state` says, given what the source's contributions reduce to.
inline bool holds(const World& world, const State& state, const State& src, const std::vector<int64_t>& shape, uint64_t seed) {
  const auto count = static_cast<size_t>(elements_of(shape));
  for (size_t r = 0; r < world.ranks.size(); ++r) {
    const Box box = box_of(state, shape, world.mesh_shape, world.ranks[r]);
    for (size_t e = 0; e < count; ++e) {
      if (!in_box(box, shape, static_cast<int64_t>(e))) continue;
      const std::optional<int64_t> expected = reduced(src, world, world.ranks[r], [&](size_t other) {
        return std::optional<int64_t>(contribution(src, world, world.ranks[other], static_cast<int64_t>(e), seed));
      });
      const std::optional<int64_t> found = reduced(state, world, world.ranks[r], [&](size_t other) { return world.values[other][e]; });
      if (!expected || found != expected) return false;
    }
  }
  return true;
}

// Whether the steps take the source to the target, on one mesh.
inline bool simulated_right(const std::vector<int64_t>& mesh_shape, const std::vector<int64_t>& shape, const State& src,
                            const std::vector<Step>& steps, const State& dst, uint64_t seed) {
  World world = make_world(mesh_shape);
  fill_source(world, src, shape, seed);
  const State* before = &src;
  for (const Step& step : steps) {
    run_step(world, *before, step, shape);
    before = &step.state;
  }
  // The last state must be the target box by box: data that a rank does not know it holds is of no
  // use.
  for (const Coordinates& rank : world.ranks) {
    const Box reached = box_of(*before, shape, mesh_shape, rank);
    const Box wanted = box_of(dst, shape, mesh_shape, rank);
    if (volume(reached) != volume(wanted) || (volume(wanted) != 0 && reached != wanted)) return false;
  }
  return holds(world, dst, src, shape, seed);
}

}  // namespace meshplan::test
