// How many ranks of a set lie in each unit, and over links of which levels a rank meets such a set.
//
//     hosts of 8, ranks 6 to 9     two in host 0, two in host 1
//     rank 7 meets them            inside its host, as 6 is there, and across hosts
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "transfer/level_units.h"

namespace meshplan {

using UnitCounts = std::map<std::pair<int, int64_t>, int64_t>;  // ranks, by level and unit

[[nodiscard]] UnitCounts counts_of(const LevelUnits& units, const std::vector<int64_t>& ids);

// Whether links of the level join the rank to some of `others`, of which `but` are left out: its
// unit has more of them than its unit of the level inside it.
[[nodiscard]] bool meets(const LevelUnits& units, int64_t id, const UnitCounts& others,
                         const UnitCounts& but, int level);

}  // namespace meshplan
