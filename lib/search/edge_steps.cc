#include "search/edge_steps.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "plan/describe_moves.h"
#include "tensor/box.h"
#include "transfer/sub_axes.h"

namespace meshplan {
namespace {

// What the state does on [lo, hi) of a mesh dim (products of leading factors), which no sub-axis
// cuts further.
Placement role(const State& state, int32_t mesh_dim, int64_t lo, int64_t hi) {
  auto covers = [&](const SubAxis& a) {
    return a.mesh_dim == mesh_dim && a.before <= lo && a.before * a.size >= hi;
  };
  for (size_t d = 0; d < state.shards.size(); ++d) {
    for (const SubAxis& a : state.shards[d]) {
      if (covers(a)) return shard(static_cast<int32_t>(d));
    }
  }
  for (const PendingSubAxis& p : state.partial) {
    if (covers(p.sub_axis)) return partial(p.op);
  }
  return replicate();
}

std::string names_of(const std::vector<SubAxis>& sub_axes, const Mesh& mesh) {
  const auto names = dim_names(mesh);
  const auto shape = mesh_shape(mesh);
  std::vector<std::string> texts;
  for (const SubAxis& a : sub_axes) texts.push_back(to_text(a, names, shape));
  return join(texts, " and ");
}

std::string reason(const PlanProblem& p, const Edge& edge, const Step& step) {
  if (edge.op == Op::exchange && edge.reduced != 0)
    return "sends every contribution straight to the ranks that own the result, which reduce it "
           "there";
  if (all_fetch(edge.fetchers)) return fetched_by_all_reason;
  if (laps_of(edge.fetchers) > 1)
    return "fetches what each host misses once over its slow links, each rank from two others at "
           "least, as one does not fill them, and shares it inside the host";
  if (edge.chunks > 1)
    return "fetches what each host misses once over its slow links, chunk by chunk, and shares each "
           "chunk inside the host while the next comes";
  if (edge.phases == 2)
    return "fetches what each host misses once over its slow links, then shares it inside the host";
  if (edge.far_64ths > 0)
    return "sends every rank just the boxes that it misses: of what its host holds part from other "
           "hosts, so that the links of both are busy";
  if (edge.whole_pieces)
    return "sends every rank just the boxes that it misses, each piece whole from one holder";
  return filled(row_of(edge.op).why, {{"dims", names_of(step.mesh_dims, *p.mesh)},
                                      {"ranks", std::to_string(group_size(p, edge.group))}});
}

// Whether a slice only appends a part of a mesh dim to the part that the one before it appended.
bool continues(const PlanProblem& p, const Edge& before, const Edge& edge) {
  if (before.op != Op::slice || edge.op != Op::slice) return false;
  for (int d = 0; d < p.dims; ++d) {
    const int k = before.to.length(d);
    if (edge.to.length(d) != k + 1 || k == 0) continue;
    const size_t last = edge.to.sub_axis[as_index(edge.to.end_of(d) - 1)];
    const size_t major = before.to.sub_axis[as_index(before.to.end_of(d) - 1)];
    const SubAxis& a = p.sub_axis[major];
    const SubAxis& b = p.sub_axis[last];
    return edge.group == 1U << last && (before.group >> major & 1) != 0 &&
           a.mesh_dim == b.mesh_dim && a.before * a.size == b.before;
  }
  return false;
}

// A mesh dim is sliced at once, though the search took its parts one by one.
std::vector<Edge> with_joined_slices(const PlanProblem& p, const std::vector<Edge>& edges) {
  std::vector<Edge> joined;
  joined.reserve(edges.size());
  for (const Edge& edge : edges) {
    if (joined.empty() || !continues(p, joined.back(), edge)) {
      joined.push_back(edge);
      continue;
    }
    joined.back().to = edge.to;
    joined.back().group = static_cast<uint16_t>(joined.back().group | edge.group);
  }
  return joined;
}

}  // namespace

std::vector<int64_t> shape_apart(const State& state, const std::vector<SubAxis>& mesh_dims,
                                 std::vector<int64_t> shape, std::span<const int64_t> mesh_sizes) {
  const auto touched = [&](const SubAxis& a) {
    return std::any_of(mesh_dims.begin(), mesh_dims.end(), [&](const SubAxis& m) {
      return m.mesh_dim == a.mesh_dim && m.before <= a.before &&
             a.before * a.size <= m.before * m.size;
    });
  };
  std::vector<SubAxis> others;
  for (size_t d = 0; d < shape.size(); ++d) {
    others.clear();
    std::copy_if(state.shards[d].begin(), state.shards[d].end(), std::back_inserter(others),
                 [&](const SubAxis& a) { return !touched(a); });
    if (!others.empty()) shape[d] = largest_shard(others, shape[d], mesh_sizes);
  }
  return shape;
}

void describe_change(const State& before, const Mesh& mesh, Step& step) {
  std::vector<Move> moves;
  std::vector<int64_t> cuts;
  for (size_t m = 0; m < mesh.dims.size(); ++m) {
    cuts.reserve(16);
    cuts.assign({1, mesh.dims[m].size});
    auto use = [&](const SubAxis& a) {
      if (static_cast<size_t>(a.mesh_dim) != m) return;
      cuts.push_back(a.before);
      cuts.push_back(a.before * a.size);
    };
    for (const State* s : {&before, static_cast<const State*>(&step.state)}) {
      for (const auto& order : s->shards) std::for_each(order.begin(), order.end(), use);
      for (const PendingSubAxis& p : s->partial) use(p.sub_axis);
    }
    for (const SubAxis& a : step.mesh_dims) use(a);
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      auto dim = static_cast<int32_t>(m);
      Placement from = role(before, dim, cuts[i], cuts[i + 1]);
      Placement to = role(step.state, dim, cuts[i], cuts[i + 1]);
      if (from == to) continue;
      if (!moves.empty() && moves.back().sub_axis.mesh_dim == dim &&
          moves.back().sub_axis.before * moves.back().sub_axis.size == cuts[i] &&
          moves.back().src == from && moves.back().dst == to) {
        moves.back().sub_axis.size *= cuts[i + 1] / cuts[i];
      } else {
        moves.push_back({{dim, cuts[i], cuts[i + 1] / cuts[i]}, from, to});
      }
    }
  }
  if (!moves.empty()) describe_moves(step, std::move(moves));
}

