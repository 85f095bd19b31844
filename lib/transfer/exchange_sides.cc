#include "transfer/exchange_sides.h"

#include <algorithm>
#include <utility>

#include "tensor/box.h"
#include "transfer/rank_places.h"

namespace meshplan {

const std::vector<int32_t>& NumbersOnLists::of(const Mesh& mesh, const std::vector<SubAxis>& list) {
  constexpr size_t most = size_t{1} << 22;  // remembered
  if (numbers_ > most) {
    known_.clear();
    numbers_ = 0;
  }
  const auto [known, fresh] = known_.try_emplace(list);
  if (fresh) {
    known->second = numbers_on(list, mesh_shape(mesh));
    numbers_ += known->second.size();
  }
  return known->second;
}

namespace {

bool has_empty(const std::vector<Interval>& intervals) {
  return std::any_of(intervals.begin(), intervals.end(),
                     [](const Interval& interval) { return width(interval) == 0; });
}

// Marks as -1 the places of boxes that are empty. `intervals`: of each tensor dim, by number.
void mark_empty(const std::vector<std::vector<Interval>>& intervals, std::vector<int32_t>& place) {
  const size_t dims = intervals.size();
  for (size_t i = 0; i < place.size(); i += dims) {
    bool empty = false;
    for (size_t d = 0; d < dims; ++d)
      empty = empty || width(intervals[d][static_cast<size_t>(place[i + d])]) == 0;
    for (size_t d = 0; d < dims && empty; ++d) place[i + d] = -1;
  }
}

// `intervals`: of each tensor dim, by number; the places are these numbers. They become those among
// the intervals of boxes that are not empty, which ascend as numbers do. `all`: each is of some
// box.
void number_places(std::vector<std::vector<Interval>> intervals, bool all, SideBoxes& side) {
  const size_t dims = intervals.size();
  std::vector<int32_t>& place = side.places.place;
  const bool some_empty = std::any_of(intervals.begin(), intervals.end(), has_empty);
  if (some_empty) mark_empty(intervals, place);
  if (all && !some_empty) {
    side.places.grid = std::move(intervals);
    return;
  }
  side.places.grid.resize(dims);
  std::vector<uint8_t> is_taken;
  std::vector<int32_t> known;
  for (size_t d = 0; d < dims; ++d) {
    is_taken.assign(intervals[d].size(), 0);
    for (size_t i = d; i < place.size(); i += dims) {
      if (place[i] >= 0) is_taken[static_cast<size_t>(place[i])] = 1;
    }
    known.assign(intervals[d].size(), 0);
    side.places.grid[d].reserve(known.size());
    for (size_t number = 0; number < known.size(); ++number) {
      if (is_taken[number] == 0) continue;
      known[number] = static_cast<int32_t>(side.places.grid[d].size());
      side.places.grid[d].push_back(intervals[d][number]);
    }
    if (side.places.grid[d].size() == known.size()) continue;  // they are the places
    for (size_t i = d; i < place.size(); i += dims) {
      if (place[i] >= 0) place[i] = known[static_cast<size_t>(place[i])];
    }
  }
}

}  // namespace

SideBoxes side_of(const Mesh& mesh, const State& state, std::span<const int64_t> shape,
                  const std::vector<SubAxis>& reduced, std::span<const int64_t> indices,
                  std::vector<int64_t> ids, NumbersOnLists& numbers) {
  SideBoxes side;
  side.dims = static_cast<int>(shape.size());
  side.id = std::move(ids);
  const size_t dims = shape.size();
  side.places.place.resize(indices.size() * dims);
  const std::vector<int64_t> sizes = mesh_shape(mesh);
  // The intervals of each tensor dim, by the number on its sub-axes.
  std::vector<std::vector<Interval>> intervals;
  intervals.reserve(dims);
  for (size_t d = 0; d < dims; ++d) {
    intervals.push_back(shard_intervals(state.shards[d], shape[d], sizes));
    numbers.visit(mesh, state.shards[d], indices,
                  [&](size_t i, int32_t number) { side.places.place[i * dims + d] = number; });
  }
  if (!reduced.empty()) {
    side.contribution.resize(indices.size());
    numbers.visit(mesh, reduced, indices,
                  [&](size_t i, int32_t number) { side.contribution[i] = number; });
  }
  const bool all = static_cast<int64_t>(indices.size()) == mesh_size(mesh);
  number_places(std::move(intervals), all, side);
  return side;
}

SideBoxes whole_side(const Mesh& mesh, const State& state, std::span<const int64_t> shape,
                     const std::vector<SubAxis>& reduced) {
  std::vector<int64_t> ids;
  std::vector<int64_t> indices;
  for (const MeshRank& rank : ranks_by_id(mesh)) {
    ids.push_back(rank.id);
    indices.push_back(rank.index);
  }
  NumbersOnLists numbers;
  return side_of(mesh, state, shape, reduced, indices, std::move(ids), numbers);
}

}  // namespace meshplan
