#include "search/telling_units.h"

#include <algorithm>

#include "base/int_math.h"
#include "cost/finer_tiers.h"
#include "search/search_state.h"
#include "transfer/sub_axes.h"

namespace meshplan {
namespace {

// Larger meshes are not listed.
constexpr int64_t most_ranks = 8'192;
// Units looked at on each level.
constexpr size_t few_units = 3;

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

// A few of them: those of the fewest ranks, spread over the mesh.
std::vector<Run> telling(std::vector<Run> runs) {
  std::erase_if(runs, [](const Run& run) { return run.size() > most_unit_members; });
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Run& a, const Run& b) { return a.size() < b.size(); });
  if (runs.size() <= few_units) return runs;
  const auto others = std::find_if(
      runs.begin(), runs.end(), [&](const Run& run) { return run.size() > runs.front().size(); });
  const auto fewest = std::max(static_cast<size_t>(others - runs.begin()), few_units);
  return {runs[0], runs[fewest / 2], runs[fewest - 1]};
}

// Members differ, so they are a grid where they are as many as its combinations.
void find_grid(const PlanProblem& p, UnitRanks& unit) {
  int64_t combinations = 1;
  for (int a = 0; a < p.atoms; ++a) {
    std::vector<int32_t> on;
    for (size_t m = 0; m < unit.sides.ranks(); ++m) on.push_back(unit.sides.coordinates(m)[a]);
    std::sort(on.begin(), on.end());
    const auto count = std::unique(on.begin(), on.end()) - on.begin();
    unit.inside[as_index(a)] = count;
    if (count == p.size[as_index(a)]) unit.whole = static_cast<uint16_t>(unit.whole | 1U << a);
    combinations = saturating_mul(combinations, count);
  }
  unit.grid = combinations == unit.members();
}

UnitRanks ranks_of(const PlanProblem& p, const Run& run, int level, size_t number) {
  UnitRanks unit;
  unit.number = number;
  unit.level = level;
  unit.latency_ns = unit.exchange_latency_ns = unit.per_peer_ns = INT64_MAX;
  for (size_t l = static_cast<size_t>(level); l < p.bounded.levels.size(); ++l) {
    unit.bandwidth = saturating_add(unit.bandwidth, p.bounded.levels[l].mb_per_s);
    unit.latency_ns = std::min(unit.latency_ns, p.bounded.levels[l].latency_ns);
    unit.exchange_latency_ns = std::min(unit.exchange_latency_ns, p.topology->levels[l].latency_ns);
    unit.per_peer_ns = std::min(unit.per_peer_ns, p.bounded.levels[l].per_peer_ns);
  }
  unit.sides = sides_of_ranks(p, std::span(run.ranks->indices).subspan(run.begin, run.size()));
  find_grid(p, unit);
  return unit;
}

}  // namespace

std::vector<UnitRanks> units_to_look_at(const PlanProblem& p) {
  std::vector<UnitRanks> units;
  // One rank needs nothing.
  if (p.atoms == 0 || p.ranks > most_ranks || has_tables(*p.topology)) return units;
  const std::vector<RankClass>& classes = p.levels->classes({}, {});
  for (int level = 1; level < p.levels->levels(); ++level) {
    const int64_t unit_ranks = p.bounded.levels[as_index(level - 1)].ranks;
    for (const Run& run : telling(runs_of(classes, unit_ranks)))
      units.push_back(ranks_of(p, run, level, units.size()));
  }
  return units;
}

std::array<int64_t, max_atoms> inside_units(const PlanProblem& p) {
  if (p.exact_levels || p.ranks > most_ranks) return p.size;
  std::array<int64_t, max_atoms> most{};
  std::vector<CoordinatesOn> on_atoms;
  for (int a = 0; a < p.atoms; ++a)
    on_atoms.emplace_back(std::span(&p.atom[as_index(a)], 1), p.mesh_sizes);
  std::vector<int64_t> on;
  for (const Run& run : runs_of(p.levels->classes({}, {}), p.topology->levels[0].ranks)) {
    for (int a = 0; a < p.atoms; ++a) {
      on.clear();
      for (size_t i = run.begin; i < run.end; ++i)
        on.push_back(on_atoms[as_index(a)].number(run.ranks->indices[i]));
      std::sort(on.begin(), on.end());
      const auto count = std::unique(on.begin(), on.end()) - on.begin();
      most[as_index(a)] = std::max<int64_t>(most[as_index(a)], count);
    }
  }
  return most;
}

}  // namespace meshplan
