#include "verify/recount.h"

#include <algorithm>

#include "base/int_math.h"
#include "mesh/coordinates.h"
#include "tensor/box.h"
#include "verify/figures.h"
#include "verify/group_time.h"
#include "verify/op_rules.h"
#include "verify/recount_exchange.h"
#include "verify/units.h"

namespace meshplan::verification {
namespace {

int64_t bytes_of_box(std::span<const int64_t> sides, int64_t element_bytes) {
  int64_t bytes = element_bytes;
  for (const int64_t side : sides) bytes = saturating_mul(bytes, side);
  return bytes;
}

int64_t product_of(const std::vector<SubAxis>& sub_axes) {
  int64_t product = 1;
  for (const SubAxis& sub_axis : sub_axes) product = saturating_mul(product, sub_axis.size);
  return product;
}

// Whether both cut alike: mesh dims of size 1 do not count.
bool cut_alike(const std::vector<SubAxis>& a, const std::vector<SubAxis>& b) {
  if (a == b) return true;
  const auto cutting = [](std::vector<SubAxis> sub_axes) {
    std::erase_if(sub_axes, [](const SubAxis& sub_axis) { return sub_axis.size == 1; });
    return sub_axes;
  };
  return cutting(a) == cutting(b);
}

// Whether the parts that `whole` is cut into (finer), or put together from, lie one after the other
// in it: dims change evenly, and below the first dim in which `part` has several elements it is as
// wide as the whole.
bool lies_in_order(const StepView& view, const State& finer, const std::vector<int64_t>& whole,
                   const std::vector<int64_t>& part) {
  const std::vector<int64_t>& shape = view.tensor->shape;
  bool several = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (several && part[d] != whole[d]) return false;
    several = several || part[d] > 1;
    const std::vector<SubAxis>& from = view.before->shards[d];
    const std::vector<SubAxis>& to = view.step->state.shards[d];
    // Cut evenly, every part is as wide as the widest.
    if (!cut_alike(from, to) && saturating_mul(part[d], product_of(finer.shards[d])) != shape[d])
      return false;
  }
  return true;
}

// Whether a reduce_scatter cuts nothing below what it reduces: from the last shard to the first, no
// reduced part comes after one that is sliced.
bool slices_below(const StepView& view) {
  int64_t below = 1;    // parts that the step cuts in the shards met so far
  int64_t reduced = 1;  // those of them that were pending
  const auto& shards = view.step->state.shards;
  for (size_t d = shards.size(); d-- > 0;) {
    for (auto sub_axis = shards[d].rbegin(); sub_axis != shards[d].rend(); ++sub_axis) {
      const int64_t end = sub_axis->before * sub_axis->size;
      const auto& pending = view.before->partial;
      for (auto p = pending.rbegin(); p != pending.rend(); ++p) {
        const int64_t lo = std::max(sub_axis->before, p->sub_axis.before);
        const int64_t hi = std::min(end, p->sub_axis.before * p->sub_axis.size);
        if (p->sub_axis.mesh_dim != sub_axis->mesh_dim || hi / lo < 2) continue;
        if (saturating_mul(below, end / hi) != reduced) return true;
        reduced = saturating_mul(reduced, hi / lo);
      }
      below = saturating_mul(below, sub_axis->size);
    }
    below /= product_of(view.before->shards[d]);  // which come first
  }
  return false;
}

// The shards that a reduce_scatter makes of what was pending, in the order of their chunks.
std::vector<SubAxis> made_of_pending(const StepView& view) {
  std::vector<SubAxis> made;
  for (const std::vector<SubAxis>& shards : view.step->state.shards) {
    for (const SubAxis& shard : shards) {
      for (const PendingSubAxis& pending : view.before->partial) {
        const SubAxis& was = pending.sub_axis;
        const int64_t lo = std::max(shard.before, was.before);
        const int64_t hi = std::min(shard.before * shard.size, was.before * was.size);
        if (was.mesh_dim == shard.mesh_dim && lo < hi) made.push_back({was.mesh_dim, lo, hi / lo});
      }
    }
  }
  return made;
}

// Whether positions ascend with their index: no mode turns back behind those inside of it.
bool ascends(const Layout& layout) {
  int128 inside = 0;
  for (auto mode = layout.modes.rbegin(); mode != layout.modes.rend(); ++mode) {
    if (mode->size > 1 && mode->stride <= inside) return false;
    inside += int128{mode->size - 1} * mode->stride;
  }
  return true;
}

// Elements of the largest chunk in groups whose ranks do not ascend chunk by chunk, which is how
// communicators number their members. `largest`: of any group.
int64_t largest_out_of_order(const StepView& view, int64_t largest) {
  const Mesh& mesh = *view.src_mesh;
  const std::vector<int64_t> sizes = mesh_shape(mesh);
  const auto chunks = layout_of(mesh, sizes, made_of_pending(view));
  if (!chunks) return largest;
  const Universe& universe = *mesh.universe;
  if (std::is_sorted(universe.ranks.begin(), universe.ranks.end()))
    return ascends(*chunks) ? 0 : largest;
  const auto groups = complement(*chunks, universe.world);
  if (!groups) return largest;
  const std::vector<int64_t> members = offsets(*chunks);
  int64_t most = 0;
  for (const int64_t first : offsets(*groups)) {
    const bool ascend = std::is_sorted(members.begin(), members.end(), [&](int64_t a, int64_t b) {
      return rank_at(universe, first + a) < rank_at(universe, first + b);
    });
    if (ascend) continue;
    const std::vector<int64_t> at = coordinates_at(mesh, first).along;
    most = std::max(most, volume(box_of(view.step->state, view.tensor->shape, sizes, at)));
    if (most == largest) break;
  }
  return most;
}

// `from`, `to`: the largest boxes before and after.
Collective collective_between(const StepView& view, const std::vector<int64_t>& from,
                              const std::vector<int64_t>& to) {
  const int64_t ranks = ranks_of_group(*view.step);
  const int64_t element = moved_element_bytes(view);
  Collective out;
  Moved& moved = out.moved;
  const OpRule rule = rule_of(view.step->op);
  switch (rule.piece) {
    case Piece::box:
      moved.piece = bytes_of_box(from, element);
      moved.whole = saturating_mul(moved.piece, ranks);
      out.wire = saturating_mul(moved.piece, ranks - 1);
      out.staging = lies_in_order(view, *view.before, to, from) ? 0 : moved.whole;
      moved.copied = saturating_mul(2, out.staging);
      break;
    case Piece::chunk: {
      const int64_t largest = bytes_of_box(to, 1);
      moved.piece = saturating_mul(largest, element);
      moved.whole = saturating_mul(moved.piece, ranks);
      out.wire = saturating_mul(moved.piece, ranks - 1);
      // What is packed is packed in every group, or in those that are out of order.
      const bool lie = lies_in_order(view, view.step->state, from, to) && !slices_below(view);
      const int64_t packed =
          saturating_mul(lie ? largest_out_of_order(view, largest) : largest, element);
      out.staging = saturating_mul(packed, ranks);
      moved.copied = std::max(out.wire, saturating_add(saturating_mul(2, out.staging),
                                                       saturating_mul(packed, ranks - 1)));
      break;
    }
    case Piece::share:
      moved.whole = bytes_of_box(from, element);
      moved.piece = ceil_div(moved.whole, ranks);
      out.wire = rounded_up({int128{rule.rounds} * (ranks - 1) * moved.whole, ranks});
      moved.copied = rule.must_reduce ? out.wire / 2 : 0;
      break;
    case Piece::pair:
      // The largest pair is that of the first rank with itself: both of its intervals start where
      // their parents do.
      moved.piece = element;
      for (size_t d = 0; d < from.size(); ++d)
        moved.piece = saturating_mul(moved.piece, std::min(from[d], to[d]));
      moved.whole = saturating_mul(moved.piece, ranks);
      out.wire = saturating_mul(moved.piece, ranks - 1);
      out.staging = saturating_mul(2, moved.whole);
      moved.copied = out.staging;
      break;
    case Piece::none:
    case Piece::listed:
      break;
  }
  return out;
}

// The time of the slowest group, or why it is not counted.
void count_time(const StepView& view, const Moved& moved, Counted& counted) {
  const Topology& topology = view.plan->topology;
  if (topology.levels.empty() || topology.levels.size() > most_levels) return;
  const auto time = time_of_groups(view, moved);
  if (!time) {
    counted.left_out = "predicted_ns, as its groups are too many to look at one by one";
    return;
  }
  counted.least_ps = time->least_ps;
  counted.most_ps = time->most_ps;
  if (time->least_ps == time->most_ps) counted.ps = time->least_ps;
}

Counted recount_collective(const StepView& view) {
  const Step& step = *view.step;
  const std::vector<int64_t> sizes = mesh_shape(*view.src_mesh);
  const std::vector<int64_t> from = largest_box(*view.before, view.tensor->shape, sizes);
  const std::vector<int64_t> to = largest_box(step.state, view.tensor->shape, sizes);
  const int64_t element = moved_element_bytes(view);
  Counted counted;
  counted.peak_bytes = saturating_add(bytes_of_box(from, element), bytes_of_box(to, element));
  if (is_alone(step.op) || ranks_of_group(step) == 1) {
    counted.wire_bytes = counted.ps = 0;
    return counted;
  }
  const Collective collective = collective_between(view, from, to);
  counted.wire_bytes = collective.wire;
  counted.peak_bytes = saturating_add(*counted.peak_bytes, collective.staging);
  count_time(view, collective.moved, counted);
  return counted;
}

}  // namespace

