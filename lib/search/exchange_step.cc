#include "search/exchange_step.h"

#include <algorithm>

#include "base/int_math.h"
#include "search/edge_steps.h"
#include "tensor/box.h"
#include "transfer/sub_axes.h"

namespace meshplan {
namespace {

bool is_in(const std::vector<PendingSubAxis>& list, const PendingSubAxis& pending) {
  return std::find(list.begin(), list.end(), pending) != list.end();
}

}  // namespace

State landing_of(const Request& request) {
  State landing = request.dst;
  const bool crosses = request.src_mesh != request.dst_mesh;
  std::erase_if(landing.partial,
                [&](const PendingSubAxis& p) { return crosses || !is_in(request.src.partial, p); });
  return landing;
}

void set_reduction(Step& step, const Mesh& mesh, const State& src, const State& landing) {
  int64_t averaged = 1;
  bool several = false;
  for (const PendingSubAxis& p : reduced_between(src, landing, mesh_shape(mesh))) {
    if (step.reduce_op && (*step.reduce_op != p.op || p.op == ReduceOp::avg)) several = true;
    step.reduce_op = p.op;
    if (p.op == ReduceOp::avg) averaged *= p.sub_axis.size;
  }
  if (!several) return;
  step.reduce_op = ReduceOp::sum;
  step.scale_divisor = averaged;
}

bool has_copies(const State& state, const Mesh& mesh) {
  int64_t boxes = 1;
  for (const auto& order : state.shards) boxes = saturating_mul(boxes, product_of_sizes(order));
  return boxes < mesh_size(mesh);
}

namespace {

// The exchange at hand in another way, where that is known to cost less.
void take_cheaper(const ExchangeCost& other, ExchangeStep& made) {
  const bool unknown = made.cost.in_shifts_unknown || other.in_shifts_unknown;
  made.cost.in_shifts_unknown = unknown;
  if (!other.exact || other.predicted_ps >= made.cost.predicted_ps) return;
  made.cost = other;
  made.cost.in_shifts_unknown = unknown;
  made.step.phases = other.phases;
  made.step.chunks = other.chunks;
  made.step.at_once = other.at_once;
  set_fetchers(other.fetchers, made.step);
  made.step.far_64ths = other.far_64ths;
}

const char* why_of(const Step& step, bool crosses) {
  if (step.far_64ths > 0) {
    return "sends every rank of the target mesh just the boxes that it misses: of what its host "
           "holds part from other hosts, so that the links of both are busy";
  }
  if (step.at_once > 0) {
    return "fetches what each host of the target mesh misses once over its slow links, each chunk "
           "from few ranks, and shares it inside the host while the next comes";
  }
  if (step.laps > 1) {
    return "lets all ranks of each host of the target mesh share the fetching of what it misses "
           "over its slow links, once, each from two ranks at least, as one does not fill them, "
           "then shares it inside the host";
  }
  if (step.fetched_by_all) {
    return "lets all ranks of each host of the target mesh share the fetching of what it misses "
           "over its slow links, once, then shares it inside the host";
  }
  if (step.phases == 2) {
    return "fetches what each host of the target mesh misses once over its slow links, then shares "
           "it inside the host";
  }
  if (crosses) {
    return "sends every rank of the target mesh just the boxes that it misses, from the nearest "
           "ranks that hold them";
  }
  return "sends every rank just the boxes that it misses: more mesh dims than the search takes up";
}

}  // namespace

ExchangeStep make_exchange_step(const LevelMap& levels, const Mesh& dst_mesh,
                                const Request& request, const State& src, const State& landing,
                                const ExchangeWays& ways, int64_t most_ps) {
  const bool crosses = request.src_mesh != request.dst_mesh;
  ExchangeStep made;
  Step& step = made.step;
  step.op = Op::exchange;
  step.mesh_dims = every_dim(mesh_shape(dst_mesh));
  step.state = landing;
  if (crosses) step.mesh = dst_mesh.name;
  step.logical_shape = request.tensor.shape;
  set_reduction(step, levels.mesh(), src, landing);
  ExchangeQuestion q;
  q.levels = &levels;
  q.dst_mesh = crosses ? &dst_mesh : nullptr;
  q.shape = request.tensor.shape;
  q.element_bytes = element_bytes(step.reduce_op && request.reduce_dtype ? *request.reduce_dtype
                                                                         : request.tensor.dtype);
  q.src = &src;
  q.dst = &landing;
  q.most_ps = most_ps;
  made.cost = price_exchange(q);
  const bool shares = has_copies(landing, dst_mesh);
  const bool by_all = ways.fetchers == Fetchers::all;
  const bool several_ways = !step.reduce_op && levels.levels() > 1;
  const bool asks_it = ways.far_shares || (ways.most_phases == 2 && by_all && !shares);
  if (made.cost.at_least && several_ways && asks_it) {
    // What part of it was listed does not say whether other ways may take less.
    q.most_ps = INT64_MAX;
    made.cost = price_exchange(q);
  }
  const bool helps = shares || (by_all && made.cost.uneven);
  const bool laps_help = by_all && made.cost.held_up && crosses;
  const int64_t least_far_ps = made.cost.least_far_ps;
  if (ways.most_phases == 2 && several_ways && (helps || laps_help)) {
    q.phases = 2;
    q.in_laps_too = by_all && crosses && helps;
    q.in_shifts_too = by_all && crosses;
    if (by_all) q.fetchers = std::nullopt;
    if (!shares) q.fetchers = helps ? Fetchers::all : Fetchers::all_in_laps;
    q.most_ps = std::min(most_ps, made.cost.predicted_ps);
    take_cheaper(price_exchange(q), made);
  }
  const bool far_helps = least_far_ps < made.cost.predicted_ps && least_far_ps <= most_ps;
  if (ways.far_shares && several_ways && far_helps) {
    q.phases = 1;
    q.most_ps = std::min(most_ps, made.cost.predicted_ps);
    q.far_64ths = std::nullopt;
    take_cheaper(price_exchange(q), made);
  }
  step.whole_pieces = made.cost.whole_pieces;
  step.why = why_of(step, crosses);
  if (!crosses) describe_change(src, dst_mesh, step);
  return made;
}

void add_partials(const Request& request, const Mesh& dst_mesh, State at,
                  std::vector<Step>& steps) {
  for (const PendingSubAxis& p : request.dst.partial) {
    // Over a mesh dim of one rank nothing is pending: a state with it is the one without.
    if (p.sub_axis.size == 1 || is_in(at.partial, p)) continue;
    Step made;
    made.op = Op::to_partial;
    made.mesh_dims = {p.sub_axis};
    State before = at;
    at.partial.push_back(p);
    std::sort(
        at.partial.begin(), at.partial.end(),
        [](const PendingSubAxis& a, const PendingSubAxis& b) { return a.sub_axis < b.sub_axis; });
    made.state = at;
    if (request.src_mesh != request.dst_mesh) made.mesh = dst_mesh.name;
    State others = before;
    for (auto& order : others.shards)
      std::erase_if(order, [&](const SubAxis& a) { return a.mesh_dim == p.sub_axis.mesh_dim; });
    made.logical_shape = largest_box(others, request.tensor.shape, mesh_shape(dst_mesh));
    describe_change(before, dst_mesh, made);
    made.why = filled(row_of(made.op).why,
                      {{"dims", dst_mesh.dims[static_cast<size_t>(p.sub_axis.mesh_dim)].name}});
    steps.push_back(std::move(made));
  }
}

}  // namespace meshplan
