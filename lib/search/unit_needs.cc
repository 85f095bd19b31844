#include "search/unit_needs.h"

#include <algorithm>
#include <array>

#include "base/int_math.h"
#include "cost/finer_tiers.h"
#include "cost/pipeline.h"
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

// Three of them: those of the fewest ranks, spread over the mesh.
std::vector<Run> telling(std::vector<Run> runs) {
  std::erase_if(runs, [](const Run& run) { return run.size() > most_members; });
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Run& a, const Run& b) { return a.size() < b.size(); });
  const auto others = std::find_if(
      runs.begin(), runs.end(), [&](const Run& run) { return run.size() > runs.front().size(); });
  constexpr size_t few = 3;
  if (runs.size() <= few) return runs;
  const auto fewest = std::max(static_cast<size_t>(others - runs.begin()), few);
  return {runs[0], runs[fewest / 2], runs[fewest - 1]};
}

UnitRanks ranks_of(const PlanProblem& p, const Run& run, int level) {
  UnitRanks unit;
  unit.level = level;
  unit.latency_ns = unit.exchange_latency_ns = unit.per_peer_ns = INT64_MAX;
  for (size_t l = static_cast<size_t>(level); l < p.bounded.levels.size(); ++l) {
    unit.bandwidth = saturating_add(unit.bandwidth, p.bounded.levels[l].mb_per_s);
    unit.latency_ns = std::min(unit.latency_ns, p.bounded.levels[l].latency_ns);
    unit.exchange_latency_ns = std::min(unit.exchange_latency_ns, p.topology->levels[l].latency_ns);
    unit.per_peer_ns = std::min(unit.per_peer_ns, p.bounded.levels[l].per_peer_ns);
  }
  unit.sides = sides_of_ranks(p, std::span(run.ranks->indices).subspan(run.begin, run.size()));
  return unit;
}

// Whether contributions may come to lie anywhere on the way.
bool makes_contributions(const PlanProblem& p, const SearchState& from, const SearchState& to) {
  return p.kept != 0 || from.made != 0 || to.made != 0 || joined_atoms(p, from, to) != 0;
}

int64_t wire_element(const PlanProblem& p, const SearchState& from, const SearchState& to) {
  return (from.pending & ~to.pending) != 0 ? std::min(p.element, p.reduce_element) : p.element;
}

}  // namespace

