#include "transfer/exchange_ranks.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "base/int_math.h"

namespace meshplan {
namespace {

bool is_empty(std::span<const Interval> box) {
  return std::any_of(box.begin(), box.end(), [](const Interval& i) { return width(i) == 0; });
}

std::span<const Interval> box_at(const SideBoxes& side, size_t i) {
  const auto dims = static_cast<size_t>(side.dims);
  return std::span(side.box).subspan(i * dims, dims);
}

std::span<const int32_t> place_at(const SideBoxes& side, const GridPlaces& places, size_t i) {
  const auto dims = static_cast<size_t>(side.dims);
  return std::span(places.place).subspan(i * dims, dims);
}

// Of a box on its grid.
bool is_empty(std::span<const int32_t> place) { return !place.empty() && place[0] < 0; }

void append_box(const GridPlaces& places, std::span<const int32_t> place,
                std::vector<Interval>& boxes) {
  for (size_t d = 0; d < place.size(); ++d)
    boxes.push_back(places.grid[d][static_cast<size_t>(place[d])]);
}

// The distinct intervals of a dim are disjoint.
GridPlaces find_places(const SideBoxes& side) {
  GridPlaces out;
  out.grid.resize(static_cast<size_t>(side.dims));
  for (size_t i = 0; i < side.size(); ++i) {
    const auto box = box_at(side, i);
    if (is_empty(box)) continue;
    for (size_t d = 0; d < box.size(); ++d) {
      if (out.grid[d].empty() || out.grid[d].back() != box[d]) out.grid[d].push_back(box[d]);
    }
  }
  const auto before = [](const Interval& a, const Interval& b) { return a.lo < b.lo; };
  for (auto& intervals : out.grid) {
    std::sort(intervals.begin(), intervals.end(), before);
    intervals.erase(std::unique(intervals.begin(), intervals.end()), intervals.end());
  }
  for (size_t i = 0; i < side.size(); ++i) {
    const auto box = box_at(side, i);
    const bool empty = is_empty(box);
    for (size_t d = 0; d < box.size(); ++d) {
      const auto& grid = out.grid[d];
      const auto at = std::lower_bound(grid.begin(), grid.end(), box[d], before) - grid.begin();
      out.place.push_back(empty ? -1 : static_cast<int32_t>(at));
    }
  }
  return out;
}

// Those of the side, or `found`.
const GridPlaces& places_of(const SideBoxes& side, GridPlaces& found) {
  if (!side.places.grid.empty()) return side.places;
  found = find_places(side);
  return found;
}

// For each interval of a list the run of those of another that meet it. Both ascend.
std::vector<std::pair<int32_t, int32_t>> meetings(const std::vector<Interval>& wanted,
                                                  const std::vector<Interval>& held) {
  std::vector<std::pair<int32_t, int32_t>> runs;
  runs.reserve(wanted.size());
  size_t begin = 0;
  size_t end = 0;
  for (const Interval& one : wanted) {
    while (begin < held.size() && held[begin].hi <= one.lo) ++begin;
    end = std::max(end, begin);
    while (end < held.size() && held[end].lo < one.hi) ++end;
    runs.emplace_back(static_cast<int32_t>(begin), static_cast<int32_t>(end));
  }
  return runs;
}

// Numbers boxes of a grid, each with a contribution, in the order in which they are first seen.
// Dense where the grid is not much larger than the ranks, else by hash.
class Numbers {
 public:
  Numbers(const std::vector<std::vector<Interval>>& grid, int64_t contributions, size_t ranks) {
    int64_t cells = contributions;
    sizes_.reserve(grid.size());
    for (const auto& intervals : grid) {
      sizes_.push_back(static_cast<int64_t>(intervals.size()));
      cells = saturating_mul(cells, std::max<int64_t>(1, sizes_.back()));
    }
    if (cells <= static_cast<int64_t>(16 * ranks + 4096))
      dense_.assign(static_cast<size_t>(cells), -1);
    most_ = static_cast<size_t>(std::min(cells, static_cast<int64_t>(ranks)));
  }
  // Boxes that get a number, at most.
  [[nodiscard]] size_t most() const { return most_; }
  // The keys of all ranks' boxes: mixed radix over the grid, the contribution slowest; what empty
  // boxes have says nothing.
  [[nodiscard]] std::vector<int64_t> keys(const SideBoxes& side, const GridPlaces& places,
                                          const std::vector<int64_t>& contribution) const {
    std::vector<int64_t> keys = contribution;
    keys.resize(side.size(), 0);
    const size_t dims = sizes_.size();
    for (size_t d = 0; d < dims; ++d) {
      const int64_t size = sizes_[d];
      const int32_t* place = places.place.data() + d;
      for (int64_t& key : keys) {
        key = key * size + *place;
        place += dims;
      }
    }
    return keys;
  }
  int32_t& operator[](int64_t at) {
    if (!dense_.empty()) return dense_[static_cast<size_t>(at)];
    return hashed_.emplace(at, -1).first->second;
  }
  // -1: none.
  [[nodiscard]] int32_t find(int64_t at) const {
    if (!dense_.empty()) return dense_[static_cast<size_t>(at)];
    const auto found = hashed_.find(at);
    return found == hashed_.end() ? -1 : found->second;
  }