Collective collective_of(const StepView& view) {
  const std::vector<int64_t> sizes = mesh_shape(*view.src_mesh);
  return collective_between(view, largest_box(*view.before, view.tensor->shape, sizes),
                            largest_box(view.step->state, view.tensor->shape, sizes));
}

namespace {

std::optional<std::vector<GroupPattern>> patterns_of_groups(const StepView& view) {
  const auto group = layout_of(*view.src_mesh, mesh_shape(*view.src_mesh), view.step->mesh_dims);
  if (!group) return std::nullopt;
  return Units(*view.src_mesh->universe, view.plan->topology).patterns(*group);
}

}  // namespace

std::optional<std::set<size_t>> levels_of_groups(const StepView& view) {
  const auto patterns = patterns_of_groups(view);
  if (!patterns) return std::nullopt;
  std::set<size_t> used;
  for (const GroupPattern& pattern : *patterns) {
    for (size_t l = 0; l < view.plan->topology.levels.size(); ++l) {
      const int64_t inside = l == 0 ? 1 : pattern.members[l - 1];
      if (pattern.alike ? pattern.members[l] > inside : pattern.more[l] > 0) used.insert(l);
    }
  }
  return used;
}

std::optional<TimeRange> time_of_groups(const StepView& view, const Moved& moved) {
  const Topology& topology = view.plan->topology;
  const auto patterns = patterns_of_groups(view);
  if (!patterns) return std::nullopt;
  TimeRange time;
  for (const GroupPattern& pattern : *patterns) {
    const TimeRange here = group_time(topology, view.step->op, pattern, moved);
    time = {std::max(time.least_ps, here.least_ps), std::max(time.most_ps, here.most_ps)};
  }
  return time;
}

int64_t moved_element_bytes(const StepView& view) {
  return element_bytes(view.step->reduce_op && view.reduce_dtype ? *view.reduce_dtype
                                                                 : view.tensor->dtype);
}

int64_t largest_bytes(const State& state, std::span<const int64_t> shape,
                      std::span<const int64_t> mesh_shape, int64_t element_bytes) {
  return bytes_of_box(largest_box(state, shape, mesh_shape), element_bytes);
}

Counted recount(const StepView& view) {
  return view.step->op == Op::exchange ? recount_exchange(view) : recount_collective(view);
}

}  // namespace meshplan::verification
