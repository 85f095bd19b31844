#include "cost/rank_boxes.h"

#include <algorithm>
#include <utility>

namespace meshplan {
namespace {

// A number of every rank, row-major, that is a sum over mesh dims: `part[m][c]` for coordinate c on
// mesh dim m.
std::vector<int32_t> sums(const std::vector<std::vector<int32_t>>& part) {
  size_t ranks = 1;
  for (const auto& column : part) ranks *= column.size();
  std::vector<int32_t> all{0};
  all.reserve(ranks);
  for (size_t m = part.size(); m-- > 0;) {
    const size_t block = all.size();
    for (size_t c = 1; c < part[m].size(); ++c) {
      for (size_t i = 0; i < block; ++i) all.push_back(all[i] + part[m][c]);
    }
    for (size_t i = 0; i < block; ++i) all[i] += part[m][0];
  }
  return all;
}

std::vector<std::vector<int32_t>> zeros(std::span<const int64_t> mesh_shape) {
  std::vector<std::vector<int32_t>> part;
  for (const int64_t size : mesh_shape) part.emplace_back(static_cast<size_t>(size), 0);
  return part;
}

// Adds the sub-axis's coordinate times `weight`.
void weigh(std::vector<std::vector<int32_t>>& part, std::span<const int64_t> mesh_shape,
           const SubAxis& sub_axis, int64_t weight) {
  const auto m = static_cast<size_t>(sub_axis.mesh_dim);
  for (size_t c = 0; c < part[m].size(); ++c) {
    part[m][c] += static_cast<int32_t>(
        weight * sub_axis_coordinate(sub_axis, mesh_shape[m], static_cast<int64_t>(c)));
  }
}

std::vector<int64_t> rank_ids(const Mesh& mesh, int64_t copy) {
  if (copy == 0) return materialise(mesh);
  std::vector<size_t> dims(mesh.dims.size());
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = i;
  std::vector<int64_t> ids = offsets(group_layout(mesh, dims));
  const int64_t base = position_of(mesh, copy, 0);
  for (int64_t& id : ids) id = rank_at(*mesh.universe, base + id);
  return ids;
}

int64_t pending_product(const State& state) {
  int64_t product = 1;
  for (const PendingSubAxis& p : state.partial) product *= p.sub_axis.size;
  return product;
}

std::vector<int32_t> contributions_of(const State& src, std::span<const int64_t> mesh_shape) {
  auto part = zeros(mesh_shape);
  int64_t weight = 1;
  for (const PendingSubAxis& p : src.partial) {
    weigh(part, mesh_shape, p.sub_axis, weight);
    weight *= p.sub_axis.size;
  }
  return sums(part);
}

// The row-major index of the cell's first rank.
std::vector<int32_t> cells_of(const State& dst, std::span<const int64_t> mesh_shape) {
  auto part = zeros(mesh_shape);
  int64_t stride = 1;
  for (size_t m = mesh_shape.size(); m-- > 0;) {
    weigh(part, mesh_shape, {static_cast<int32_t>(m), 1, mesh_shape[m]}, stride);
    for (const PendingSubAxis& p : dst.partial) {
      if (static_cast<size_t>(p.sub_axis.mesh_dim) == m) {
        weigh(part, mesh_shape, p.sub_axis,
              -stride * (mesh_shape[m] / (p.sub_axis.before * p.sub_axis.size)));
      }
    }
    stride *= mesh_shape[m];
  }
  return sums(part);
}

}  // namespace

BoxGrid::BoxGrid(const State& state, std::span<const int64_t> shape,
                 std::span<const int64_t> mesh_shape)
    : sides_(shape.size()), step_(shape.size(), 1) {
  auto part = zeros(mesh_shape);
  for (size_t d = shape.size(); d-- > 0;) {
    step_[d] = count_;
    sides_[d] = shard_intervals(state.shards[d], shape[d], mesh_shape);
    int64_t weight = step_[d];
    for (size_t a = state.shards[d].size(); a-- > 0;) {
      weigh(part, mesh_shape, state.shards[d][a], weight);
      weight *= state.shards[d][a].size;
    }
    count_ *= std::ssize(sides_[d]);
  }
  of_ranks_ = sums(part);
  volumes_ = {1};
  for (const std::vector<Interval>& sides : sides_) {
    std::vector<int64_t> next;
    next.reserve(volumes_.size() * sides.size());
    for (const int64_t volume : volumes_) {
      for (const Interval& side : sides) next.push_back(volume * width(side));
    }
    volumes_ = std::move(next);
  }
}

int64_t shared_elements(const BoxGrid& a, int32_t box_a, const BoxGrid& b, int32_t box_b) {
  int64_t elements = 1;
  for (size_t d = 0; d < a.dims(); ++d) {
    const Interval& x = a.side_of(d, box_a);
    const Interval& y = b.side_of(d, box_b);
    const int64_t side = overlap_width(x, y);
    if (side == 0) return 0;
    elements *= side;
  }
  return elements;
}

namespace {

// Shards of one tensor dim, ascending, and how much they cover.
class Covered {
 public:
  Covered(const BoxGrid& grid, size_t dim, std::span<const int32_t> boxes) {
    std::vector<size_t> shards;
    shards.reserve(boxes.size());
    for (const int32_t box : boxes) shards.push_back(grid.shard(dim, box));
    std::sort(shards.begin(), shards.end());
    shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
    count_ = std::ssize(shards);
    for (const size_t shard : shards) {
      const Interval& side = grid.side(dim, shard);
      if (width(side) == 0) continue;
      sides_.push_back(side);
      before_.push_back(total_);
      total_ += width(side);
    }
  }
  [[nodiscard]] int64_t count() const { return count_; }
  [[nodiscard]] int64_t inside(const Interval& i) const {
    return width(i) == 0 ? 0 : below(i.hi) - below(i.lo);
  }