 private:
  size_t most_ = 0;
  std::vector<int64_t> sizes_;  // of the grid
  std::vector<int32_t> dense_;
  std::unordered_map<int64_t, int32_t> hashed_;
};

// Contributions as 0, 1, 2, ... by ascending value.
std::vector<int64_t> ranked(const std::vector<int64_t>& values) {
  std::vector<int64_t> distinct = values;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<int64_t> out;
  for (int64_t v : values)
    out.push_back(std::lower_bound(distinct.begin(), distinct.end(), v) - distinct.begin());
  return out;
}

// The overlaps of one wanted box: every tuple of source intervals that it meets, in every
// contribution.
class OverlapLister {
 public:
  OverlapLister(const std::vector<std::vector<Interval>>& grid,
                const std::vector<std::vector<Interval>>& wanted_grid, int64_t contributions,
                Numbers& numbers, std::vector<Overlap>& out)
      : grid_(grid), contributions_(contributions), numbers_(numbers), out_(out) {
    for (const auto& intervals : grid) cells_ *= static_cast<int64_t>(intervals.size());
    all_cells_ = contributions * cells_;
    meetings_.reserve(grid.size());
    meeting_.reserve(grid.size());
    for (size_t d = 0; d < grid.size(); ++d) meetings_.push_back(meetings(wanted_grid[d], grid[d]));
  }
  // `place`: of the box on its grid. The next one to be listed.
  void take(std::span<const Interval> wanted, std::span<const int32_t> place) {
    wanted_ = wanted;
    meeting_.clear();
    for (size_t d = 0; d < wanted.size(); ++d)
      meeting_.push_back(meetings_[d][static_cast<size_t>(place[d])]);
  }
  // It meets no more shards than this.
  [[nodiscard]] int64_t possible() const {
    int64_t most = contributions_;
    for (const auto& [first, last] : meeting_) most = saturating_mul(most, last - first);
    return most;
  }
  void list() {
    if (wanted_.empty()) {
      emit({});
    } else {
      list_from(0, {});
    }
  }

