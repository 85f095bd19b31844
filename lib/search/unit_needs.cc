#include "search/unit_needs.h"

#include <algorithm>
#include <array>

#include "base/int_math.h"
#include "cost/finer_tiers.h"
#include "search/search_state.h"
#include "search/work.h"
#include "tensor/box.h"

namespace meshplan {
namespace {

// Larger meshes are not listed.
constexpr int64_t most_ranks = 8'192;
constexpr size_t most_members = 72;

// A run of ranks in one unit, as a stretch of a class's list of ids.
struct Run {
  const RankClass* ranks = nullptr;
  size_t begin = 0;
  size_t end = 0;
  [[nodiscard]] size_t size() const { return end - begin; }
};

std::vector<Run> runs_of(const std::vector<RankClass>& classes, int64_t unit_ranks) {
  std::vector<Run> runs;
  for (const RankClass& ranks : classes) {
    for (const std::vector<int64_t>& ids : ranks.ids) {
      int64_t unit = -1;
      for (size_t i = 0; i < ids.size(); ++i) {
        const int64_t here = floor_div(ids[i], unit_ranks);
        if (here != unit) runs.push_back({&ranks, i, i});
        unit = here;
        ++runs.back().end;
      }
    }
  }
  return runs;
}

// Those of the fewest ranks.
std::vector<Run> telling(std::vector<Run> runs) {
  std::erase_if(runs, [](const Run& run) { return run.size() > most_members; });
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Run& a, const Run& b) { return a.size() < b.size(); });
  constexpr size_t fewest = 2;
  if (runs.size() > fewest) runs.resize(fewest);
  return runs;
}

UnitRanks ranks_of(const PlanProblem& p, const Run& run, int level) {
  UnitRanks unit;
  unit.level = level;
  unit.latency_ns = INT64_MAX;
  for (size_t l = static_cast<size_t>(level); l < p.topology->levels.size(); ++l) {
    unit.bandwidth = saturating_add(unit.bandwidth, p.topology->levels[l].mb_per_s);
    unit.latency_ns = std::min(unit.latency_ns, p.topology->levels[l].latency_ns);
  }
  unit.sides = sides_of_ranks(p, std::span(run.ranks->indices).subspan(run.begin, run.size()));
  return unit;
}

// Whether contributions may come to lie anywhere on the way.
bool makes_contributions(const PlanProblem& p, const SearchState& from, const SearchState& to) {
  return p.kept != 0 || from.made != 0 || to.made != 0 || joined_atoms(p, from, to) != 0;
}

// Shards of `from`, each contribution to a sum by itself, that what the first member wants meets at
// least.
int64_t shards_met(const PlanProblem& p, const UnitRanks& unit, const SearchState& from,
                   const SearchState& to) {
  int64_t shards = group_size(p, static_cast<uint16_t>(from.pending & ~to.pending));
  for (int d = 0; d < p.dims && !is_scalar(p); ++d) {
    const int64_t each = unit.sides.of(p, from, d).widest;
    const Interval& side = unit.sides.of(p, to, d).side.front();
    shards = saturating_mul(
        shards, p.even ? ceil_div(side.hi, each) - side.lo / each : ceil_div(width(side), each));
  }
  return shards;
}

int64_t wire_element(const PlanProblem& p, const SearchState& from, const SearchState& to) {
  return (from.pending & ~to.pending) != 0 ? std::min(p.element, p.reduce_element) : p.element;
}

}  // namespace

std::vector<UnitRanks> units_to_look_at(const PlanProblem& p) {
  std::vector<UnitRanks> units;
  if (p.ranks > most_ranks || has_finer_tiers(*p.topology)) return units;
  const std::vector<RankClass>& classes = p.levels->classes({}, {});
  for (int level = 1; level < p.levels->levels(); ++level) {
    const int64_t unit_ranks = p.topology->levels[as_index(level - 1)].ranks;
    for (const Run& run : telling(runs_of(classes, unit_ranks)))
      units.push_back(ranks_of(p, run, level));
  }
  return units;
}

