#include "replay/alike_tensors.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "plan/firsts.h"

namespace meshplan {
namespace {

// What tells runs apart: the first member that this one repeats, the run's number, and round, step,
// piece and pieces of every part that runs it.
using Treatment = std::vector<int64_t>;

std::vector<Treatment> treatments_of(const std::vector<AlikeRun>& runs, const PlannedBundle& bundle,
                                     const std::vector<PlannedRedistribution>& redistributions) {
  const std::vector<size_t> firsts = firsts_of(redistributions, bundle.request.members);
  std::vector<Treatment> treatments;
  size_t place = 0;  // of the run's member in the bundle's list
  for (const AlikeRun& run : runs) {
    while (bundle.request.members[place] != run.range.member) ++place;
    treatments.push_back({static_cast<int64_t>(firsts[place]), run.number});
  }
  for (size_t round = 0; round < bundle.rounds.size(); ++round) {
    for (const RoundPart& part : bundle.rounds[round].parts) {
      const auto first = std::partition_point(runs.begin(), runs.end(), [&](const AlikeRun& run) {
        return run.range.member < part.member ||
               (run.range.member == part.member && run.range.to <= part.from);
      });
      for (auto run = first;
           run != runs.end() && run->range.member == part.member && run->range.from < part.to;
           ++run) {
        Treatment& treatment = treatments[run - runs.begin()];
        treatment.insert(treatment.end(),
                         {static_cast<int64_t>(round), part.step, part.piece, part.pieces});
      }
    }
  }
  return treatments;
}

}  // namespace

std::vector<AlikeRun> alike_runs(const PlannedBundle& bundle,
                                 const std::vector<PlannedRedistribution>& redistributions) {
  const std::vector<size_t>& members = bundle.request.members;
  std::vector<std::vector<int64_t>> cuts;
  for (const size_t member : members) cuts.push_back({0, redistributions[member].request.count});
  for (const BundleRound& round : bundle.rounds) {
    for (const RoundPart& part : round.parts) {
      const auto at = std::lower_bound(members.begin(), members.end(), part.member);
      MESHPLAN_CHECK(at != members.end() && *at == part.member,
                     "a round runs members of its bundle");
      std::vector<int64_t>& own = cuts[at - members.begin()];
      own.insert(own.end(), {part.from, part.to});
    }
  }
  std::vector<AlikeRun> runs;
  for (size_t m = 0; m < members.size(); ++m) {
    std::sort(cuts[m].begin(), cuts[m].end());
    cuts[m].erase(std::unique(cuts[m].begin(), cuts[m].end()), cuts[m].end());
    for (size_t i = 0; i + 1 < cuts[m].size(); ++i)
      runs.push_back({{members[m], cuts[m][i], cuts[m][i + 1]}, static_cast<int64_t>(i)});
  }
  return runs;
}

std::vector<TensorRange> ends_of(const std::vector<TensorRange>& ranges) {
  std::vector<TensorRange> ends;
  for (const TensorRange& range : ranges) {
    ends.push_back({range.member, range.from, range.from + 1});
    if (range.to - range.from > 1) ends.push_back({range.member, range.to - 1, range.to});
  }
  return ends;
}

std::vector<TensorRange> ends_of_classes(
    const std::vector<AlikeRun>& runs, const PlannedBundle& bundle,
    const std::vector<PlannedRedistribution>& redistributions) {
  const std::vector<Treatment> treatments = treatments_of(runs, bundle, redistributions);
  std::map<Treatment, std::pair<size_t, size_t>> ends;  // the first and the last run
  for (size_t i = 0; i < runs.size(); ++i)
    ends.try_emplace(treatments[i], i, i).first->second.second = i;
  std::vector<TensorRange> kept;
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto& [first, last] = ends.at(treatments[i]);
    const TensorRange& range = runs[i].range;
    if (i == first) kept.push_back({range.member, range.from, range.from + 1});
    if (i == last && (first != last || range.to - range.from > 1))
      kept.push_back({range.member, range.to - 1, range.to});
  }
  return kept;
}

}  // namespace meshplan
