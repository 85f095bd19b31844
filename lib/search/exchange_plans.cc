#include "search/exchange_plans.h"

#include <algorithm>

#include "base/int_math.h"
#include "search/edge_steps.h"
#include "search/exchange_step.h"
#include "tensor/box.h"

namespace meshplan {
namespace {

// A sub-axis that holds copies of the target, and the level that its ranks meet on.
struct FreeAxis {
  Atom atom;
  int level = 0;
};

// Whether the state leaves every rank of the mesh dim the same.
bool holds_copies(const State& state, size_t mesh_dim) {
  const auto on = [&](const Atom& a) {
    return static_cast<size_t>(a.mesh_dim) == mesh_dim && a.size > 1;
  };
  for (const auto& order : state.shards) {
    if (std::any_of(order.begin(), order.end(), on)) return false;
  }
  return std::none_of(state.partial.begin(), state.partial.end(),
                      [&](const PendingAtom& p) { return on(p.atom); });
}

std::vector<FreeAxis> free_axes(const State& target, const LevelMap& levels) {
  std::vector<FreeAxis> axes;
  const Mesh& mesh = levels.mesh();
  for (size_t m = 0; m < mesh.dims.size(); ++m) {
    if (mesh.dims[m].size == 1 || !holds_copies(target, m)) continue;
    const auto dim = static_cast<int32_t>(m);
    if (!levels.regular()) {
      axes.push_back({{dim, 1, mesh.dims[m].size}, levels.levels() - 1});
      continue;
    }
    for (const LevelDigit& digit : levels.digits(m)) {
      if (digit.size > 1) axes.push_back({{dim, digit.before, digit.size}, digit.level});
    }
  }
  return axes;
}

// The state cut further over the axis, along the tensor dim that is widest, of those that it cuts
// evenly if there are some.
State cut_over(State state, const Atom& axis, const std::vector<int64_t>& shape,
               const std::vector<int64_t>& mesh_shape) {
  const std::vector<int64_t> box = largest_box(state, shape, mesh_shape);
  std::optional<size_t> best;
  bool best_even = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t parts = axis.size;
    for (const Atom& a : state.shards[d]) parts = saturating_mul(parts, a.size);
    const bool even = shape[d] % parts == 0;
    if (best && (best_even != even ? best_even : box[d] <= box[*best])) continue;
    best = d;
    best_even = even;
  }
  if (best) state.shards[*best].push_back(axis);
  return state;
}

// Joins leading factors of one mesh dim that stand one behind the other, as states have them.
void join_axes(State& state) {
  for (auto& order : state.shards) {
    std::vector<Atom> joined;
    for (const Atom& a : order) {
      if (!joined.empty() && joined.back().mesh_dim == a.mesh_dim &&
          joined.back().before * joined.back().size == a.before) {
        joined.back().size *= a.size;
      } else {
        joined.push_back(a);
      }
    }
    order = std::move(joined);
  }
}

}  // namespace

std::vector<Stops> stops_of(const PlanQuestion& question, const LevelMap& dst_levels) {
  const Request& request = *question.request;
  const State target = landing_of(request);
  std::vector<Stops> all{{target}};
  const std::vector<FreeAxis> axes = free_axes(target, dst_levels);
  const auto shape = mesh_shape(dst_levels.mesh());
  // `target` cut over the axes whose level lies in [from, to), inner levels first.
  const auto cut = [&](const State& start, int from, int to) {
    State state = start;
    for (int level = from; level < to; ++level) {
      for (const FreeAxis& axis : axes) {
        if (axis.level == level) state = cut_over(state, axis.atom, request.tensor.shape, shape);
      }
    }
    return state;
  };
  const auto add = [&](Stops stops) {
    for (State& stop : stops) join_axes(stop);
    stops.push_back(target);
    if (std::adjacent_find(stops.begin(), stops.end()) != stops.end()) return;
    if (std::find(all.begin(), all.end(), stops) == all.end()) all.push_back(std::move(stops));
  };
  const int levels = dst_levels.levels();
  add({cut(target, 0, levels)});
  for (int level = 1; level < levels; ++level) {
    const State inner = cut(target, 0, level);
    add({cut(inner, level, levels), inner});
    add({inner});
    add({cut(target, level, levels)});
  }
  return all;
}

StepList exchanges_through(const PlanQuestion& question, const Stops& stops, bool whole_pieces) {
  const Request& request = *question.request;
  const Mesh& dst_mesh = question.meshes->meshes[request.dst_mesh];
  const bool crosses = request.src_mesh != request.dst_mesh;
  StepList list;
  list.dst = request.dst;
  const State* before = &request.src;
  for (size_t i = 0; i < stops.size(); ++i) {
    if (!(crosses && i == 0) && stops[i] == *before) continue;
    Step step;
    step.op = Op::exchange;
    step.mesh_dims = every_dim(dst_mesh);
    step.state = stops[i];
    if (crosses) step.mesh = dst_mesh.name;
    step.logical_shape = request.tensor.shape;
    if (i == 0) set_reduction(step, request.src, stops[i]);
    step.whole_pieces = whole_pieces;
    step.why = i + 1 < stops.size()
                   ? "brings every copy of the target a part of its own, which they then share"
               : i > 0 ? "shares what the step before brought among the copies of the target"
                       : "sends every rank just the boxes that it misses, packed with those of "
                         "the other members";
    if (!(crosses && i == 0)) describe_change(*before, dst_mesh, step);
    list.steps.push_back(std::move(step));
    before = &stops[i];
  }
  add_partials(request, dst_mesh, stops.back(), list.steps);
  return list;
}

}  // namespace meshplan
