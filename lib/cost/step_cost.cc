#include "cost/step_cost.h"

#include <algorithm>

#include "base/int_math.h"
#include "cost/collective_time.h"
#include "cost/exchange.h"
#include "cost/step_figures.h"
#include "plan/step_mesh.h"
#include "tensor/box.h"
#include "tensor/largest_elements.h"

namespace meshplan {
namespace {

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t all = 1;
  for (int64_t size : sizes) all = saturating_mul(all, size);
  return all;
}

// Whether two orders of shards are one: mesh dims of size 1 cut nothing.
bool cut_alike(const std::vector<SubAxis>& a, const std::vector<SubAxis>& b) {
  const auto next = [](const std::vector<SubAxis>& order, size_t at) {
    while (at < order.size() && order[at].size == 1) ++at;
    return at;
  };
  size_t i = next(a, 0);
  size_t j = next(b, 0);
  while (i < a.size() && j < b.size() && a[i] == b[j]) {
    i = next(a, i + 1);
    j = next(b, j + 1);
  }
  return i == a.size() && j == b.size();
}

// Whether a box of these sides is one stretch of the row-major memory of the larger one.
bool in_one_stretch(const std::vector<int64_t>& box, const std::vector<int64_t>& of) {
  size_t d = 0;
  while (d < box.size() && box[d] <= 1) ++d;
  for (++d; d < box.size(); ++d) {
    if (box[d] != of[d]) return false;
  }
  return true;
}

// The parts of new shards that were pending, in the order in which their chunks lie: dim by dim,
// the outermost first.
std::vector<SubAxis> scattered(const State& before, const State& after) {
  std::vector<SubAxis> parts;
  for (const auto& order : after.shards) {
    for (const SubAxis& sub_axis : order) {
      for (const PendingSubAxis& p : before.partial) {
        const int64_t from = std::max(sub_axis.before, p.sub_axis.before);
        const int64_t to =
            std::min(sub_axis.before * sub_axis.size, p.sub_axis.before * p.sub_axis.size);
        if (p.sub_axis.mesh_dim == sub_axis.mesh_dim && from < to)
          parts.push_back({sub_axis.mesh_dim, from, to / from});
      }
    }
  }
  return parts;
}

// Whether the chunks of the ranks that a reduction joins lie one behind the other: as many places
// between the first and the last of them as there are chunks. Places of chunks are numbers whose
// digits are the new shards, read dim by dim; a slice below a reduced part puts others' chunks
// between.
bool next_to_each_other(const State& before, const State& after) {
  int64_t chunks = 1;
  int64_t last = 0;
  int64_t behind = 1;  // places that the dims behind have
  for (size_t d = after.shards.size(); d-- > 0;) {
    int64_t stride = behind;
    for (size_t i = after.shards[d].size(); i-- > 0;) {
      const SubAxis& sub_axis = after.shards[d][i];
      const int64_t end = sub_axis.before * sub_axis.size;
      for (const PendingSubAxis& p : before.partial) {
        const int64_t from = std::max(sub_axis.before, p.sub_axis.before);
        const int64_t to = std::min(end, p.sub_axis.before * p.sub_axis.size);
        if (p.sub_axis.mesh_dim != sub_axis.mesh_dim || from >= to) continue;
        chunks *= to / from;
        last += (to / from - 1) * (end / to) * stride;
      }
      stride *= sub_axis.size;
    }
    behind = stride / product_of_sizes(before.shards[d]);
  }
  return last + 1 == chunks;
}

// Whether the parts that the larger boxes are cut into, or put together from, need no packing: all
// as large, each one stretch of its box, and one behind the other.
bool lie_in_order(const State& coarser, const State& finer, std::span<const int64_t> shape,
                  const std::vector<int64_t>& large, const std::vector<int64_t>& small) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!cut_alike(coarser.shards[d], finer.shards[d]) &&
        saturating_mul(small[d], product_of_sizes(finer.shards[d])) != shape[d])
      return false;
  }
  return in_one_stretch(small, large);
}