std::vector<UnitRanks> units_to_look_at(const PlanProblem& p) {
  std::vector<UnitRanks> units;
  if (p.ranks > most_ranks || has_tables(*p.topology)) return units;
  const std::vector<RankClass>& classes = p.levels->classes({}, {});
  for (int level = 1; level < p.levels->levels(); ++level) {
    const int64_t unit_ranks = p.bounded.levels[as_index(level - 1)].ranks;
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

// The sides of some boxes next to each other, dim by dim: they are compared with many others.
class BoxSides {
 public:
  void add(const MemberSides& sides, size_t member) {
    for (int d = 0; d < sides.dims; ++d) {
      const Interval& side = sides.side(d, member);
      low_[as_index(d)][size_] = side.lo;
      high_[as_index(d)][size_] = side.hi;
    }
    ++size_;
  }
  // Of each box, the elements that it shares with the member's.
  void share(const MemberSides& sides, size_t member, int64_t* elements) const {
    std::fill_n(elements, size_, 1);
    for (int d = 0; d < sides.dims; ++d) {
      const Interval& side = sides.side(d, member);
      const auto& low = low_[as_index(d)];
      const auto& high = high_[as_index(d)];
      for (size_t b = 0; b < size_; ++b) {
        const int64_t both = std::min(side.hi, high[b]) - std::max(side.lo, low[b]);
        elements[b] *= std::max<int64_t>(0, both);
      }
    }
  }

 private:
  std::array<std::array<int64_t, most_members>, max_search_dims> low_;
  std::array<std::array<int64_t, most_members>, max_search_dims> high_;
  size_t size_ = 0;
};

// The boxes of a unit's members, each once.
class UnitBoxes {
 public:
  struct Of {
    size_t member;    // one that has it
    int64_t apart;    // coordinates on what stays pending: ranks that differ there do not talk
    int64_t number;   // of the box
    int64_t count;    // members that want it, or contributions to it that members hold
    int64_t members;  // that have it
  };
  std::array<Of, most_members> box;  // the first `size`; the others are not set
  size_t size = 0;

  Of& find(size_t member, int64_t apart, int64_t number) {
    const uint64_t hash =
        (static_cast<uint64_t>(number) + 31 * static_cast<uint64_t>(apart)) * 0x9e3779b97f4a7c15U;
    for (size_t slot = hash >> 56;; slot = (slot + 1) % slots_.size()) {
      const size_t b = slots_[slot];
      if (b == 0) {
        box[size] = {member, apart, number, 0, 0};
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
      if (seen_[i].box == &box && seen_[i].contribution == contribution) return false;
    }
    seen_[size_++] = {&box, contribution};
    return true;
  }

 private:
  struct Seen {
    const UnitBoxes::Of* box;
    int64_t contribution;
  };
  std::array<Seen, most_members> seen_;  // the first `size_`; the others are not set
  size_t size_ = 0;
};

// How many ranks of the mesh have each shard of `from`, every contribution to a sum by itself, and
// how many want each element, of those that differ in nothing that stays pending.
struct Copies {
  int64_t contributions = 1;
  int64_t holders = 1;
  int64_t wanting = 1;

  Copies(const PlanProblem& p, const SearchState& from, const SearchState& to)
      : contributions(group_size(p, static_cast<uint16_t>(from.pending & ~to.pending))) {
    const int64_t ranks = p.ranks / group_size(p, static_cast<uint16_t>(from.pending & to.pending));
    holders = ranks / contributions / group_size(p, sharding(from, p.dims));
    wanting = ranks / group_size(p, sharding(to, p.dims));
  }
};

// Counts the need of one unit.
class NeedCounter {
 public:
  NeedCounter(const PlanProblem& p, const UnitRanks& unit, const SearchState& from,
              const SearchState& to)
      : p_(p),
        unit_(unit),
        from_(from),
        to_(to),
        held_(p, unit, from),
        wanted_(p, unit, to),
        copies_(p, from, to) {}

  UnitNeed count() {
    list_boxes();
    for (size_t h = 0; h < holds_.size; ++h) hold_sides_.add(held_, holds_.box[h].member);
    p_.work += work::bound + 2 * unit_.members() * work::rank_side +
               static_cast<int64_t>(wants_.size * holds_.size) * work::key;
    std::fill_n(served_.begin(), holds_.size, 0);
    for (size_t w = 0; w < wants_.size; ++w) enter(wants_.box[w]);
    return {
        times_idle(least_),   times_idle(one_phase_), times_idle(one_member_), outside_, inside_,
        times_idle(missing_), times_idle(leaving())};
  }

 private:
  void list_boxes() {
    const auto reduced = static_cast<unsigned>(from_.pending & ~to_.pending);
    const auto apart = static_cast<unsigned>(from_.pending & to_.pending);
    Contributions contribution;
    for (size_t m = 0; m < unit_.sides.ranks(); ++m) {
      const int32_t* coordinate = unit_.sides.coordinates(m);
      const int64_t side_by_side = number_on(p_, apart, coordinate);
      UnitBoxes::Of& has = holds_.find(m, side_by_side, held_.number(m));
      ++has.members;
      // Without reductions there is one contribution to each box.
      if (reduced == 0 ? has.count == 0
                       : contribution.is_new(has, number_on(p_, reduced, coordinate)))
        ++has.count;
      ++wants_.find(m, side_by_side, wanted_.number(m)).count;
      missing_ += int128{copies_.contributions} * wanted_.volume(m) - shared(held_, m, wanted_, m);
    }
  }

  // What enters for one box, and what members have of it.
  void enter(const UnitBoxes::Of& want) {
    int128 here = 0;   // held by members, each contribution by itself
    int128 whole = 0;  // of which members hold every contribution
    int64_t near = 0;  // shards that members hold, each contribution by itself
    std::array<int64_t, most_members> elements;  // the first `holds_.size`
    hold_sides_.share(wanted_, want.member, elements.data());
    for (size_t h = 0; h < holds_.size; ++h) {
      const UnitBoxes::Of& hold = holds_.box[h];
      const int64_t both = elements[h];
      if (both == 0 || hold.apart != want.apart) continue;
      here += int128{both} * hold.count;
      served_[h] += int128{both} * want.count;
      near += hold.count;
      if (hold.count == copies_.contributions) whole += both;
    }
    const int64_t all = wanted_.volume(want.member);
    const int128 fetched = int128{copies_.contributions} * all - here;
    least_ += all - whole;
    one_phase_ += fetched * want.count;
    one_member_ = std::max(one_member_, fetched);
    if (all > 0) outside_ = std::max(outside_, shards_met(want.member) - near);
    inside_ = std::max(inside_, near - 1);
  }

  // Shards of the source, each contribution to a sum by itself, that what a member wants meets at
  // least.
  [[nodiscard]] int64_t shards_met(size_t member) const {
    int64_t shards = copies_.contributions;
    for (int d = 0; d < p_.dims && !is_scalar(p_); ++d) {
      const int64_t each = held_.of[as_index(d)]->widest;
      const Interval& side = wanted_.side(d, member);
      shards = saturating_mul(
          shards, p_.even ? ceil_div(side.hi, each) - side.lo / each : ceil_div(width(side), each));
    }
    return shards;
  }

  // Parts of which members are all holders, and that others want: each element that these want is
  // missing up to `wanting` times inside. Contributions to one box may leave as one.
  [[nodiscard]] int128 leaving() const {
    int128 all = 0;
    for (size_t h = 0; h < holds_.size; ++h) {
      const UnitBoxes::Of& hold = holds_.box[h];
      if (hold.members == copies_.holders * hold.count)
        all += held_.volume(hold.member) - ceil_div(saturated(served_[h]), copies_.wanting);
    }
    return all;
  }

  [[nodiscard]] int64_t times_idle(int128 elements) const {
    return saturating_mul(saturated(elements), p_.idle_elements);
  }

  const PlanProblem& p_;
  const UnitRanks& unit_;
  const SearchState& from_;
  const SearchState& to_;
  MemberSides held_;
  MemberSides wanted_;
  Copies copies_;
  UnitBoxes holds_;
  BoxSides hold_sides_;
  UnitBoxes wants_;
  std::array<int128, most_members> served_;  // of each box held: what members want of it, in all
  int128 missing_ = 0;                       // by every member by itself, of every contribution
  int128 least_ = 0;
  int128 one_phase_ = 0;
  int128 one_member_ = 0;
  int64_t outside_ = 0;
  int64_t inside_ = 0;
};

}  // namespace

const UnitNeed& unit_need(const PlanProblem& p, const UnitRanks& unit, const SearchState& from,
                          const SearchState& to) {
  if (unit.asked && unit.from == from && unit.to == to) return unit.need;
  unit.need = {};
  if (p.total_elements > 0 && p.total_elements < INT64_MAX && !makes_contributions(p, from, to)) {
    unit.sides.limit_memory();
    unit.need = NeedCounter(p, unit, from, to).count();
  }
  unit.asked = true;
  unit.from = from;
  unit.to = to;
  return unit.need;
}

namespace {

// The most that `ps_of` says of a unit; once it is above `enough_ps` no other unit is asked. The
// one that said so is asked first the next time.
template <typename PsOf>
int64_t most_of_units(const PlanProblem& p, int64_t enough_ps, PsOf&& ps_of) {
  int64_t most = 0;
  const size_t first = p.telling_unit;
  for (size_t i = 0; i < p.units.size(); ++i) {
    const size_t k = first + i < p.units.size() ? first + i : first + i - p.units.size();
    most = std::max(most, ps_of(p.units[k]));
    if (most <= enough_ps) continue;
    p.telling_unit = k;
    break;
  }
  return most;
}

}  // namespace

int64_t unit_bound_ps(const PlanProblem& p, const SearchState& from, const SearchState& to,
                      int64_t enough_ps) {
  const int64_t element = wire_element(p, from, to);
  return most_of_units(p, enough_ps, [&](const UnitRanks& unit) {
    const UnitNeed& need = unit_need(p, unit, from, to);
    const int64_t bytes = saturating_mul(std::max(need.least, need.leaving), element);
    if (bytes == 0) return int64_t{0};
    return saturating_add(saturating_mul(unit.latency_ns, 1000),
                          transfer_ps(bytes, unit.members(), unit.bandwidth));
  });
}

namespace {

int64_t step_ps(int64_t latency_ns, int64_t peers_ns, int64_t transfer) {
  return saturating_add(saturating_mul(saturating_add(latency_ns, peers_ns), 1000), transfer);
}

// What members fetch from outside, and from each other where one level's links join them.
int64_t one_phase_floor_ps(const PlanProblem& p, const UnitRanks& unit, const UnitNeed& need,
                           int64_t element) {
  const TopologyLevel& inner = p.topology->levels.front();
  const auto transfer = [&](int64_t elements, int64_t ranks, int64_t bandwidth) {
    return transfer_ps(saturating_mul(elements, element), ranks, bandwidth);
  };
  int64_t slowest = std::max(transfer(need.one_phase, unit.members(), unit.bandwidth),
                             transfer(need.one_member, 1, unit.bandwidth));
  int64_t peers_ns = saturating_mul(need.outside, unit.per_peer_ns);
  if (unit.level == 1) {
    const int64_t passed = need.missing - need.one_phase;
    slowest = std::max(slowest, transfer(passed, unit.members(), inner.mb_per_s));
    peers_ns = saturating_add(peers_ns, saturating_mul(need.inside, inner.per_peer_ns));
  }
  if (slowest == 0) return 0;
  const int64_t latency_ns = need.one_phase > 0
                                 ? unit.exchange_latency_ns
                                 : std::min(inner.latency_ns, unit.exchange_latency_ns);
  return step_ps(latency_ns, peers_ns, slowest);
}

// Members share what is fetched: shards that none of them has are asked for by one each. Then
// members that want one box pass on what each has fetched of it, inside the unit.
int64_t two_phases_floor_ps(const PlanProblem& p, const UnitRanks& unit, const UnitNeed& need,
                            int64_t element) {
  PhaseTime fetch;
  PhaseTime share_out;
  if (need.least > 0) {
    const int64_t peers = ceil_div(need.outside, unit.members());
    fetch = {step_ps(unit.exchange_latency_ns, saturating_mul(peers, unit.per_peer_ns), 0),
             transfer_ps(saturating_mul(need.least, element), unit.members(), unit.bandwidth)};
  }
  const int64_t passed = need.missing - need.least;
  if (passed > 0 && unit.level == 1) {
    const TopologyLevel& inner = p.topology->levels.front();
    share_out = {step_ps(inner.latency_ns, 0, 0),
                 transfer_ps(saturating_mul(passed, element), unit.members(), inner.mb_per_s)};
  }
  return pipelined_ps(fetch, share_out, best_chunks(fetch, share_out));
}

}  // namespace

int64_t unit_exchange_floor_ps(const PlanProblem& p, const SearchState& from, const SearchState& to,
                               int phases, int64_t enough_ps) {
  const int64_t element = (from.pending & ~to.pending) != 0 ? p.reduce_element : p.element;
  return most_of_units(p, enough_ps, [&](const UnitRanks& unit) {
    const UnitNeed& need = unit_need(p, unit, from, to);
    return phases == 1 ? one_phase_floor_ps(p, unit, need, element)
                       : two_phases_floor_ps(p, unit, need, element);
  });
}

}  // namespace meshplan
