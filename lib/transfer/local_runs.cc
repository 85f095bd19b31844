#include "transfer/local_runs.h"

#include <algorithm>
#include <tuple>

#include "transfer/round_transfers.h"

namespace meshplan {
namespace {

// A part whose step has local ones before it, and when it runs.
struct PartInWave {
  int64_t wave = 0;
  size_t round = 0;
  size_t part = 0;
  Interval tensors;
  [[nodiscard]] auto when() const { return std::tuple(wave, round, part); }
};

// Takes what of the tensors is left out of `left`, by first tensor.
std::vector<Interval> take_left(std::map<int64_t, int64_t>& left, const Interval& tensors) {
  std::vector<Interval> taken;
  auto at = left.upper_bound(tensors.lo);
  if (at != left.begin()) --at;
  while (at != left.end() && at->first < tensors.hi) {
    const auto [lo, hi] = *at;
    const Interval both{std::max(lo, tensors.lo), std::min(hi, tensors.hi)};
    if (both.lo >= both.hi) {
      ++at;
      continue;
    }
    at = left.erase(at);
    if (lo < both.lo) left[lo] = both.lo;
    if (both.hi < hi) at = left.emplace(both.hi, hi).first;
    taken.push_back(both);
  }
  return taken;
}

}  // namespace

LocalRuns local_runs(const Plan& plan, const PlannedBundle& bundle) {
  const std::vector<int64_t> waves = waves_of(bundle.rounds);
  std::map<std::pair<size_t, size_t>, std::vector<PartInWave>> parts;  // by member and step
  for (size_t r = 0; r < bundle.rounds.size(); ++r) {
    const std::vector<RoundPart>& of_round = bundle.rounds[r].parts;
    for (size_t p = 0; p < of_round.size(); ++p) {
      const auto step = static_cast<size_t>(of_round[p].step);
      if (first_local_before(plan.redistributions[of_round[p].member], step) == step) continue;
      parts[{of_round[p].member, step}].push_back(
          {waves[r], r, p, {of_round[p].from, of_round[p].to}});
    }
  }
  LocalRuns runs;
  for (auto& [of, in_waves] : parts) {
    std::sort(in_waves.begin(), in_waves.end(),
              [](const auto& a, const auto& b) { return a.when() < b.when(); });
    std::map<int64_t, int64_t> left{{0, plan.redistributions[of.first].request.count}};
    for (const PartInWave& part : in_waves) {
      std::vector<Interval> taken = take_left(left, part.tensors);
      if (!taken.empty()) runs[{part.round, part.part}] = std::move(taken);
    }
  }
  return runs;
}

}  // namespace meshplan
