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
      for (size_t i = 0; i < ids.size(); ++i) {
        if (i == 0 || ids[i] / unit_ranks != ids[i - 1] / unit_ranks)
          runs.push_back({&ranks, i, i});
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
  unit.members = static_cast<int64_t>(run.size());
  for (size_t i = run.begin; i < run.end; ++i) {
    const std::vector<int64_t> at = coordinates_of(run.ranks->indices[i], p.mesh_sizes);
    for (int a = 0; a < p.atoms; ++a) {
      const Atom& atom = p.atom[as_index(a)];
      const auto m = static_cast<size_t>(atom.mesh_dim);
      unit.coordinates.push_back(
          static_cast<int32_t>(atom_coordinate(atom, p.mesh_sizes[m], at[m])));
    }
  }
  return unit;
}

// What one member holds or wants.
struct MemberBox {
  int64_t apart;  // coordinates on what stays pending: ranks that differ there do not talk
  int64_t box;    // a number
  int64_t contribution;
  std::array<Interval, max_search_dims> side;
};
using MemberBoxes = std::array<MemberBox, most_members>;

int64_t number_on(const PlanProblem& p, unsigned atoms, const int32_t* coordinate) {
  int64_t number = 0;
  for (; atoms != 0; atoms &= atoms - 1) {
    const int a = __builtin_ctz(atoms);
    number = number * p.size[as_index(a)] + coordinate[a];
  }
  return number;
}

// Sides along the tensor dims that take part, and the number of the box.
void put_sides(const PlanProblem& p, const SearchState& s, const int32_t* coordinate,
               MemberBox& out) {
  out.box = 0;
  for (int d = 0; d < p.dims; ++d) {
    out.side[as_index(d)] = interval_of(p, s, d, coordinate);
    for (int i = s.begin_of(d); i < s.end_of(d); ++i) {
      const auto atom = s.atom[as_index(i)];
      out.box = out.box * p.size[atom] + coordinate[atom];
    }
  }
}

// Elements along the dims that take part.
int64_t volume(const PlanProblem& p, const MemberBox& box) {
  int64_t all = 1;
  for (int d = 0; d < p.dims; ++d) all *= width(box.side[as_index(d)]);
  return all;
}
int64_t shared(const PlanProblem& p, const MemberBox& a, const MemberBox& b) {
  int64_t all = 1;
  for (int d = 0; d < p.dims; ++d) {
    const Interval& x = a.side[as_index(d)];
    const Interval& y = b.side[as_index(d)];
    all *= std::max<int64_t>(0, std::min(x.hi, y.hi) - std::max(x.lo, y.lo));
  }
  return all;
}

// Whether contributions may come to lie anywhere on the way.
bool makes_contributions(const PlanProblem& p, const SearchState& from, const SearchState& to) {
  return p.kept != 0 || from.made != 0 || to.made != 0 || joined_atoms(p, from, to) != 0;
}