namespace {

int64_t number_on(const PlanProblem& p, unsigned atoms, const int32_t* coordinate) {
  int64_t number = 0;
  for (; atoms != 0; atoms &= atoms - 1) {
    const int a = __builtin_ctz(atoms);
    number = number * p.size[as_index(a)] + coordinate[a];
  }
  return number;
}

// What members have along each tensor dim that takes part.
struct MemberSides {
  int dims = 0;
  std::array<const RankSides::Sides*, max_search_dims> of{};

  MemberSides(const PlanProblem& p, const UnitRanks& unit, const SearchState& s) : dims(p.dims) {
    for (int d = 0; d < dims; ++d) of[as_index(d)] = &unit.sides.of(p, s, d);
  }
  [[nodiscard]] const Interval& side(int d, size_t member) const {
    return of[as_index(d)]->side[member];
  }
  // Of the member's box, among all boxes of the state.
  [[nodiscard]] int64_t number(size_t member) const {
    int64_t all = 0;
    for (int d = 0; d < dims; ++d)
      all = all * of[as_index(d)]->numbers + of[as_index(d)]->number[member];
    return all;
  }
  // Elements along the dims that take part.
  [[nodiscard]] int64_t volume(size_t member) const {
    int64_t all = 1;
    for (int d = 0; d < dims; ++d) all *= width(side(d, member));
    return all;
  }
};
int64_t shared(const MemberSides& a, size_t member_a, const MemberSides& b, size_t member_b) {
  int64_t all = 1;
  for (int d = 0; d < a.dims && all != 0; ++d) {
    const Interval& x = a.side(d, member_a);
    const Interval& y = b.side(d, member_b);
    all *= overlap_width(x, y);
  }
  return all;
}

// The boxes of a unit's members, each once.
class UnitBoxes {
 public:
  struct Of {
    size_t member = 0;   // one that has it
    int64_t apart = 0;   // coordinates on what stays pending: ranks that differ there do not talk
    int64_t number = 0;  // of the box
    int64_t count = 0;   // members that want it, or contributions to it that members hold
  };
  std::array<Of, most_members> box;
  size_t size = 0;

  Of& find(size_t member, int64_t apart, int64_t number) {
    const uint64_t hash =
        (static_cast<uint64_t>(number) + 31 * static_cast<uint64_t>(apart)) * 0x9e3779b97f4a7c15U;
    for (size_t slot = hash >> 56;; slot = (slot + 1) % slots_.size()) {
      const size_t b = slots_[slot];
      if (b == 0) {
        box[size] = {member, apart, number, 0};
        slots_[slot] = static_cast<uint8_t>(++size);
        return box[size - 1];
      }
      if (box[b - 1].number == number && box[b - 1].apart == apart) return box[b - 1];
    }
  }

 private:
  std::array<uint8_t, 256> slots_{};  // 1 + which box; 0: none
};

// Whether an earlier member has the same contribution to the same box.
class Contributions {
 public:
  [[nodiscard]] bool is_new(const UnitBoxes::Of& box, int64_t contribution) {
    for (size_t i = 0; i < size_; ++i) {
      if (seen_[i].first == &box && seen_[i].second == contribution) return false;
    }
    seen_[size_++] = {&box, contribution};
    return true;
  }