// Bytes of the largest chunk in groups whose communicators do not take the chunks as they lie: by
// ascending rank. Within a group all chunks are as large, or the first is; `largest`: of any group.
int64_t largest_turned(const State& before, const State& after, std::span<const int64_t> shape,
                       const LevelMap& levels, int64_t element_bytes, int64_t largest) {
  const TurnedGroups& turned = levels.turned_groups(scattered(before, after));
  if (turned.all) return largest;
  const std::vector<int64_t> sizes = mesh_shape(levels.mesh());
  int64_t most = 0;
  for (const int64_t first : turned.first_ranks) {
    if (most == largest) break;
    const Box chunk = box_of(after, shape, sizes, coordinates_of(first, sizes));
    most = std::max(most, saturating_mul(volume(chunk), element_bytes));
  }
  return most;
}

}  // namespace

StepFigures step_figures(const State& before, const State& after, std::span<const int64_t> shape,
                         const LevelMap& levels, Op op, int64_t group, int64_t element_bytes) {
  StepFigures f;
  const std::vector<int64_t> sizes = mesh_shape(levels.mesh());
  const auto from = largest_box(before, shape, sizes);
  const auto to = largest_box(after, shape, sizes);
  f.input = saturating_mul(product(from), element_bytes);
  f.output = saturating_mul(product(to), element_bytes);
  const OpPiece piece = row_of(op).piece;
  int64_t largest = piece == OpPiece::box_after ? f.output : f.input;
  if (piece == OpPiece::overlap) {
    // That of coordinate 0 with itself: both intervals start where their parent does.
    largest = element_bytes;
    for (size_t d = 0; d < shape.size(); ++d)
      largest = saturating_mul(largest, std::min(from[d], to[d]));
  }
  const OpBytes moved = bytes_of(op, largest, group);
  f.wire = moved.wire;
  f.bytes = {op, moved.whole, moved.piece, 0};
  switch (piece) {
    case OpPiece::box_before:
      if (!lie_in_order(after, before, shape, to, from)) f.staging = moved.whole;
      f.bytes.copied = saturating_mul(2, f.staging);
      break;
    case OpPiece::box_after: {
      // What groups that pack move: all of them, or those whose chunks go to ranks out of order.
      const int64_t chunk =
          lie_in_order(before, after, shape, from, to) && next_to_each_other(before, after)
              ? largest_turned(before, after, shape, levels, element_bytes, largest)
              : largest;
      const OpBytes packed = bytes_of(op, chunk, group);
      f.staging = packed.whole;
      f.bytes.copied = std::max(f.wire, saturating_add(saturating_mul(2, f.staging), packed.wire));
      break;
    }
    case OpPiece::overlap:
      f.staging = saturating_mul(2, moved.whole);
      f.bytes.copied = f.staging;
      break;
    case OpPiece::share_of_box:
      f.bytes.copied = row_of(op).reduces ? f.wire / 2 : 0;
      break;
    case OpPiece::none:
    case OpPiece::listed:
      break;
  }
  return f;
}

int64_t wire_element_bytes(const StepQuestion& q) {
  return element_bytes(q.step->reduce_op && q.reduce_dtype ? *q.reduce_dtype : q.tensor->dtype);
}

ExchangeQuestion exchange_question(const LevelMap& levels, const StepQuestion& q) {
  ExchangeQuestion e;
  e.levels = &levels;
  e.dst_mesh = q.dst_mesh != nullptr && q.dst_mesh != q.src_mesh ? q.dst_mesh : nullptr;
  e.shape = q.tensor->shape;
  e.element_bytes = wire_element_bytes(q);
  e.src = q.before;
  e.dst = &q.step->state;
  e.phases = static_cast<int>(q.step->phases);
  e.whole_pieces = q.step->whole_pieces;
  e.fetchers = fetchers_of(*q.step);
  e.chunks = q.step->chunks;
  e.at_once = q.step->at_once;
  e.far_64ths = q.step->far_64ths;
  return e;
}