// Shards of `from`, each contribution to a sum by itself, that wanted box number 0 meets at least.
int64_t shards_met(const PlanProblem& p, const UnitRanks& unit, const SearchState& from,
                   const SearchState& to) {
  static constexpr std::array<int32_t, max_atoms> first{};
  MemberBox shard;
  MemberBox wanted;
  put_sides(p, from, first.data(), shard);  // the largest
  put_sides(p, to, unit.coordinates.data(), wanted);
  int64_t shards = group_size(p, static_cast<uint16_t>(from.pending & ~to.pending));
  for (int d = 0; d < p.dims && p.tensor_dim[0] >= 0; ++d) {
    const Interval& side = wanted.side[as_index(d)];
    const int64_t each = width(shard.side[as_index(d)]);
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

// The boxes of a unit's members, each once.
struct UnitBoxes {
  MemberBoxes held;  // `contribution`: how many contributions to it members hold
  size_t holds;
  MemberBoxes wanted;  // `contribution`: how many members want it
  size_t wants;
};

bool comes_before(const MemberBox& a, const MemberBox& b) {
  if (a.apart != b.apart) return a.apart < b.apart;
  return a.box != b.box ? a.box < b.box : a.contribution < b.contribution;
}

// Leaves one of each box with the number of different contributions, or of members where all are
// counted; gives how many are left.
size_t join_alike(MemberBoxes& boxes, size_t count, bool all) {
  const auto end = boxes.begin() + static_cast<std::ptrdiff_t>(count);
  if (!std::is_sorted(boxes.begin(), end, comes_before))
    std::sort(boxes.begin(), end, comes_before);
  size_t joined = 0;
  int64_t last = 0;
  for (size_t m = 0; m < count; ++m) {
    const int64_t now = boxes[m].contribution;
    MemberBox& before = boxes[joined == 0 ? 0 : joined - 1];
    if (joined == 0 || boxes[m].apart != before.apart || boxes[m].box != before.box) {
      boxes[joined] = boxes[m];
      boxes[joined++].contribution = 1;
    } else if (all || now != last) {
      ++before.contribution;
    }
    last = now;
  }
  return joined;
}

// Elements along the dims that take part that members miss, each by itself, of every contribution.
int128 fill(const PlanProblem& p, const UnitRanks& unit, const SearchState& from,
            const SearchState& to, UnitBoxes& boxes) {
  const auto reduced = static_cast<unsigned>(from.pending & ~to.pending);
  const auto apart = static_cast<unsigned>(from.pending & to.pending);
  const int64_t contributions = group_size(p, static_cast<uint16_t>(reduced));
  const auto members = static_cast<size_t>(unit.members);
  int128 missing = 0;
  for (size_t m = 0; m < members; ++m) {
    const int32_t* coordinate = unit.coordinates.data() + m * as_index(p.atoms);
    MemberBox& held = boxes.held[m];
    MemberBox& wanted = boxes.wanted[m];
    put_sides(p, from, coordinate, held);
    put_sides(p, to, coordinate, wanted);
    held.apart = wanted.apart = number_on(p, apart, coordinate);
    held.contribution = number_on(p, reduced, coordinate);
    wanted.contribution = 0;
    missing += int128{contributions} * volume(p, wanted) - shared(p, held, wanted);
  }
  boxes.holds = join_alike(boxes.held, members, false);
  boxes.wants = join_alike(boxes.wanted, members, true);
  return missing;
}

UnitNeed count_need(const PlanProblem& p, const UnitRanks& unit, const SearchState& from,
                    const SearchState& to) {
  if (p.total_elements == 0 || p.total_elements == INT64_MAX || makes_contributions(p, from, to))
    return {};
  UnitBoxes boxes;
  const int128 missing = fill(p, unit, from, to, boxes);
  p.work += unit.members * work::key * 4;
  p.work += static_cast<int64_t>(boxes.wants * boxes.holds) * work::key / 2;
  const int64_t contributions = group_size(p, static_cast<uint16_t>(from.pending & ~to.pending));
  int128 least = 0;
  int128 one_phase = 0;
  for (size_t w = 0; w < boxes.wants; ++w) {
    const MemberBox& wanted = boxes.wanted[w];
    int128 here = 0;   // held by members, each contribution by itself
    int128 whole = 0;  // of which members hold every contribution
    for (size_t h = 0; h < boxes.holds; ++h) {
      const MemberBox& held = boxes.held[h];
      if (held.apart != wanted.apart) continue;
      const int64_t both = shared(p, wanted, held);
      here += int128{both} * held.contribution;
      if (held.contribution == contributions) whole += both;
    }
    const int64_t all = volume(p, wanted);
    least += all - whole;
    one_phase += (int128{contributions} * all - here) * wanted.contribution;
  }
  int64_t idle = p.total_elements;
  for (int d = 0; d < p.dims && p.tensor_dim[0] >= 0; ++d)
    idle /= p.tensor.shape[static_cast<size_t>(p.tensor_dim[as_index(d)])];
  const auto times_idle = [&](int128 elements) {
    return saturating_mul(saturated(elements), idle);
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
                                         transfer_ps(bytes, unit.members, unit.bandwidth)));
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
      ps = saturating_add(ps,
                          transfer_ps(saturating_mul(elements, element), unit.members, bandwidth));
    };
    take(fetched, unit.latency_ns, unit.bandwidth);
    // One rank sends one shard at most. A member fetches every shard that it does not hold, or, of
    // those that nobody in the unit holds, as many as others who want its box.
    if (fetched > 0) {
      const int64_t met = shards_met(p, unit, from, to);
      const int64_t peers = phases == 1 ? met - 1 : ceil_div(met - unit.members, unit.members);
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
