#include "replay/alike_tensors.h"

#include <doctest/doctest.h>

namespace meshplan {
namespace {

RoundPart part(size_t member, int64_t step, int64_t from, int64_t to, int64_t piece = 0, int64_t pieces = 1) {
  return {member, step, from, to, piece, pieces};
}

// Redistributions of these counts; those with the same extent ask the same question.
std::vector<PlannedRedistribution> redistributions(const std::vector<std::pair<int64_t, int64_t>>& extents_and_counts) {
  std::vector<PlannedRedistribution> all;
  for (const auto& [extent, count] : extents_and_counts) {
    PlannedRedistribution& r = all.emplace_back();
    r.request.id = "r" + std::to_string(all.size());
    r.request.tensor.shape = {extent};
    r.request.count = count;
  }
  return all;
}

PlannedBundle bundle_of(std::vector<size_t> members, const std::vector<std::vector<RoundPart>>& rounds) {
  PlannedBundle bundle;
  bundle.request.members = std::move(members);
  for (const auto& parts : rounds) bundle.rounds.emplace_back().parts = parts;
  return bundle;
}

std::vector<TensorRange> ranges_of(const std::vector<AlikeRun>& runs) {
  std::vector<TensorRange> ranges;
  for (const AlikeRun& run : runs) ranges.push_back(run.range);
  return ranges;
}

using Ranges = std::vector<TensorRange>;

TEST_CASE("like tensors are cut where a round begins or ends with one") {
  const auto all = redistributions({{8, 10}, {8, 1}, {4, 6}});
  const PlannedBundle bundle = bundle_of({0, 2}, {{part(0, 0, 0, 7)}, {part(0, 0, 7, 10), part(2, 0, 0, 6)}, {part(0, 1, 3, 10)}});
  const auto runs = alike_runs(bundle, all);
  CHECK(ranges_of(runs) == Ranges{{0, 0, 3}, {0, 3, 7}, {0, 7, 10}, {2, 0, 6}});
  CHECK(ends_of(ranges_of(runs)) == Ranges{{0, 0, 1}, {0, 2, 3}, {0, 3, 4}, {0, 6, 7}, {0, 7, 8}, {0, 9, 10}, {2, 0, 1}, {2, 5, 6}});
  CHECK(ends_of({{5, 2, 3}}) == Ranges{{5, 2, 3}});
}

TEST_CASE("members that repeat one another stand for each other where the same rounds run them") {
  const auto all = redistributions({{8, 2}, {8, 1}, {4, 3}, {8, 4}, {8, 1}, {8, 1}});
  const auto kept = [&](const std::vector<std::vector<RoundPart>>& rounds) {
    const PlannedBundle bundle = bundle_of({0, 1, 2, 3, 4, 5}, rounds);
    return ends_of_classes(alike_runs(bundle, all), bundle, all);
  };
  const auto every = [](int64_t piece, int64_t pieces) {
    return std::vector<RoundPart>{part(0, 0, 0, 2, piece, pieces), part(1, 0, 0, 1, piece, pieces), part(2, 0, 0, 3, piece, pieces),
                                  part(3, 0, 0, 4, piece, pieces), part(4, 0, 0, 1, piece, pieces), part(5, 0, 0, 1, piece, pieces)};
  };
  // One kind of extent 8, one of extent 4.
  CHECK(kept({every(0, 1)}) == Ranges{{0, 0, 1}, {2, 0, 1}, {2, 2, 3}, {5, 0, 1}});
  CHECK(kept({every(0, 2), every(1, 2)}) == Ranges{{0, 0, 1}, {2, 0, 1}, {2, 2, 3}, {5, 0, 1}});
  // Another round, another piece, no round: not alike.
  auto parts = every(0, 1);
  parts.erase(parts.begin() + 4);
  CHECK(kept({parts, {part(4, 0, 0, 1)}}) == Ranges{{0, 0, 1}, {2, 0, 1}, {2, 2, 3}, {4, 0, 1}, {5, 0, 1}});
  CHECK(kept({parts}) == Ranges{{0, 0, 1}, {2, 0, 1}, {2, 2, 3}, {4, 0, 1}, {5, 0, 1}});
  parts = every(0, 2);
  parts[1] = part(1, 0, 0, 1, 1, 2);
  CHECK(kept({parts, every(1, 2)}) == Ranges{{0, 0, 1}, {1, 0, 1}, {2, 0, 1}, {2, 2, 3}, {5, 0, 1}});
  // The runs of one member are told apart though the same rounds run them.
  CHECK(kept({every(0, 1), {part(3, 1, 1, 2)}}) == Ranges{{0, 0, 1}, {2, 0, 1}, {2, 2, 3}, {3, 1, 2}, {3, 2, 3}, {3, 3, 4}, {5, 0, 1}});
}

}  // namespace
}  // namespace meshplan
