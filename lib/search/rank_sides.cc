#include "search/rank_sides.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/int_math.h"
#include "search/search_state.h"
#include "search/work.h"
#include "transfer/sub_axes.h"

namespace meshplan {
namespace {

constexpr size_t most_sides = size_t{1} << 20;  // remembered

size_t slot_of(uint64_t key) { return static_cast<size_t>(key * 0x9e3779b97f4a7c15U >> 32); }

// How a list of sub-axes cuts a dim: number n of it has part n / stride % parts of each run in
// turn.
class ListCuts {
 public:
  ListCuts(const PlanProblem& p, const SearchState& s, int d)
      : extent_(is_scalar(p) ? 1 : p.tensor.shape[static_cast<size_t>(p.tensor_dim[as_index(d)])]) {
    for (int i = s.begin_of(d); i < s.end_of(d);) {
      const SubAxisRun run = run_of_sub_axes(p, s, d, i);
      runs_[as_index(count_++)] = {run.parts, run.cut_into, floor_div(run.cut_into, run.parts), 1};
      i = run.end;
    }
    for (int r = count_ - 1; r > 0; --r)
      runs_[as_index(r - 1)].stride = runs_[as_index(r)].stride * runs_[as_index(r)].parts;
  }
  // Law: ascends with the number, and those of two numbers are apart.
  [[nodiscard]] Interval side(int64_t number) const {
    int64_t lo = 0;
    int64_t left = extent_;
    for (int r = 0; r < count_; ++r) {
      const Run& run = runs_[as_index(r)];
      const int64_t part = run.stride == 1 ? number : number / run.stride;
      number -= part * run.stride;
      const int64_t chunk = ceil_div(left, run.cut_into) * run.chunks;
      const int64_t first = std::min(left, part * chunk);
      lo += first;
      left = std::min(left - first, chunk);
    }
    return {lo, lo + left};
  }