 private:
  // Of the dims so far.
  struct Part {
    int32_t dim = 0;
    int64_t elements = 1;
    int64_t longest = 0;
    int64_t cell = 0;
  };
  // With the interval at this place of dim d.
  [[nodiscard]] Part with(const Part& part, size_t d, int32_t at) const {
    const int64_t side = overlap_width(grid_[d][static_cast<size_t>(at)], wanted_[d]);
    const bool longer = side > part.longest;
    return {longer ? static_cast<int32_t>(d) : part.dim, saturating_mul(part.elements, side),
            longer ? side : part.longest, part.cell * std::ssize(grid_[d]) + at};
  }
  // The last two dims in one loop: most rows are short.
  void list_from(size_t d, const Part& part) {
    const auto [first, last] = meeting_[d];
    const bool is_last = d + 1 == wanted_.size();
    for (int32_t at = first; at < last; ++at) {
      const Part next = with(part, d, at);
      if (is_last) {
        emit(next);
      } else if (d + 2 < wanted_.size()) {
        list_from(d + 1, next);
      } else {
        const auto [begin, end] = meeting_[d + 1];
        for (int32_t in_row = begin; in_row < end; ++in_row) emit(with(next, d + 1, in_row));
      }
    }
  }
  void emit(const Part& part) {
    for (int64_t cell = part.cell; cell < all_cells_; cell += cells_) {
      const int32_t shard = numbers_.find(cell);
      if (shard >= 0)
        out_.push_back({shard, part.dim, part.elements, std::max<int64_t>(1, part.longest)});
    }
  }