 private:
  std::array<std::pair<const UnitBoxes::Of*, int64_t>, most_members> seen_;
  size_t size_ = 0;
};

UnitNeed count_need(const PlanProblem& p, const UnitRanks& unit, const SearchState& from,
                    const SearchState& to) {
  if (p.total_elements == 0 || p.total_elements == INT64_MAX || makes_contributions(p, from, to))
    return {};
  unit.sides.limit_memory();
  const MemberSides held(p, unit, from);
  const MemberSides wanted(p, unit, to);
  const auto reduced = static_cast<unsigned>(from.pending & ~to.pending);
  const auto apart = static_cast<unsigned>(from.pending & to.pending);
  const int64_t contributions = group_size(p, static_cast<uint16_t>(reduced));
  UnitBoxes holds;
  UnitBoxes wants;
  Contributions contribution;
  int128 missing = 0;  // by every member by itself, of every contribution
  for (size_t m = 0; m < unit.sides.ranks(); ++m) {
    const int32_t* coordinate = unit.sides.coordinates(m);
    const int64_t side_by_side = number_on(p, apart, coordinate);
    UnitBoxes::Of& has = holds.find(m, side_by_side, held.number(m));
    // Without reductions there is one contribution to each box.
    if (reduced == 0 ? has.count == 0 : contribution.is_new(has, number_on(p, reduced, coordinate)))
      ++has.count;
    ++wants.find(m, side_by_side, wanted.number(m)).count;
    missing += int128{contributions} * wanted.volume(m) - shared(held, m, wanted, m);
  }
  p.work += work::bound + 2 * unit.members() * work::rank_side +
            static_cast<int64_t>(wants.size * holds.size) * work::key;
  int128 least = 0;
  int128 one_phase = 0;
  for (size_t w = 0; w < wants.size; ++w) {
    const UnitBoxes::Of& want = wants.box[w];
    int128 here = 0;   // held by members, each contribution by itself
    int128 whole = 0;  // of which members hold every contribution
    for (size_t h = 0; h < holds.size; ++h) {
      const UnitBoxes::Of& hold = holds.box[h];
      if (hold.apart != want.apart) continue;
      const int64_t both = shared(wanted, want.member, held, hold.member);
      here += int128{both} * hold.count;
      if (hold.count == contributions) whole += both;
    }
    const int64_t all = wanted.volume(want.member);
    least += all - whole;
    one_phase += (int128{contributions} * all - here) * want.count;
  }
  const auto times_idle = [&](int128 elements) {
    return saturating_mul(saturated(elements), p.idle_elements);
  };
  return {times_idle(least), times_idle(one_phase), times_idle(missing)};
}

}  // namespace

const UnitNeed& unit_need(const PlanProblem& p, const UnitRanks& unit, const SearchState& from,
                          const SearchState& to) {
  if (unit.asked && unit.from == from && unit.to == to) return unit.need;
  unit.need = count_need(p, unit, from, to);
  unit.asked = true;
  unit.from = from;
  unit.to = to;
  return unit.need;
}

int64_t unit_bound_ps(const PlanProblem& p, const SearchState& from, const SearchState& to) {
  int64_t most = 0;
  const int64_t element = wire_element(p, from, to);
  for (const UnitRanks& unit : p.units) {
    const int64_t bytes = saturating_mul(unit_need(p, unit, from, to).least, element);
    if (bytes == 0) continue;
    most = std::max(most, saturating_add(saturating_mul(unit.latency_ns, 1000),
                                         transfer_ps(bytes, unit.members(), unit.bandwidth)));
  }
  return most;
}

int64_t unit_exchange_floor_ps(const PlanProblem& p, const SearchState& from, const SearchState& to,
                               int phases) {
  int64_t most = 0;
  const bool reduces = (from.pending & ~to.pending) != 0;
  const int64_t element = reduces ? p.reduce_element : p.element;
  const TopologyLevel& inner = p.topology->levels.front();
  int64_t per_peer_ps = INT64_MAX;
  for (const TopologyLevel& level : p.topology->levels)
    per_peer_ps = std::min(per_peer_ps, saturating_mul(level.per_peer_ns, 1000));
  for (const UnitRanks& unit : p.units) {
    const UnitNeed& need = unit_need(p, unit, from, to);
    const int64_t fetched = phases == 1 ? need.one_phase : need.least;
    int64_t ps = 0;
    const auto take = [&](int64_t elements, int64_t latency_ns, int64_t bandwidth) {
      if (elements <= 0) return;
      ps = saturating_add(ps, saturating_mul(latency_ns, 1000));
      ps = saturating_add(
          ps, transfer_ps(saturating_mul(elements, element), unit.members(), bandwidth));
    };
    take(fetched, unit.latency_ns, unit.bandwidth);
    // One rank sends one shard at most. A member fetches every shard that it does not hold, or, of
    // those that no member holds, as many as others who want its box.
    if (fetched > 0) {
      const int64_t met = shards_met(p, unit, from, to);
      const int64_t peers = phases == 1 ? met - 1 : ceil_div(met - unit.members(), unit.members());
      if (peers > 0) ps = saturating_add(ps, saturating_mul(peers, per_peer_ps));
    }
    // Members that want one box pass on what each has fetched of it, inside the unit.
    if (phases == 2 && unit.level == 1)
      take(need.missing - need.least, inner.latency_ns, inner.mb_per_s);
    most = std::max(most, ps);
  }
  return most;
}

}  // namespace meshplan
