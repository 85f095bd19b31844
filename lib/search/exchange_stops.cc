#include "search/exchange_stops.h"

#include <algorithm>
#include <tuple>

#include "base/int_math.h"
#include "search/edge_steps.h"
#include "search/even_units.h"
#include "search/exchange_step.h"
#include "tensor/box.h"
#include "transfer/sub_axes.h"

namespace meshplan {
namespace {

// A sub-axis that holds copies of the target, and the level that its ranks meet on.
struct FreeAxis {
  SubAxis sub_axis;
  int level = 0;
};

bool is_on(const SubAxis& a, size_t mesh_dim) {
  return static_cast<size_t>(a.mesh_dim) == mesh_dim && a.size > 1;
}

bool is_pending_on(const State& state, size_t mesh_dim) {
  return std::any_of(state.partial.begin(), state.partial.end(),
                     [&](const PendingSubAxis& p) { return is_on(p.sub_axis, mesh_dim); });
}

// Whether the state leaves every rank of the mesh dim the same.
bool holds_copies(const State& state, size_t mesh_dim) {
  const auto on = [&](const SubAxis& a) { return is_on(a, mesh_dim); };
  for (const auto& order : state.shards) {
    if (std::any_of(order.begin(), order.end(), on)) return false;
  }
  return !is_pending_on(state, mesh_dim);
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

// Whole mesh dims that hold copies of the target, those on inner levels first.
std::vector<SubAxis> free_dims(const State& target, const LevelMap& levels) {
  std::vector<std::pair<int, SubAxis>> dims;
  for (size_t m = levels.mesh().dims.size(); m-- > 0;) {
    const int64_t size = levels.mesh().dims[m].size;
    if (size == 1 || !holds_copies(target, m)) continue;
    int outermost = levels.regular() ? 0 : levels.levels() - 1;
    if (levels.regular()) {
      for (const LevelDigit& digit : levels.digits(m)) outermost = std::max(outermost, digit.level);
    }
    dims.push_back({outermost, SubAxis{static_cast<int32_t>(m), 1, size}});
  }
  std::stable_sort(dims.begin(), dims.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<SubAxis> sub_axes;
  for (const auto& [level, sub_axis] : dims) sub_axes.push_back(sub_axis);
  return sub_axes;
}

// Which tensor dims to cut last, each true or false.
using Avoided = std::vector<bool>;

// The state cut further over the axis: along a tensor dim that is not avoided, that it cuts evenly,
// that is the widest, in this order.
State cut_over(State state, const SubAxis& axis, const std::vector<int64_t>& shape,
               const std::vector<int64_t>& mesh_shape, const Avoided& avoided = {}) {
  const std::vector<int64_t> box = largest_box(state, shape, mesh_shape);
  std::optional<size_t> best;
  std::tuple<bool, bool, int64_t> best_rank;
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t parts = axis.size;
    for (const SubAxis& a : state.shards[d]) parts = saturating_mul(parts, a.size);
    const std::tuple rank{!avoided.empty() && avoided[d], shape[d] % parts != 0, -box[d]};
    if (best && best_rank <= rank) continue;
    best = d;
    best_rank = rank;
  }
  if (best) state.shards[*best].push_back(axis);
  return state;
}

// The part of a sub-axis inside units of `level`, or outside of them.
enum class Side : uint8_t { inside, outside };

std::vector<SubAxis> part_of(const SubAxis& sub_axis, int level, Side side,
                             const LevelMap& levels) {
  std::vector<SubAxis> parts;
  for (const LevelDigit& digit : levels.digits(static_cast<size_t>(sub_axis.mesh_dim))) {
    if ((digit.level < level) != (side == Side::inside)) continue;
    // Both are ranges of strides of one mesh dim: major first, up to `before * size`.
    const int64_t before = std::max(sub_axis.before, digit.before);
    const int64_t after = std::min(sub_axis.before * sub_axis.size, digit.before * digit.size);
    if (after > before && after % before == 0)
      parts.push_back({sub_axis.mesh_dim, before, after / before});
  }
  return parts;
}

// What the ranks of a unit inside of `level` have together; nullopt where the levels do not cut the
// state's sub-axes.
std::optional<State> outside_of(const State& state, int level, const LevelMap& levels) {
  if (!levels.regular()) return std::nullopt;
  State outside = state;
  for (auto& order : outside.shards) {
    std::vector<SubAxis> kept;
    for (const SubAxis& sub_axis : order) {
      if (!levels.aligned(sub_axis)) return std::nullopt;
      const std::vector<SubAxis> parts = part_of(sub_axis, level, Side::outside, levels);
      kept.insert(kept.end(), parts.begin(), parts.end());
    }
    order = std::move(kept);
  }
  return outside;
}

// Tensor dims that units of the level cut; all that are cut where levels do not cut sub-axes.
Avoided cut_outside(const State& state, int level, const LevelMap& levels) {
  const std::optional<State> outside = outside_of(state, level, levels);
  Avoided cut;
  for (const auto& order : (outside ? *outside : state).shards) cut.push_back(!order.empty());
  return cut;
}

// What each unit needs of the target, spread over all its ranks along a tensor dim that neither
// side cuts over units: whichever ranks have it, each fetches the same share over the outer links.
// Not over mesh dims on which something stays pending: there each rank has summands of its own.
//
//     hosts of 2, mesh 2 x 2    S(0)[0]S(0)[1] -> RS(0)    stop RS(1)
//     to RS(0) at once, rank 0 keeps a half of what it needs, rank 1 fetches all of it
std::optional<State> spread_in_units(const State& target, int level, const LevelMap& levels,
                                     const Avoided& source, const std::vector<int64_t>& shape) {
  std::optional<State> state = outside_of(target, level, levels);
  if (!state || shape.empty()) return std::nullopt;
  Avoided avoided = cut_outside(target, level, levels);
  for (size_t d = 0; d < shape.size(); ++d) avoided[d] = avoided[d] || source[d];
  const auto sizes = mesh_shape(levels.mesh());
  for (size_t m = 0; m < levels.mesh().dims.size(); ++m) {
    if (is_pending_on(target, m)) continue;
    const SubAxis whole{static_cast<int32_t>(m), 1, levels.mesh().dims[m].size};
    for (const SubAxis& axis : part_of(whole, level, Side::inside, levels)) {
      if (axis.size > 1) *state = cut_over(std::move(*state), axis, shape, sizes, avoided);
    }
  }
  return state;
}

// What each unit has of the state, spread over its ranks along tensor dim `d`.
std::optional<State> spread_along(const State& state, int level, const LevelMap& levels, size_t d) {
  std::optional<State> spread = outside_of(state, level, levels);
  if (!spread) return std::nullopt;
  for (size_t m = 0; m < levels.mesh().dims.size(); ++m) {
    const SubAxis whole{static_cast<int32_t>(m), 1, levels.mesh().dims[m].size};
    for (const SubAxis& axis : part_of(whole, level, Side::inside, levels)) {
      if (axis.size > 1) spread->shards[d].push_back(axis);
    }
  }
  return spread;
}

// Each rank of a unit has one part along tensor dim `d` of what the unit has, then the same part of
// what it wants: over the outer links a rank meets one rank of each other unit.
std::optional<Stops> by_rails(const Request& request, int level, const LevelMap& levels, size_t d) {
  const State target = landing_of(request);
  std::optional<State> before = spread_along(request.src, level, levels, d);
  std::optional<State> behind = spread_along(target, level, levels, d);
  if (!before || !behind) return std::nullopt;
  Stops stops;
  if (!(*before == request.src)) stops.push_back(std::move(*before));
  stops.push_back(std::move(*behind));
  return stops;
}

// Joins leading factors of one mesh dim that stand one behind the other, as states have them.
void join_axes(State& state) {
  for (auto& order : state.shards) {
    std::vector<SubAxis> joined;
    for (const SubAxis& a : order) {
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

// Families of one level are numbered from a multiple of this, those of other units from another.
constexpr int families_of_level = 16;
constexpr int families_of_units = 8 * families_of_level;
// Those that share while the rest crosses come behind all of them.
constexpr int first_of_shared = 1 << 30;

// Of which families stops are listed.
enum class Families : uint8_t { all, of_inner_units };

// The families by these units, numbered from `family` on.
void add_families(Families which, const Request& request, const LevelMap& src_levels,
                  const LevelMap& dst_levels, int family, std::vector<FamilyStops>& all) {
  const State target = landing_of(request);
  const std::vector<FreeAxis> axes = free_axes(target, dst_levels);
  const auto shape = mesh_shape(dst_levels.mesh());
  // `target` cut over the axes whose level lies in [from, to), inner levels first.
  const auto cut = [&](const State& start, int from, int to, const Avoided& avoided = {}) {
    State state = start;
    for (int level = from; level < to; ++level) {
      for (const FreeAxis& axis : axes) {
        if (axis.level == level)
          state = cut_over(state, axis.sub_axis, request.tensor.shape, shape, avoided);
      }
    }
    return state;
  };
  // Tensor dims that the source does not cut: what is cut along the others comes from few ranks.
  Avoided uncut;
  for (const auto& order : request.src.shards) uncut.push_back(order.empty());
  const auto add = [&](int number, Stops stops) {
    for (State& stop : stops) join_axes(stop);
    stops.push_back(target);
    stops.erase(std::unique(stops.begin(), stops.end()), stops.end());
    all.push_back({number, std::move(stops)});
  };
  const int levels = dst_levels.levels();
  if (which == Families::all) add(family, {cut(target, 0, levels)});
  for (int level = 1; level < levels; ++level) {
    int number = family + level * families_of_level;
    const State inner = cut(target, 0, level);
    add(number++, {cut(inner, level, levels), inner});
    add(number++, {inner});
    const State along = cut(target, 0, level, uncut);
    add(number++, {cut(along, level, levels, uncut), along});
    add(number++, {along});
    if (which == Families::of_inner_units) continue;
    add(number++, {cut(target, level, levels)});
    const std::optional<State> spread =
        spread_in_units(target, level, dst_levels, cut_outside(request.src, level, src_levels),
                        request.tensor.shape);
    if (spread) add(number, {*spread});
    if (request.src_mesh != request.dst_mesh || !request.src.partial.empty()) continue;
    const Avoided cut_before = cut_outside(request.src, level, src_levels);
    const Avoided cut_behind = cut_outside(target, level, dst_levels);
    for (size_t d = 0; d < cut_before.size(); ++d) {
      ++number;
      if (cut_before[d] || cut_behind[d]) continue;
      if (auto rails = by_rails(request, level, dst_levels, d)) add(number, *std::move(rails));
    }
  }
}

bool on_same_ranks(const Mesh& a, const Mesh& b) {
  if (&a == &b) return true;
  std::vector<int64_t> of_a = materialise(a);
  std::vector<int64_t> of_b = materialise(b);
  std::sort(of_a.begin(), of_a.end());
  std::sort(of_b.begin(), of_b.end());
  return of_a == of_b;
}

// Groups over a part of a mesh dim are not declared.
bool is_cut_by_whole_dims(const State& state, const Mesh& mesh) {
  const std::vector<SubAxis> cuts = shard_sub_axes(state);
  return !cuts.empty() && std::all_of(cuts.begin(), cuts.end(), [&](const SubAxis& a) {
    return a.before == 1 && a.size == mesh.dims[static_cast<size_t>(a.mesh_dim)].size;
  });
}

}  // namespace

std::vector<FamilyStops> stops_of(const PlanQuestion& question, const LevelMap& src_levels,
                                  const LevelMap& dst_levels) {
  const Request& request = *question.request;
  std::vector<FamilyStops> all{{0, {landing_of(request)}}};
  int family = 1;
  add_families(Families::all, request, src_levels, dst_levels, family, all);
  for (const auto& even : even_units_of(dst_levels)) {
    family += families_of_units;
    add_families(Families::of_inner_units, request, src_levels, even->levels(), family, all);
  }
  const bool reduces = !request.src.partial.empty() || !request.dst.partial.empty();
  if (!dst_levels.regular() && dst_levels.levels() > 1 && !reduces) {
    const Stops all_cut = all[1].stops;
    family += families_of_units;
    all.push_back({family, {landing_of(request)}, 2});
    all.push_back({family + 1, all_cut, 2});
  }
  return all;
}

void add_shared_while_crossing(const PlanQuestion& question, std::vector<FamilyStops>& families) {
  const Request& request = *question.request;
  if (!request.src.partial.empty() || !request.dst.partial.empty()) return;
  int number = first_of_shared;
  for (size_t i = 0, all = families.size(); i < all; ++i) {
    const Stops& stops = families[i].stops;
    if (families[i].phases != 1 || stops.size() != 3) continue;
    families.push_back({number++, {stops.front(), stops.back()}, 2});
  }
}

std::vector<Stops> gathered_stops(const PlanQuestion& question, const LevelMap& dst_levels) {
  const Request& request = *question.request;
  const State target = landing_of(request);
  const auto sizes = mesh_shape(dst_levels.mesh());
  const std::vector<SubAxis> dims = free_dims(target, dst_levels);
  std::vector<Stops> all;
  if (dims.empty()) return all;
  const std::vector<int64_t> box = largest_box(target, request.tensor.shape, sizes);
  for (size_t d = 0; d < box.size(); ++d) {
    if (box[d] < product_of_sizes(dims)) continue;
    Stops& stops = all.emplace_back(Stops{target});
    for (const SubAxis& dim : dims) {
      stops.push_back(stops.back());
      stops.back().shards[d].push_back(dim);
    }
    std::reverse(stops.begin(), stops.end());
  }
  return all;
}

std::vector<Rails> rails_of(const PlanQuestion& question, const LevelMap& src_levels,
                            const LevelMap& dst_levels) {
  const Request& request = *question.request;
  std::vector<Rails> all;
  if (!request.src.partial.empty() || !request.dst.partial.empty()) return all;
  if (!src_levels.regular() || !dst_levels.regular()) return all;
  if (!on_same_ranks(src_levels.mesh(), dst_levels.mesh())) return all;
  for (int level = 1; level < src_levels.levels(); ++level) {
    const std::optional<State> needed = outside_of(landing_of(request), level, dst_levels);
    const std::optional<State> outside = outside_of(request.src, level, src_levels);
    if (!needed || !outside || !shard_sub_axes(*needed).empty() ||
        !is_cut_by_whole_dims(*outside, src_levels.mesh()))
      continue;
    for (size_t d = 0; d < outside->shards.size(); ++d) {
      std::optional<State> before = spread_along(request.src, level, src_levels, d);
      if (!outside->shards[d].empty() || !before) continue;
      if (request.tensor.shape[d] < product_of_sizes(before->shards[d])) continue;
      join_axes(*before);
      Rails& rails = all.emplace_back(Rails{*before, {}});
      State gathered = *before;
      for (size_t other = 0; other < gathered.shards.size(); ++other) {
        while (other != d && !gathered.shards[other].empty()) {
          gathered.shards[other].pop_back();
          rails.gathered.push_back(gathered);
        }
      }
    }
  }
  return all;
}

}  // namespace meshplan
