#include "transfer/rank_classes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "transfer/level_units.h"
#include "transfer/rank_places.h"
#include "transfer/sub_axes.h"

namespace meshplan {
namespace {

// Indices of the mesh by their number on the sub-axes.
std::vector<std::vector<int64_t>> by_number(const Mesh& mesh,
                                            const std::vector<SubAxis>& sub_axes) {
  const std::vector<int32_t> numbers = numbers_on(sub_axes, mesh_shape(mesh));
  size_t count = 1;
  for (const SubAxis& sub_axis : sub_axes) count *= static_cast<size_t>(sub_axis.size);
  std::vector<std::vector<int64_t>> classes(count);
  for (std::vector<int64_t>& one : classes) one.reserve(numbers.size() / count);
  for (size_t i = 0; i < numbers.size(); ++i)
    classes[static_cast<size_t>(numbers[i])].push_back(static_cast<int64_t>(i));
  return classes;
}

// Copies of the mesh, by where they start, that units may cut in different ways.
std::vector<int64_t> copies_of(const Mesh& mesh, std::span<const int64_t> level_ranks) {
  if (level_ranks.size() == 1) return {0};
  const std::vector<Mode> modes = copy_modes(mesh);
  if (is_consecutive(*mesh.universe))
    return distinct_places(modes, level_ranks[level_ranks.size() - 2]);
  return sorted_offsets(modes);
}

// The fewest of a class's ranks that one unit of the innermost level has. `ids` ascend.
size_t fewest_in_unit(const std::vector<int64_t>& ids, int64_t unit_ranks) {
  size_t fewest = ids.size();
  for (size_t begin = 0, end = 0; begin < ids.size(); begin = end) {
    end = end_of_unit(ids, begin, unit_ranks);
    fewest = std::min(fewest, end - begin);
  }
  return fewest;
}

// The ranks of one class in one copy, in the order of their ids.
struct OrderedRanks {
  std::vector<int32_t> order;         // numbers in the class
  std::vector<int64_t> ids;           // ascending
  std::vector<uint16_t> unit_begins;  // of each rank, the levels on which it begins a unit, as bits

  // `positions`: in the rank map, by index in the mesh; `chosen`: indices of the class.
  void set(const Universe& universe, const std::vector<int64_t>& positions,
           const std::vector<int64_t>& chosen, int64_t copy, std::span<const int64_t> level_ranks) {
    ids.clear();
    ids.reserve(chosen.size());
    for (const int64_t index : chosen)
      ids.push_back(rank_at(universe, copy + positions[static_cast<size_t>(index)]));
    order.resize(chosen.size());
    std::iota(order.begin(), order.end(), 0);
    if (!std::is_sorted(ids.begin(), ids.end())) {
      std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        return ids[static_cast<size_t>(a)] < ids[static_cast<size_t>(b)];
      });
      std::sort(ids.begin(), ids.end());
    }
    find_unit_begins(level_ranks);
  }

 private:
  void find_unit_begins(std::span<const int64_t> level_ranks) {
    unit_begins.assign(ids.size(), 0);
    for (size_t l = 0; l + 1 < level_ranks.size(); ++l) {
      for (size_t i = 0; i < ids.size(); i = end_of_unit(ids, i, level_ranks[l]))
        unit_begins[i] = static_cast<uint16_t>(unit_begins[i] | 1U << l);
    }
  }
};

}  // namespace

std::vector<RankClass> list_rank_classes(const Mesh& mesh, std::span<const int64_t> level_ranks,
                                         const std::vector<SubAxis>& apart,
                                         std::span<const int64_t> kinds) {
  const std::vector<std::vector<int64_t>> classes = by_number(mesh, apart);
  const std::vector<int64_t> positions = positions_of(mesh);
  std::vector<RankClass> out;
  // By kind and the order of ids: which of `out`.
  std::map<std::pair<int64_t, std::vector<int32_t>>, size_t> known;
  std::vector<std::set<std::vector<uint16_t>>> begins;  // known of each of `out`
  OrderedRanks ranks;
  for (const int64_t copy : copies_of(mesh, level_ranks)) {
    for (size_t c = 0; c < classes.size(); ++c) {
      const std::vector<int64_t>& chosen = classes[c];
      ranks.set(*mesh.universe, positions, chosen, copy, level_ranks);
      const auto [at, is_new] =
          known.try_emplace({kinds.empty() ? 0 : kinds[c], ranks.order}, out.size());
      if (is_new) {
        RankClass& fresh = out.emplace_back();
        fresh.indices.reserve(chosen.size());
        for (const int32_t number : ranks.order)
          fresh.indices.push_back(chosen[static_cast<size_t>(number)]);
        begins.emplace_back();
      }
      if (begins[at->second].insert(ranks.unit_begins).second)
        out[at->second].ids.push_back(ranks.ids);
    }
  }
  if (level_ranks.size() == 1) return out;
  for (RankClass& like : out) {
    std::stable_sort(like.ids.begin(), like.ids.end(), [&](const auto& a, const auto& b) {
      return fewest_in_unit(a, level_ranks[0]) < fewest_in_unit(b, level_ranks[0]);
    });
  }
  return out;
}

}  // namespace meshplan
