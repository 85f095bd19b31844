// Replay ranks: the global ids of a world, numbered 0 .. world-1 in ascending order. Process i of
// an MPI or NCCL run plays replay rank i.
//
//     rank map [9, 2, 7, 4]     global_ids  = 2 4 7 9     of replay ranks 0 1 2 3
//                               of_position = 3 0 2 1     position 0 is global id 9, replay rank 3
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "mesh/mesh.h"

namespace meshplan {

struct RankTable {
  std::vector<int64_t> global_ids;   // replay rank -> global id, ascending
  std::vector<int32_t> of_position;  // position in the rank map -> replay rank
};
[[nodiscard]] RankTable make_rank_table(const Universe& universe);
// The same if at least as many ranks exist; else an error (environment), before anything as large
// as the world is allocated.
[[nodiscard]] Result<RankTable> rank_table_within(const Universe& universe, int64_t there);

}  // namespace meshplan
