// Warnings that sell themselves: which flattened mesh would make a plan cheaper, found by planning
// again as if it were declared.
#pragma once

#include <vector>

#include "plan/question.h"
#include "search/work.h"
#include "transfer/level_map.h"

namespace meshplan {

// One warning for every set of mesh dims that is not declared, that the best plan with it declared
// runs a collective on, and that makes that plan cheaper than `planned` (priced). Each names the
// collective, the steps that it replaces and what it saves; never one that saves nothing. Sets that
// the budget does not suffice for are not looked at.
[[nodiscard]] std::vector<Warning> missing_flattens(const PlanQuestion& question,
                                                    const LevelMap& levels,
                                                    const PlannedRedistribution& planned,
                                                    work::Budget& budget);

// One flatten of the file-level ranking.
struct RankedFlatten {
  std::string mesh;
  std::vector<std::string> dims;
  // predicted time of the whole file, weighted by count, with this and all earlier ones declared
  int64_t total_ps = 0;
};

// Which k flattens give the most for the whole file: every choice of up to `most` sets out of
// `candidates` is planned in full where there are few enough, else one set is added at a time, as
// far as the work of all the file's questions goes. The first entry's total is exact for itself,
// and so on.
struct FlattenRanking {
  int64_t declared_ps = 0;  // as the file stands
  bool exhaustive = true;   // every choice was planned
  std::vector<RankedFlatten> chosen;
};
[[nodiscard]] FlattenRanking rank_flattens(const MeshTable& meshes, const Topology& topology,
                                           const std::vector<Request>& requests,
                                           const PlanOptions& options, int64_t most);

}  // namespace meshplan
