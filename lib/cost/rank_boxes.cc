#include "cost/rank_boxes.h"

#include <algorithm>
#include <utility>

#include "transfer/sub_axes.h"

namespace meshplan {
namespace {

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

// Of ranks that differ on what is pending alone the number is one.
std::vector<int32_t> cells_of(const State& dst, const std::vector<int64_t>& mesh_shape) {
  // Parts of a mesh dim that are pending line up: they are of one state.
  return numbers_on(
      sub_axes_without(every_dim(mesh_shape), partial_sub_axes(dst), mesh_shape).value(),
      mesh_shape);
}

}  // namespace

BoxGrid::BoxGrid(const State& state, std::span<const int64_t> shape,
                 std::span<const int64_t> mesh_shape)
    : mesh_sizes_(mesh_shape.begin(), mesh_shape.end()),
      of_ranks_(numbers_on(shard_sub_axes(state), mesh_shape)),
      sides_(shape.size()),
      step_(shape.size(), 1) {
  for (size_t d = shape.size(); d-- > 0;) {
    step_[d] = count_;
    sides_[d] = shard_intervals(state.shards[d], shape[d], mesh_shape);
    count_ *= std::ssize(sides_[d]);
  }
  // Box by box, shard by shard of the last tensor dim, whose sides change with every one.
  boxes_.reserve(static_cast<size_t>(count_) * dims());
  volumes_.reserve(static_cast<size_t>(count_));
  std::vector<size_t> shards(dims(), 0);
  for (int64_t box = 0; box < count_; ++box) {
    int64_t volume = 1;
    for (size_t d = 0; d < dims(); ++d) {
      boxes_.push_back(sides_[d][shards[d]]);
      volume *= width(boxes_.back());
    }
    volumes_.push_back(volume);
    for (size_t d = dims(); d-- > 0 && ++shards[d] == sides_[d].size();) shards[d] = 0;
  }
}

int64_t shared_elements(const BoxGrid& a, int32_t box_a, const BoxGrid& b, int32_t box_b) {
  const std::span<const Interval> x = a.box(box_a);
  const std::span<const Interval> y = b.box(box_b);
  int64_t elements = 1;
  for (size_t d = 0; d < x.size(); ++d) {
    const int64_t side = overlap_width(x[d], y[d]);
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
          inside *= covered[d].inside(a.box(box)[d]);
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

// Of one copy of the source's mesh, row-major.
std::vector<RankBoxes> list_sources(const Mesh& mesh, int64_t copy, const BoxGrid& held,
                                    const State& src) {
  const auto ids = rank_ids(mesh, copy);
  const auto contributions = numbers_on(partial_sub_axes(src), mesh_shape(mesh));
  std::vector<RankBoxes> ranks;
  ranks.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i)
    ranks.push_back({ids[i], held.of_ranks()[i], contributions[i], -1, -1});
  return ranks;
}
// To the ranks of the target's mesh, row-major.
void add_targets(const Mesh& mesh, const BoxGrid& wanted, const State& dst,
                 std::vector<RankBoxes>& ranks) {
  const auto cells = cells_of(dst, mesh_shape(mesh));
  for (size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].wanted = wanted.of_ranks()[i];
    ranks[i].cell = cells[i];
  }
}

// Both by id: ranks that are in both lists once.
std::vector<RankBoxes> joined(const std::vector<RankBoxes>& sources,
                              const std::vector<RankBoxes>& targets) {
  std::vector<RankBoxes> ranks;
  ranks.reserve(sources.size() + targets.size());
  auto from = sources.begin();
  auto to = targets.begin();
  while (from != sources.end() || to != targets.end()) {
    const bool holds = from != sources.end() && (to == targets.end() || from->id <= to->id);
    const bool wants = to != targets.end() && (from == sources.end() || to->id <= from->id);
    RankBoxes& rank = ranks.emplace_back(holds ? *from : *to);
    if (holds && wants) {
      rank.wanted = to->wanted;
      rank.cell = to->cell;
    }
    if (holds) ++from;
    if (wants) ++to;
  }
  return ranks;
}

}  // namespace

Participants list_participants(const Mesh& src_mesh, const Mesh& dst_mesh, int64_t copy,
                               std::span<const int64_t> shape, const State& src, const State& dst) {
  Participants all{BoxGrid(src, shape, mesh_shape(src_mesh)),
                   BoxGrid(dst, shape, mesh_shape(dst_mesh))};
  all.contributions = pending_product(src);
  all.holders = mesh_size(src_mesh) / (all.held.count() * all.contributions);
  all.cell_ranks = pending_product(dst);
  all.cells = mesh_size(dst_mesh) / (all.wanted.count() * all.cell_ranks);
  all.ranks = list_sources(src_mesh, copy, all.held, src);
  if (&src_mesh == &dst_mesh) {
    add_targets(dst_mesh, all.wanted, dst, all.ranks);
    sort_by_id(all.ranks);
    return all;
  }
  std::vector<RankBoxes> targets;
  for (const int64_t id : rank_ids(dst_mesh, copy)) targets.emplace_back().id = id;
  add_targets(dst_mesh, all.wanted, dst, targets);
  sort_by_id(all.ranks);
  sort_by_id(targets);
  all.ranks = joined(all.ranks, targets);
  return all;
}

}  // namespace meshplan
