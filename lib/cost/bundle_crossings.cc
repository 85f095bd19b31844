#include "cost/bundle_crossings.h"

#include <algorithm>
#include <vector>

#include "base/int_math.h"
#include "cost/set_needs.h"

namespace meshplan {
namespace {

template <class Key>
void keep_least_of(std::map<Key, Crossing>& least, const std::map<Key, Crossing>& other) {
  for (auto& [set, crossing] : least) {
    const Crossing& of_other = other.at(set);
    crossing = {std::min(crossing.in, of_other.in), std::min(crossing.out, of_other.out)};
  }
}

template <class Key>
void add_up(std::map<Key, Crossing>& sums, const std::map<Key, Crossing>& more, int64_t weight) {
  for (const auto& [set, crossing] : more) {
    Crossing& sum = sums[set];
    sum.in = saturating_add(sum.in, saturating_mul(crossing.in, weight));
    sum.out = saturating_add(sum.out, saturating_mul(crossing.out, weight));
  }
}

void keep_most(std::map<int, int64_t>& most, const std::map<int, int64_t>& other) {
  for (const auto& [level, wanting] : other) most[level] = std::max(most[level], wanting);
}

}  // namespace

void Crossings::keep_least(const Crossings& other) {
  keep_least_of(units, other.units);
  keep_least_of(meshes, other.meshes);
  keep_most(wanting, other.wanting);
}

void Crossings::add(const Crossings& more, int64_t weight) {
  add_up(units, more.units, weight);
  add_up(meshes, more.meshes, weight);
  keep_most(wanting, more.wanting);
}

Crossings crossings_of(const Participants& all, const Request& request, const LevelUnits& units) {
  SetNeeds needs(all);
  const auto crossing = [&](const std::vector<int32_t>& members) {
    const SetNeed need = needs.of(members);
    return Crossing{need.in, need.out};
  };
  Crossings crossings;
  for (int level = 0; level < units.levels(); ++level) {
    std::map<int64_t, std::vector<int32_t>> sets;
    for (size_t i = 0; i < all.ranks.size(); ++i) {
      const int64_t id = all.ranks[i].id;
      sets[units.joined(id, level)].push_back(static_cast<int32_t>(i));
    }
    for (const auto& [unit, members] : sets) crossings.units[{level, unit}] = crossing(members);
    int64_t& most = crossings.wanting[level];
    for (const int64_t wanting : needs.take_wanting()) most = std::max(most, wanting);
  }
  if (request.src_mesh == request.dst_mesh) return crossings;
  std::vector<int32_t> sources;
  std::vector<int32_t> targets;
  for (size_t i = 0; i < all.ranks.size(); ++i) {
    if (all.ranks[i].held >= 0) sources.push_back(static_cast<int32_t>(i));
    if (all.ranks[i].wanted >= 0) targets.push_back(static_cast<int32_t>(i));
  }
  crossings.meshes[request.src_mesh] = crossing(sources);
  crossings.meshes[request.dst_mesh] = crossing(targets);
  return crossings;
}

}  // namespace meshplan
