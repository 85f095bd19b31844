// What sets of ranks of one member of a bundle must take in and give away (cost/set_needs.h), where
// the target may have any of several orders: of each set the least.
//
//     8 rows on a 2 x b 2, S(0)R -> S(0)S(0)     rank 1 wants rows 2 3, or 4 5 with b first:
//                                                it has rows 0 to 3, so nothing must come in
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "cost/rank_boxes.h"
#include "cost/unit_counts.h"
#include "tensor/request.h"

namespace meshplan {

// What crosses the border of a set.
struct Crossing {
  int64_t in = 0;
  int64_t out = 0;
};

struct Crossings {
  std::map<std::pair<int, int64_t>, Crossing> units;  // by level, and rank or unit inside of it
  std::map<size_t, Crossing> meshes;                  // of all ranks of a mesh, where two take part
  std::map<int, int64_t> wanting;  // by level, the most ranks or units that want one box

  // The same member in another order: of each set the least of both.
  void keep_least(const Crossings& other);
  // So many times those of another member: each set adds up.
  void add(const Crossings& more, int64_t weight);
};

// In elements.
[[nodiscard]] Crossings crossings_of(const Participants& all, const Request& request,
                                     const LevelUnits& units);

}  // namespace meshplan