  const std::vector<std::vector<Interval>>& grid_;
  int64_t contributions_;
  Numbers& numbers_;
  std::vector<Overlap>& out_;
  int64_t cells_ = 1;  // of one contribution
  int64_t all_cells_ = 1;
  // By tensor dim and place of a wanted interval: those of the grid that it meets.
  std::vector<std::vector<std::pair<int32_t, int32_t>>> meetings_;
  std::span<const Interval> wanted_;
  std::vector<std::pair<int32_t, int32_t>> meeting_;
};

}  // namespace

Box ExchangeRanks::overlap_box(int32_t w, int32_t s) const {
  Box box(static_cast<size_t>(dims));
  for (size_t d = 0; d < box.size(); ++d) {
    const Interval& a = wanted_box[static_cast<size_t>(w) * box.size() + d];
    const Interval& b = shard_box[static_cast<size_t>(s) * box.size() + d];
    box[d] = {std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
  }
  return box;
}

namespace {

// The ranks of both sides: merges the two ascending lists of ids.
void merge_ranks(const SideBoxes& sources, const SideBoxes& targets, ExchangeRanks& out) {
  if (sources.id == targets.id) {
    out.id = sources.id;
    out.source.resize(sources.size());
    std::iota(out.source.begin(), out.source.end(), 0);
    out.target = out.source;
    return;
  }
  for (size_t a = 0, b = 0; a < sources.size() || b < targets.size();) {
    const bool from_source =
        b == targets.size() || (a < sources.size() && sources.id[a] <= targets.id[b]);
    const bool from_target =
        a == sources.size() || (b < targets.size() && targets.id[b] <= sources.id[a]);
    out.id.push_back(from_source ? sources.id[a] : targets.id[b]);
    out.source.push_back(from_source ? static_cast<int32_t>(a++) : -1);
    out.target.push_back(from_target ? static_cast<int32_t>(b++) : -1);
  }
}

// The shards, and their holders.
void number_shards(const SideBoxes& sources, const GridPlaces& places,
                   const std::vector<int64_t>& contribution, Numbers& shard_of,
                   ExchangeRanks& out) {
  const size_t ranks = out.size();
  out.shard.assign(ranks, -1);
  out.place.assign(ranks, -1);
  const std::vector<int64_t> keys = shard_of.keys(sources, places, contribution);
  std::vector<int32_t> held;  // holders of each shard
  held.reserve(shard_of.most());
  out.shard_box.reserve(shard_of.most() * places.grid.size());
  for (size_t r = 0; r < ranks; ++r) {
    if (out.source[r] < 0) continue;
    const auto i = static_cast<size_t>(out.source[r]);
    const auto place = place_at(sources, places, i);
    if (is_empty(place)) continue;
    int32_t& number = shard_of[keys[i]];
    if (number < 0) {
      number = static_cast<int32_t>(held.size());
      held.push_back(0);
      append_box(places, place, out.shard_box);
    }
    out.shard[r] = number;
    out.place[r] = held[static_cast<size_t>(number)]++;
  }
  out.holders_begin.reserve(held.size() + 1);
  out.holders_begin.assign(1, 0);
  for (int32_t h : held) out.holders_begin.push_back(out.holders_begin.back() + h);
  out.holders.resize(static_cast<size_t>(out.holders_begin.back()));
  for (size_t r = 0; r < ranks; ++r) {
    if (out.shard[r] < 0) continue;
    const int32_t begin = out.holders_begin[static_cast<size_t>(out.shard[r])];
    out.holders[static_cast<size_t>(begin + out.place[r])] = static_cast<int32_t>(r);
  }
}

// Memory of overlaps that are no longer needed: there may be many, and the next listing has as many
// as a rule.
std::vector<Overlap>& spare_overlaps() {
  thread_local std::vector<Overlap> spare;
  return spare;
}
constexpr size_t most_spare_overlaps = size_t{1} << 20;

}  // namespace

void give_back(ExchangeRanks&& ranks) {
  if (ranks.overlaps.capacity() > most_spare_overlaps) return;
  if (ranks.overlaps.capacity() > spare_overlaps().capacity())
    spare_overlaps() = std::move(ranks.overlaps);
}

std::optional<ExchangeRanks> make_exchange_ranks(const SideBoxes& sources, const SideBoxes& targets,
                                                 int64_t most_overlaps) {
  std::optional<ExchangeRanks> made(std::in_place);
  ExchangeRanks& out = *made;
  out.overlaps = std::move(spare_overlaps());
  out.overlaps.clear();
  out.dims = sources.dims;
  merge_ranks(sources, targets, out);
  const std::vector<int64_t> contribution = ranked(sources.contribution);
  const int64_t contributions =
      contribution.empty() ? 1 : *std::max_element(contribution.begin(), contribution.end()) + 1;
  GridPlaces found_source;
  GridPlaces found_target;
  const GridPlaces& source = places_of(sources, found_source);
  const GridPlaces& target = places_of(targets, found_target);
  Numbers shard_of(source.grid, contributions, out.size());
  number_shards(sources, source, contribution, shard_of, out);

  Numbers wanted_of(target.grid, 1, out.size());
  const std::vector<int64_t> keys = wanted_of.keys(targets, target, {});
  out.wanted.assign(out.size(), -1);
  out.wanters.reserve(wanted_of.most());
  out.wanted_box.reserve(wanted_of.most() * target.grid.size());
  out.overlaps_begin.reserve(wanted_of.most() + 1);
  out.overlaps_begin.assign(1, 0);
  OverlapLister overlaps(source.grid, target.grid, contributions, shard_of, out.overlaps);
  for (size_t r = 0; r < out.size(); ++r) {
    if (out.target[r] < 0) continue;
    const auto i = static_cast<size_t>(out.target[r]);
    const auto place = place_at(targets, target, i);
    if (is_empty(place)) continue;
    int32_t& number = wanted_of[keys[i]];
    if (number < 0) {
      number = static_cast<int32_t>(out.wanters.size());
      out.wanters.push_back(0);
      append_box(target, place, out.wanted_box);
      const auto begin = static_cast<std::ptrdiff_t>(out.overlaps.size());
      overlaps.take(std::span(out.wanted_box).last(place.size()), place);
      if (most_overlaps - begin < overlaps.possible()) return std::nullopt;
      overlaps.list();
      const auto before = [](const Overlap& a, const Overlap& b) { return a.shard < b.shard; };
      if (!std::is_sorted(out.overlaps.begin() + begin, out.overlaps.end(), before))
        std::sort(out.overlaps.begin() + begin, out.overlaps.end(), before);
      out.overlaps_begin.push_back(static_cast<int32_t>(out.overlaps.size()));
    }
    out.wanted[r] = number;
    ++out.wanters[static_cast<size_t>(number)];
  }
  return made;
}

}  // namespace meshplan
