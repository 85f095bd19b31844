#include "transfer/few_units.h"

#include <algorithm>

#include "base/int_math.h"
#include "transfer/level_units.h"
#include "transfer/sub_axes.h"

namespace meshplan {
namespace {

constexpr size_t few = 3;

// A run of ranks in one unit, as a stretch of a class's list of ids.
struct Run {
  const RankClass* ranks = nullptr;
  size_t begin = 0;
  size_t end = 0;
  [[nodiscard]] size_t size() const { return end - begin; }
  [[nodiscard]] std::span<const int64_t> members() const {
    return std::span(ranks->indices).subspan(begin, size());
  }
};

std::vector<Run> runs_of(const std::vector<RankClass>& classes, int64_t unit_ranks) {
  std::vector<Run> runs;
  for (const RankClass& ranks : classes) {
    for (const std::vector<int64_t>& ids : ranks.ids) {
      for (size_t begin = 0; begin < ids.size(); begin = runs.back().end)
        runs.push_back({&ranks, begin, end_of_unit(ids, begin, unit_ranks)});
    }
  }
  return runs;
}

}  // namespace

std::vector<UnitMembers> list_few_units(const std::vector<RankClass>& classes, int64_t unit_ranks,
                                        size_t most_members) {
  std::vector<Run> runs = runs_of(classes, unit_ranks);
  std::erase_if(runs, [&](const Run& run) { return run.size() > most_members; });
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Run& a, const Run& b) { return a.size() < b.size(); });
  if (runs.size() > few) {
    const auto others = std::find_if(
        runs.begin(), runs.end(), [&](const Run& run) { return run.size() > runs.front().size(); });
    const auto fewest = std::max(static_cast<size_t>(others - runs.begin()), few);
    runs = {runs[0], runs[fewest / 2], runs[fewest - 1]};
  }
  std::vector<UnitMembers> units;
  for (const Run& run : runs) units.emplace_back(run.members().begin(), run.members().end());
  return units;
}

UnitMembers list_unit_of(const std::vector<RankClass>& classes, int64_t unit_ranks, int64_t index,
                         size_t most_members) {
  for (const RankClass& ranks : classes) {
    const auto found = std::find(ranks.indices.begin(), ranks.indices.end(), index);
    if (found == ranks.indices.end()) continue;
    const std::vector<int64_t>& ids = ranks.ids.front();
    const auto at = static_cast<size_t>(found - ranks.indices.begin());
    const int64_t first = floor_div(ids[at], unit_ranks) * unit_ranks;
    const auto begin =
        static_cast<size_t>(std::lower_bound(ids.begin(), ids.end(), first) - ids.begin());
    const Run run{&ranks, begin, end_of_unit(ids, begin, unit_ranks)};
    if (run.size() > most_members) return {};
    return {run.members().begin(), run.members().end()};
  }
  return {};
}

int64_t most_coordinates_inside(const std::vector<RankClass>& classes, int64_t unit_ranks,
                                const SubAxis& sub_axis, std::span<const int64_t> mesh_shape) {
  const CoordinatesOn on_sub_axis(std::span(&sub_axis, 1), mesh_shape);
  int64_t most = 0;
  std::vector<int64_t> on;
  for (const Run& run : runs_of(classes, unit_ranks)) {
    on.clear();
    for (const int64_t index : run.members()) on.push_back(on_sub_axis.number(index));
    std::sort(on.begin(), on.end());
    const auto count = std::unique(on.begin(), on.end()) - on.begin();
    most = std::max<int64_t>(most, count);
  }
  return most;
}

}  // namespace meshplan