 private:
  struct Run {
    int64_t parts = 1;
    int64_t cut_into = 1;
    int64_t chunks = 1;  // of the cut, a part
    int64_t stride = 1;
  };
  int64_t extent_;
  int count_ = 0;
  std::array<Run, max_sub_axes> runs_;
};

// What make lists of one list of sub-axes, in room that is used again.
struct Listed {
  std::vector<int64_t> number;
  std::vector<Interval> side;
  std::vector<Interval> joined;
  std::vector<uint32_t> joined_end;
  std::vector<Interval> ascending;  // the sides of a part
};

// Nothing is joined yet.
void list_sides(const ListCuts& cuts, int64_t numbers, Listed& listed) {
  const size_t ranks = listed.number.size();
  listed.joined.clear();
  listed.joined_end.clear();
  listed.side.resize(ranks);
  if (numbers > static_cast<int64_t>(ranks)) {
    for (size_t r = 0; r < ranks; ++r) listed.side[r] = cuts.side(listed.number[r]);
    return;
  }
  // Once a number, of which several ranks may have one.
  std::vector<Interval>& by_number = listed.ascending;
  by_number.resize(static_cast<size_t>(numbers));
  for (size_t n = 0; n < by_number.size(); ++n) by_number[n] = cuts.side(static_cast<int64_t>(n));
  for (size_t r = 0; r < ranks; ++r)
    listed.side[r] = by_number[static_cast<size_t>(listed.number[r])];
}

// What `count` ranks from `first` on have together: sides that touch become one.
void join_sides(size_t first, size_t count, Listed& listed) {
  const auto begin = listed.side.begin() + static_cast<std::ptrdiff_t>(first);
  listed.ascending.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
  const auto before = [](const Interval& a, const Interval& b) { return a.lo < b.lo; };
  if (!std::is_sorted(listed.ascending.begin(), listed.ascending.end(), before))
    std::sort(listed.ascending.begin(), listed.ascending.end(), before);
  const size_t of_part = listed.joined.size();
  for (const Interval& side : listed.ascending) {
    if (width(side) == 0) continue;
    if (listed.joined.size() > of_part && side.lo <= listed.joined.back().hi) {
      listed.joined.back().hi = std::max(listed.joined.back().hi, side.hi);
    } else {
      listed.joined.push_back(side);
    }
  }
  listed.joined_end.push_back(static_cast<uint32_t>(listed.joined.size()));
}

}  // namespace

void RankSides::add_part(std::span<const int32_t> coordinates) {
  const size_t more = sub_axes_ == 0 ? 0 : coordinates.size() / sub_axes_;
  const size_t before = ranks();
  for (size_t a = 0; a < sub_axes_; ++a) {
    coordinates_[a].resize(before + more);
    for (size_t r = 0; r < more; ++r) coordinates_[a][before + r] = coordinates[r * sub_axes_ + a];
  }
  ends_.push_back(before + more);
  most_known_ = most_sides / std::max<size_t>(1, ranks());
}

void RankSides::add_ranks(const PlanProblem& p, std::span<const int64_t> indices) {
  std::vector<CoordinatesOn> on_sub_axes;
  for (int a = 0; a < p.sub_axes; ++a)
    on_sub_axes.emplace_back(std::span(&p.sub_axis[as_index(a)], 1), p.mesh_sizes);
  std::vector<int32_t> coordinates;
  coordinates.reserve(indices.size() * on_sub_axes.size());
  for (const int64_t index : indices) {
    for (const CoordinatesOn& on_sub_axis : on_sub_axes)
      coordinates.push_back(static_cast<int32_t>(on_sub_axis.number(index)));
  }
  add_part(coordinates);
}

const RankSides::Sides& RankSides::of(const PlanProblem& p, const SearchState& s, int d) const {
  const uint64_t key = list_key(s, d);
  if (slots_.size() < 2 * (known_.size() + 1)) grow();
  const size_t mask = slots_.size() - 1;
  for (size_t i = slot_of(key) & mask;; i = (i + 1) & mask) {
    if (slots_[i].sides == 0) {
      known_.push_back(make(p, s, d));
      slots_[i] = {key, static_cast<uint32_t>(known_.size())};
    }
    if (slots_[i].key == key) return *known_[slots_[i].sides - 1];
  }
}

void RankSides::recall(const Lists& lists) const {
  if (!knows(lists) || find_recent(lists.of) != nullptr) return;
  recent_[oldest_] = lists;
  oldest_ = 1 - oldest_;
}

const RankSides::Lists& RankSides::make_lists(const PlanProblem& p, const SearchState& s) const {
  Lists& fresh = recent_[oldest_];
  oldest_ = 1 - oldest_;
  fresh.of = s;
  fresh.sub_axes = 0;
  fresh.widest = 1;
  fresh.drops = drops_;
  for (int d = 0; d < p.dims; ++d) {
    const Sides& sides = of(p, s, d);
    fresh.along[as_index(d)] = &sides;
    fresh.sub_axes |= sides.sub_axes;
    if (!is_scalar(p) && p.total_elements != INT64_MAX) fresh.widest *= sides.widest;
  }
  return fresh;
}

const RankSides::Sides* RankSides::make(const PlanProblem& p, const SearchState& s, int d) const {
  const size_t all = ranks();
  Sides sides;
  sides.list = lists_known_[as_index(d)]++;
  sides.even = is_scalar(p) || cuts_evenly(p, s, d);
  p.share_work(static_cast<int64_t>(all) * work::rank_side);
  const ListCuts cuts(p, s, d);
  sides.widest = width(cuts.side(0));
  thread_local Listed listed;
  listed.number.assign(all, 0);
  for (int i = s.begin_of(d); i < s.end_of(d); ++i) {
    const size_t sub_axis = s.sub_axis[as_index(i)];
    sides.sub_axes = static_cast<uint16_t>(sides.sub_axes | 1U << sub_axis);
    const int64_t size = p.size[sub_axis];
    sides.numbers *= size;
    const int32_t* const coordinate = coordinates_[sub_axis].data();
    for (size_t r = 0; r < all; ++r) listed.number[r] = listed.number[r] * size + coordinate[r];
  }
  list_sides(cuts, sides.numbers, listed);
  for (size_t part = 1; part < ends_.size(); ++part)
    join_sides(begin_of(part), ranks_of(part), listed);
  sides.number = room_.keep(std::span<const int64_t>(listed.number));
  sides.side = room_.keep(std::span<const Interval>(listed.side));
  sides.joined = room_.keep(std::span<const Interval>(listed.joined));
  sides.joined_end = room_.keep(std::span<const uint32_t>(listed.joined_end));
  return room_.keep(sides);
}

void RankSides::grow() const {
  const std::vector<Slot> before = std::move(slots_);
  slots_.assign(std::max<size_t>(64, before.size() * 2), {});
  for (const Slot& slot : before) {
    if (slot.sides == 0) continue;
    size_t i = slot_of(slot.key) & (slots_.size() - 1);
    while (slots_[i].sides != 0) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = slot;
  }
}

void RankSides::drop_known() const {
  known_.clear();
  room_ = {};
  slots_.clear();
  recent_ = {};
  ++drops_;
}

}  // namespace meshplan
