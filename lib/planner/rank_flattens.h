// Which flattened meshes would help a whole file most.
#pragma once

#include <string>
#include <vector>

#include "mesh/mesh_table.h"
#include "plan/plan.h"

namespace meshplan {

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
  int64_t declared_ps = 0;  // as the file declares it
  bool exhaustive = true;   // every choice was planned
  std::vector<RankedFlatten> chosen;
};
[[nodiscard]] FlattenRanking rank_flattens(const MeshTable& meshes, const Topology& topology,
                                           const std::vector<Request>& requests,
                                           const PlanOptions& options, int64_t most);

}  // namespace meshplan
