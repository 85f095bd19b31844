#include "search/rank_sides.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/int_math.h"
#include "search/search_state.h"
#include "search/work.h"
#include "transfer/sub_axes.h"

namespace meshplan {
namespace {

constexpr size_t most_sides = size_t{1} << 20;  // remembered

size_t slot_of(uint64_t key) { return static_cast<size_t>(key * 0x9e3779b97f4a7c15U >> 32); }

// Of the rank with these coordinates.
Interval side_of(const PlanProblem& p, const SearchState& s, int d, const int32_t* coordinate) {
  int64_t lo = 0;
  int64_t left = is_scalar(p) ? 1 : p.tensor.shape[static_cast<size_t>(p.tensor_dim[as_index(d)])];
  for (int i = s.begin_of(d); i < s.end_of(d);) {
    const AtomRun run = run_of_atoms(p, s, d, i);
    int64_t part = 0;
    for (; i < run.end; ++i) {
      const size_t atom = s.atom[as_index(i)];
      part = part * p.size[atom] + coordinate[atom];
    }
    const int64_t chunk = ceil_div(left, run.cut_into) * floor_div(run.cut_into, run.parts);
    const int64_t first = std::min(left, part * chunk);
    lo += first;
    left = std::min(left - first, chunk);
  }
  return {lo, lo + left};
}

// Sides of one list are equal or apart.
void join(RankSides::Sides& sides) {
  std::vector<Interval>& joined = sides.joined;
  joined = sides.side;
  std::sort(joined.begin(), joined.end(),
            [](const Interval& a, const Interval& b) { return a.lo < b.lo; });
  size_t count = 0;
  for (const Interval& side : joined) {
    if (width(side) == 0) continue;
    if (count > 0 && side.lo <= joined[count - 1].hi) {
      joined[count - 1].hi = side.hi;
    } else {
      joined[count++] = side;
    }
  }
  joined.resize(count);
}

}  // namespace

RankSides::RankSides(std::vector<int32_t> coordinates, int atoms)
    : coordinates_(std::move(coordinates)),
      atoms_(static_cast<size_t>(atoms)),
      ranks_(atoms == 0 ? 0 : coordinates_.size() / atoms_) {}

RankSides sides_of_ranks(const PlanProblem& p, std::span<const int64_t> indices) {
  std::vector<CoordinatesOn> on_atoms;
  for (int a = 0; a < p.atoms; ++a)
    on_atoms.emplace_back(std::span(&p.atom[as_index(a)], 1), p.mesh_sizes);
  std::vector<int32_t> coordinates;
  coordinates.reserve(indices.size() * on_atoms.size());
  for (const int64_t index : indices) {
    for (const CoordinatesOn& on_atom : on_atoms)
      coordinates.push_back(static_cast<int32_t>(on_atom.number(index)));
  }
  return {std::move(coordinates), p.atoms};
}

const RankSides::Sides& RankSides::of(const PlanProblem& p, const SearchState& s, int d) const {
  const uint64_t key = list_key(s, d);
  if (slots_.size() < 2 * (known_.size() + 1)) grow();
  const size_t mask = slots_.size() - 1;
  for (size_t i = slot_of(key) & mask;; i = (i + 1) & mask) {
    if (slots_[i].sides == 0) {
      auto sides = std::make_shared<Sides>();
      make(p, s, d, *sides);
      known_.push_back(std::move(sides));
      slots_[i] = {key, static_cast<uint32_t>(known_.size())};
    }
    if (slots_[i].key == key) return *known_[slots_[i].sides - 1];
  }
}

void RankSides::make(const PlanProblem& p, const SearchState& s, int d, Sides& sides) const {
  p.work += static_cast<int64_t>(ranks_) * work::rank_side;
  for (int i = s.begin_of(d); i < s.end_of(d); ++i) sides.numbers *= p.size[s.atom[as_index(i)]];
  static constexpr std::array<int32_t, max_atoms> first{};
  sides.widest = width(side_of(p, s, d, first.data()));
  for (size_t r = 0; r < ranks_; ++r) {
    const int32_t* coordinate = coordinates(r);
    sides.side.push_back(side_of(p, s, d, coordinate));
    int64_t number = 0;
    for (int i = s.begin_of(d); i < s.end_of(d); ++i) {
      const size_t atom = s.atom[as_index(i)];
      number = number * p.size[atom] + coordinate[atom];
    }
    sides.number.push_back(number);
  }
  join(sides);
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

void RankSides::limit_memory() const {
  if (known_.size() * ranks_ <= most_sides) return;
  known_.clear();
  slots_.clear();
}

}  // namespace meshplan
