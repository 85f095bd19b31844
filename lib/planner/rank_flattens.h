// Which flattened meshes would help a whole file most.
#pragma once

#include <string>
#include <vector>

#include "mesh/mesh_table.h"
#include "plan/plan.h"
#include "tensor/request.h"

namespace meshplan {

// One flatten of the file-level ranking.
struct RankedFlatten {
  std::string mesh;
  std::vector<std::string> dims;
  // predicted time of the whole file, weighted by count, with this and all earlier ones declared
  int64_t total_ps = 0;
};

// Which k flattens give the most for the whole file: of the sets that by themselves help some
// redistribution every choice of up to `most` is priced where there are few enough, else one set is
// added at a time, as far as the work of all the file's questions goes. The first entry's total is
// exact for itself, and so on. Of the options' `groups` only what is declared counts.
struct FlattenRanking {
  int64_t declared_ps = 0;  // as the file declares it
  bool exhaustive = true;   // every choice was planned
  std::vector<RankedFlatten> chosen;
  int64_t work = 0;  // units (search/work.h)
};
// By redistribution: whether a bundle runs it.
[[nodiscard]] std::vector<bool> in_bundles(const std::vector<BundleRequest>& bundles,
                                           size_t redistributions);
// The requests that are in no bundle: those that flattens help.
[[nodiscard]] std::vector<Request> not_bundled(const std::vector<Request>& requests,
                                               const std::vector<BundleRequest>& bundles);
[[nodiscard]] FlattenRanking rank_flattens(const MeshTable& meshes, const Topology& topology,
                                           const std::vector<Request>& requests,
                                           const PlanOptions& options, int64_t most);

// The table with these declared, each under a name of its own.
[[nodiscard]] MeshTable with_flattens(const MeshTable& meshes,
                                      const std::vector<RankedFlatten>& flattens);

}  // namespace meshplan
