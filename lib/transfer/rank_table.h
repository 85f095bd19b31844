// Replay ranks: the global ids of a file, numbered from 0 in ascending order. Process i of an MPI
// or NCCL run plays replay rank i.
//
//     rank map [9, 2, 7, 4]     global_ids  = 2 4 7 9     of replay ranks 0 1 2 3
//                               of_position = 3 0 2 1     position 0 is global id 9, replay rank 3
//
// Several universes have one numbering, and each its positions: with a second rank map [4, 5],
// global_ids = 2 4 5 7 9 and its of_position = 1 2.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "mesh/mesh_table.h"

namespace meshplan {

struct RankTable {
  // Of one universe: position in the rank map -> replay rank.
  struct Positions {
    std::shared_ptr<const Universe> universe;
    std::vector<int32_t> of_position;
  };
  std::vector<int64_t> global_ids;  // replay rank -> global id, ascending
  std::vector<Positions> universes;

  // Of a universe of the table.
  [[nodiscard]] const std::vector<int32_t>& of_positions(const Universe& universe) const;
};
[[nodiscard]] RankTable make_rank_table(const MeshTable& meshes);
// The same if at least as many ranks exist; else an error (environment), before anything as large
// as the world is allocated.
[[nodiscard]] Result<RankTable> rank_table_within(const MeshTable& meshes, int64_t there);

}  // namespace meshplan