 private:
  // Covered elements below `end`.
  [[nodiscard]] int64_t below(int64_t end) const {
    const auto next = std::partition_point(sides_.begin(), sides_.end(),
                                           [&](const Interval& side) { return side.lo < end; });
    if (next == sides_.begin()) return 0;
    const auto last = static_cast<size_t>(next - sides_.begin()) - 1;
    return before_[last] + std::min(width(sides_[last]), end - sides_[last].lo);
  }
  int64_t count_ = 0;
  int64_t total_ = 0;
  std::vector<Interval> sides_;
  std::vector<int64_t> before_;
};

constexpr size_t few_pairs = 128;
constexpr size_t most_pairs = 8'192;

}  // namespace

int64_t shared_elements(const BoxGrid& a, std::span<const int32_t> boxes_a, const BoxGrid& b,
                        std::span<const int32_t> boxes_b) {
  const size_t pairs = boxes_a.size() * boxes_b.size();
  int64_t elements = 0;
  if (pairs > few_pairs) {
    std::vector<Covered> covered;
    int64_t product = 1;
    for (size_t d = 0; d < b.dims(); ++d) product *= covered.emplace_back(b, d, boxes_b).count();
    if (product == std::ssize(boxes_b) || pairs > most_pairs) {
      for (const int32_t box : boxes_a) {
        int64_t inside = 1;
        for (size_t d = 0; d < a.dims() && inside != 0; ++d)
          inside *= covered[d].inside(a.side_of(d, box));
        elements += inside;
      }
      return elements;
    }
  }
  for (const int32_t x : boxes_a) {
    for (const int32_t y : boxes_b) elements += shared_elements(a, x, b, y);
  }
  return elements;
}

namespace {

void sort_by_id(std::vector<RankBoxes>& ranks) {
  auto by_id = [](const RankBoxes& a, const RankBoxes& b) { return a.id < b.id; };
  if (!std::is_sorted(ranks.begin(), ranks.end(), by_id))
    std::sort(ranks.begin(), ranks.end(), by_id);
}

void list_on_one_mesh(const Mesh& mesh, int64_t copy, const State& src, const State& dst,
                      Participants& all) {
  const auto shape = mesh_shape(mesh);
  const auto ids = rank_ids(mesh, copy);
  const auto& held = all.held.of_ranks();
  const auto& wanted = all.wanted.of_ranks();
  const auto contributions = contributions_of(src, shape);
  const auto cells = cells_of(dst, shape);
  all.ranks.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i)
    all.ranks.push_back({ids[i], held[i], contributions[i], wanted[i], cells[i]});
  sort_by_id(all.ranks);
}

}  // namespace

Participants list_participants(const Mesh& src_mesh, const Mesh& dst_mesh, int64_t copy,
                               std::span<const int64_t> shape, const State& src, const State& dst) {
  const auto src_shape = mesh_shape(src_mesh);
  const auto dst_shape = mesh_shape(dst_mesh);
  Participants all{BoxGrid(src, shape, src_shape), BoxGrid(dst, shape, dst_shape)};
  all.contributions = pending_product(src);
  all.holders = mesh_size(src_mesh) / (all.held.count() * all.contributions);
  all.cell_ranks = pending_product(dst);
  all.cells = mesh_size(dst_mesh) / (all.wanted.count() * all.cell_ranks);

  if (&src_mesh == &dst_mesh) {
    list_on_one_mesh(src_mesh, copy, src, dst, all);
    return all;
  }
  std::vector<RankBoxes> sources;
  {
    const auto ids = rank_ids(src_mesh, copy);
    const auto& held = all.held.of_ranks();
    const auto contributions = contributions_of(src, src_shape);
    for (size_t i = 0; i < ids.size(); ++i)
      sources.push_back({ids[i], held[i], contributions[i], -1, -1});
    sort_by_id(sources);
  }
  std::vector<RankBoxes> targets;
  {
    const auto ids = rank_ids(dst_mesh, copy);
    const auto& wanted = all.wanted.of_ranks();
    const auto cells = cells_of(dst, dst_shape);
    for (size_t i = 0; i < ids.size(); ++i) targets.push_back({ids[i], -1, 0, wanted[i], cells[i]});
    sort_by_id(targets);
  }
  all.ranks.reserve(sources.size() + targets.size());
  auto from = sources.begin();
  auto to = targets.begin();
  while (from != sources.end() || to != targets.end()) {
    const bool holds = from != sources.end() && (to == targets.end() || from->id <= to->id);
    const bool wants = to != targets.end() && (from == sources.end() || to->id <= from->id);
    RankBoxes& rank = all.ranks.emplace_back(holds ? *from : *to);
    if (holds && wants) {
      rank.wanted = to->wanted;
      rank.cell = to->cell;
    }
    if (holds) ++from;
    if (wants) ++to;
  }
  return all;
}

}  // namespace meshplan
