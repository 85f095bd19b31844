#include "cost/bounds.h"

#include <algorithm>

#include "base/int_math.h"
#include "tensor/box.h"

namespace meshplan {
namespace {

// Bytes that one unit must fetch from outside of it, per rank of the unit, for the worst unit. `outside`: digits that tell units apart (all
// of them where the unit is a rank).
//
// Without a reduction across units: the union of its targets less what its members hold. With contributions in c > 1 units every element of
// the union needs something from outside, and all units together carry (c - 1) + (t - 1) values an element, t the copies of the target.
int64_t unit_need(const DigitWorld& world, const DigitChange& p, DigitMask outside) {
  DigitMask held = p.src_only & outside;  // what members hold: source digits outside, where no outside digit of the target cuts
  bool crossed = false;
  for (size_t i = 0; i < static_cast<size_t>(p.crossed); ++i) {
    if ((outside >> p.before[i] & 1) == 0) continue;
    if ((outside >> p.after[i] & 1) == 0)
      held |= DigitMask{1} << p.before[i];
    else
      crossed = true;
  }
  const DigitMask inside = world.all() & ~outside;
  const int64_t united = p.total_bytes / world.product(p.dst & outside);
  const DigitMask contributing = p.reduced & outside;
  int64_t missing = contributing != 0 || crossed ? united : united - united / world.product(held);
  int64_t need = missing;
  if (inside != 0 && missing != 0) need = ceil_div(saturating_mul(missing, world.product(p.kept & inside)), world.product(inside));
  if (contributing != 0) {
    const int64_t contributions = world.product(contributing);         // units that hold one
    const int64_t copies = world.product(outside & ~p.dst & ~p.kept);  // of the target, over units
    const int64_t carried = saturating_mul(p.total_bytes, contributions - 1 + copies - 1);
    need = std::max(need, ceil_div(carried, world.product(world.all() & ~p.kept)));
  }
  return need;
}

}  // namespace

Bounds bound_digits(const Topology& topology, const DigitWorld& world, const DigitChange& p, bool within_moves, DigitMask made) {
  Bounds bounds;
  const int levels = static_cast<int>(topology.levels.size());
  int must_reach = -1;  // the outermost level that something crosses
  // needs[k]: bytes that a unit of the level inside of k (of level 0: a rank) must fetch from outside of it, per rank.
  std::array<int64_t, max_levels> needs;
  DigitMask outside = world.all() & ~made;
  for (int k = 0; k < levels; ++k) {
    if (k > 0) outside &= ~world.at_level(k - 1);
    const int64_t need = unit_need(world, p, outside);
    if (k == 0) bounds.bytes = need;
    if (need == 0) break;  // a unit that needs nothing lies in one that needs nothing more from outside
    must_reach = k;
    needs[static_cast<size_t>(k)] = need;
  }
  if (must_reach < 0 || !topology.model.empty() || !topology.tables.empty()) return bounds;
  // What a unit needs comes over the levels outside of it, all at once at best.
  int64_t transfer = 0;
  int64_t bandwidth = 0;
  for (int k = within_moves ? must_reach : levels - 1; k >= 0; --k) {
    if (world.at_level(k) != 0) bandwidth += topology.levels[static_cast<size_t>(k)].mb_per_s;
    if (k <= must_reach && bandwidth > 0) transfer = std::max(transfer, transfer_ps(needs[static_cast<size_t>(k)], 1, bandwidth));
  }
  int64_t latency = INT64_MAX;
  for (int k = must_reach; k < levels; ++k) latency = std::min(latency, topology.levels[static_cast<size_t>(k)].latency_ns);
  bounds.ps = saturating_add(saturating_mul(latency, 1000), transfer);
  return bounds;
}

namespace {

// Uneven shards or sizes that do not line up: rank by rank, on bytes only.
int64_t missing_listed(const Mesh& src_mesh, const Mesh& dst_mesh, std::span<const int64_t> shape, const State& src, const State& dst) {
  const auto src_shape = mesh_shape(src_mesh);
  const auto dst_shape = mesh_shape(dst_mesh);
  const bool same = same_devices(src_mesh, dst_mesh);
  int64_t ranks = mesh_size(dst_mesh);
  if (ranks > listed_limit / 4) {
    // Rank 0 misses at least its target less the most that anyone holds.
    int64_t wanted = 1;
    int64_t held = 1;
    for (int64_t side : largest_box(dst, shape, dst_shape)) wanted = saturating_mul(wanted, side);
    for (int64_t side : largest_box(src, shape, src_shape)) held = saturating_mul(held, side);
    return std::max<int64_t>(0, wanted - held);
  }
  std::vector<std::pair<int64_t, int64_t>> source_index;  // (global rank, index on the source mesh)
  if (!same) {
    for (int64_t i = 0; i < mesh_size(src_mesh); ++i) source_index.emplace_back(position_of(src_mesh, 0, i), i);
    std::sort(source_index.begin(), source_index.end());
  }
  int64_t most = 0;
  for (int64_t i = 0; i < ranks; ++i) {
    Box wanted = box_of(dst, shape, dst_shape, coordinates_of(i, dst_shape));
    int64_t missing = volume(wanted);
    int64_t j = i;
    if (!same) {
      int64_t position = position_of(dst_mesh, 0, i);
      auto found = std::lower_bound(source_index.begin(), source_index.end(), std::make_pair(position, int64_t{0}));
      j = found != source_index.end() && found->first == position ? found->second : -1;
    }
    if (j >= 0) missing -= volume(intersect(wanted, box_of(src, shape, src_shape, coordinates_of(j, src_shape))));
    most = std::max(most, missing);
  }
  return most;
}

int64_t reduced_parts(const State& src, const State& dst) {
  int64_t parts = 1;
  for (const PendingAtom& p : src.partial) {
    if (std::find(dst.partial.begin(), dst.partial.end(), p) == dst.partial.end()) parts *= p.atom.size;
  }
  return parts;
}

Bounds listed_bounds(const Topology& topology, const Mesh& src_mesh, const Mesh& dst_mesh, std::span<const int64_t> shape, int64_t element,
                     int64_t reduce_element, const State& src, const State& dst) {
  Bounds bounds;
  int64_t parts = reduced_parts(src, dst);
  int64_t elements = 0;
  if (parts > 1) {
    elements = 1;
    for (int64_t side : largest_box(dst, shape, mesh_shape(dst_mesh))) elements = saturating_mul(elements, side);
    bounds.bytes = saturating_mul(elements, std::min(element, reduce_element));
  } else {
    bounds.bytes = saturating_mul(missing_listed(src_mesh, dst_mesh, shape, src, dst), element);
  }
  if (bounds.bytes == 0 || !topology.model.empty() || !topology.tables.empty()) return bounds;
  int64_t bandwidth = 0;
  int64_t latency = INT64_MAX;
  for (const TopologyLevel& level : topology.levels) {
    bandwidth += level.mb_per_s;
    latency = std::min(latency, level.latency_ns);
  }
  bounds.ps = saturating_add(saturating_mul(latency, 1000), transfer_ps(bounds.bytes, 1, bandwidth));
  return bounds;
}

bool makes_partial(const State& src, const State& dst) {
  return std::any_of(dst.partial.begin(), dst.partial.end(),
                     [&](const PendingAtom& p) { return std::find(src.partial.begin(), src.partial.end(), p) == src.partial.end(); });
}

// A mesh dim, or a part of one, that is pending in both ends with two ops.
bool changes_op(const State& src, const State& dst) {
  return std::any_of(dst.partial.begin(), dst.partial.end(), [&](const PendingAtom& p) {
    return std::any_of(src.partial.begin(), src.partial.end(),
                       [&](const PendingAtom& q) { return q.atom.mesh_dim == p.atom.mesh_dim && q.op != p.op; });
  });
}

}  // namespace

Bounds lower_bounds(const LevelMap& levels, std::span<const int64_t> shape, int64_t element_bytes, int64_t reduce_element_bytes,
                    const State& src, const State& dst) {
  int64_t parts = reduced_parts(src, dst);
  int64_t element = parts > 1 ? std::min(element_bytes, reduce_element_bytes) : element_bytes;
  const bool makes = makes_partial(src, dst);
  if (makes && changes_op(src, dst)) return {};
  if (auto digits = align_digits(levels, shape, element, src, dst)) {
    return bound_digits(levels.topology(), digits->world, digits->change, false, digits->made);
  }
  if (makes) return {};  // uneven, and zero-filled contributions may spare any rank its bytes
  return listed_bounds(levels.topology(), levels.mesh(), levels.mesh(), shape, element_bytes, reduce_element_bytes, src, dst);
}

Bounds lower_bounds(const Request& request, const MeshTable& meshes, const Topology& topology) {
  const Mesh& src_mesh = meshes.meshes[request.src_mesh];
  const Mesh& dst_mesh = meshes.meshes[request.dst_mesh];
  const int64_t element = element_bytes(request.tensor.dtype);
  const int64_t reduce_element = request.reduce_dtype ? element_bytes(*request.reduce_dtype) : element;
  if (request.src_mesh != request.dst_mesh) {
    return listed_bounds(topology, src_mesh, dst_mesh, request.tensor.shape, element, reduce_element, request.src, request.dst);
  }
  LevelMap levels(src_mesh, topology);
  if (!request.any_dst_order) return lower_bounds(levels, request.tensor.shape, element, reduce_element, request.src, request.dst);
  Bounds least{INT64_MAX, INT64_MAX};
  for (const State& dst : all_orders(request.dst)) {
    Bounds b = lower_bounds(levels, request.tensor.shape, element, reduce_element, request.src, dst);
    least.bytes = std::min(least.bytes, b.bytes);
    least.ps = std::min(least.ps, b.ps);
  }
  return least;
}

}  // namespace meshplan