std::vector<Step> steps_of_edges(const PlanProblem& p, const std::vector<Edge>& edges,
                                 const std::string& mesh_name) {
  std::vector<Step> steps;
  steps.reserve(edges.size());
  const State source = to_state(p, p.source);
  const State* before = &source;
  for (const Edge& edge : with_joined_slices(p, edges)) {
    Step& step = steps.emplace_back();
    step.op = edge.op;
    step.mesh_dims = row_of(edge.op).scope == OpScope::mesh ? every_dim(p.mesh_sizes)
                                                            : mesh_sub_axes(p, edge.group);
    step.state = to_state(p, edge.to);
    step.mesh = mesh_name;
    step.phases = edge.phases;
    step.chunks = edge.chunks;
    set_fetchers(edge.fetchers, step);
    step.far_64ths = edge.far_64ths;
    step.whole_pieces = edge.whole_pieces;
    if (is_collective(edge.op)) step.merged = static_cast<int64_t>(step.mesh_dims.size());
    if (edge.reduced != 0) {
      // One op for all that is reduced: sum where sum and avg meet or several averages do, then one
      // division.
      int64_t averaged = 1;
      bool sums = false;
      ReduceOp op = ReduceOp::sum;
      for (int i = 0; i < p.sub_axes; ++i) {
        if ((edge.reduced >> i & 1) == 0) continue;
        op = p.source_op[static_cast<size_t>(i)];
        if (op == ReduceOp::avg) averaged *= p.size[static_cast<size_t>(i)];
        if (op == ReduceOp::sum) sums = true;
      }
      if (averaged > 1 && (sums || mesh_sub_axes(p, edge.reduced).size() != 1)) {
        step.reduce_op = ReduceOp::sum;
        step.scale_divisor = averaged;
      } else {
        step.reduce_op = op;
      }
    }
    step.logical_shape = shape_apart(*before, step.mesh_dims, p.tensor.shape, p.mesh_sizes);
    describe_change(*before, *p.mesh, step);
    step.why = reason(p, edge, step);
    before = &step.state;
  }
  return steps;
}

}  // namespace meshplan
