#include "plan/firsts.h"

#include <functional>
#include <numeric>
#include <string_view>
#include <unordered_map>

namespace meshplan {
namespace {

// Taken apart by structured bindings: a new field does not compile until it is compared.
bool same_question(const Request& a, const Request& b) {
  const auto& [id, src_mesh, dst_mesh, tensor, src, dst, any_dst_order, direction, reduce_dtype,
               count, notes] = a;
  static_cast<void>(id);
  static_cast<void>(count);
  static_cast<void>(notes);
  return src_mesh == b.src_mesh && dst_mesh == b.dst_mesh && tensor == b.tensor && src == b.src &&
         dst == b.dst && any_dst_order == b.any_dst_order && direction == b.direction &&
         reduce_dtype == b.reduce_dtype;
}

// Equal for those that repeat one another.
size_t hash_of(const PlannedRedistribution& r) {
  size_t hash = std::hash<std::string_view>()(r.trace);
  const auto mix = [&](int64_t value) {
    hash = (hash ^ static_cast<size_t>(value)) * size_t{0x9e3779b97f4a7c15};
  };
  for (const int64_t extent : r.request.tensor.shape) mix(extent);
  mix(r.totals.wire_bytes);
  mix(r.totals.predicted_ps);
  return hash;
}

}  // namespace

bool repeats(const PlannedRedistribution& a, const PlannedRedistribution& b) {
  const auto& [request, planner, rules, dst, trace, unmerged_trace, steps, totals, reductions,
               warnings, audit, alternatives, proven_gap_ps, shortcuts] = a;
  return same_question(request, b.request) && planner == b.planner && rules == b.rules &&
         dst == b.dst && trace == b.trace && unmerged_trace == b.unmerged_trace &&
         steps == b.steps && totals == b.totals && reductions == b.reductions &&
         warnings == b.warnings && audit == b.audit && alternatives == b.alternatives &&
         proven_gap_ps == b.proven_gap_ps && shortcuts == b.shortcuts;
}

std::vector<size_t> firsts_of(const std::vector<PlannedRedistribution>& redistributions,
                              std::span<const size_t> some) {
  std::vector<size_t> firsts;
  firsts.reserve(some.size());
  std::unordered_multimap<size_t, size_t> known;  // by hash
  for (size_t i = 0; i < some.size(); ++i) {
    const PlannedRedistribution& r = redistributions[some[i]];
    const size_t hash = hash_of(r);
    size_t first = i;
    const auto [begin, end] = known.equal_range(hash);
    for (auto at = begin; at != end && first == i; ++at) {
      if (repeats(redistributions[some[at->second]], r)) first = at->second;
    }
    if (first == i) known.emplace(hash, i);
    firsts.push_back(first);
  }
  return firsts;
}

std::vector<size_t> firsts_of(const std::vector<PlannedRedistribution>& redistributions) {
  std::vector<size_t> all(redistributions.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return firsts_of(redistributions, all);
}

}  // namespace meshplan