StepCost price_step_on(const LevelMap& levels, const StepQuestion& q) {
  StepCost cost;
  const Step& step = *q.step;
  const auto src_shape = mesh_shape(*q.src_mesh);
  cost.tier = "levels";
  const bool crosses = q.dst_mesh != nullptr && q.dst_mesh != q.src_mesh;
  if (step.op == Op::exchange) {
    const int64_t in = largest_bytes(*q.before, *q.tensor, src_shape);
    const int64_t out =
        largest_bytes(step.state, *q.tensor, crosses ? mesh_shape(*q.dst_mesh) : src_shape);
    if (!crosses && *q.before == step.state) return cost;
    const ExchangeCost x = price_exchange(exchange_question(levels, q));
    cost.wire_bytes = x.wire_bytes;
    cost.predicted_ps = x.predicted_ps;
    if (x.least.op != Op::exchange && x.least.price.ps == x.predicted_ps)
      cost.tier = x.least.price.tier;
    cost.peak_bytes =
        saturating_add(saturating_add(in, out), saturating_add(x.wire_bytes, x.sent_bytes));
    for (int l = 0; l < levels.levels(); ++l) {
      if (std::any_of(x.traffic.phase.begin(), x.traffic.phase.end(),
                      [&](const Traffic& t) { return t.bytes[l] > 0; }))
        cost.level = l;
    }
    return cost;
  }
  const int64_t group = product_of_sizes(step.mesh_dims);
  StepFigures f = step_figures(*q.before, step.state, q.tensor->shape, levels, step.op, group,
                               wire_element_bytes(q));
  cost.wire_bytes = group > 1 ? f.wire : 0;
  cost.peak_bytes = saturating_add(saturating_add(f.input, f.output), group > 1 ? f.staging : 0);
  if (is_local(step.op) || group == 1) return cost;
  const auto& shapes = levels.shapes(step.mesh_dims);
  cost.predicted_ps = finer_ps(*q.topology, shapes, f.bytes, cost.tier);
  for (const GroupShape& shape : shapes) {
    int64_t inner = 1;
    for (size_t l = 0; l < shape.members.size(); ++l) {
      bool used = shape.uniform ? shape.members[l] != inner : shape.reach[l] > 0;
      if (used) cost.level = std::max(cost.level, static_cast<int64_t>(l));
      inner = shape.members[l];
    }
  }
  return cost;
}

StepCost price_step(const StepQuestion& question) {
  LevelMap levels(*question.src_mesh, *question.topology);
  return price_step_on(levels, question);
}

void price_redistribution(PlannedRedistribution& r, const MeshTable& meshes,
                          const Topology& topology) {
  price_redistribution(r, meshes, LevelMap(meshes.meshes[r.request.src_mesh], topology));
}

void price_redistribution(PlannedRedistribution& r, const MeshTable& meshes,
                          const LevelMap& src_levels) {
  const Topology& topology = src_levels.topology();
  const Mesh& src_mesh = meshes.meshes[r.request.src_mesh];
  const Mesh& dst_mesh = meshes.meshes[r.request.dst_mesh];
  std::optional<LevelMap> dst_levels;
  const bool crosses = r.request.src_mesh != r.request.dst_mesh;
  if (crosses) dst_levels.emplace(dst_mesh, topology);

  const State* before = &r.request.src;
  bool arrived = false;  // on the target mesh
  Totals totals = r.totals;
  totals.collectives = totals.wire_bytes = totals.peak_bytes = totals.predicted_ps = 0;
  for (Step& step : r.steps) {
    const bool lands = crosses && !arrived && &mesh_after(meshes, r.request, step) == &dst_mesh;
    StepQuestion q;
    q.topology = &topology;
    q.src_mesh = arrived ? &dst_mesh : &src_mesh;
    q.dst_mesh = lands ? &dst_mesh : q.src_mesh;
    q.tensor = &r.request.tensor;
    q.reduce_dtype = r.request.reduce_dtype;
    q.before = before;
    q.step = &step;
    StepCost cost = price_step_on(arrived ? *dst_levels : src_levels, q);
    arrived = arrived || lands;
    step.wire_bytes = cost.wire_bytes;
    step.peak_bytes = cost.peak_bytes;
    step.predicted_ps = cost.predicted_ps;
    if (!is_local(step.op) && (!is_collective(step.op) || product_of_sizes(step.mesh_dims) > 1))
      totals.collectives += step.phases;
    totals.wire_bytes = saturating_add(totals.wire_bytes, cost.wire_bytes);
    totals.predicted_ps = saturating_add(totals.predicted_ps, cost.predicted_ps);
    totals.peak_bytes = std::max(totals.peak_bytes, cost.peak_bytes);
    before = &step.state;
  }
  r.totals = totals;
}

}  // namespace meshplan
