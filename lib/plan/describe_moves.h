// How a step says what its mesh dims do.
//
//     uniform      "src": "S(0)", "dst": "R"                       every mesh dim of the step does the same
//     else         "moves": [{"mesh_dim": "a", "src": ...}, ...]
#pragma once

#include <vector>

#include "plan/plan.h"

namespace meshplan {

// Says in the step that all its mesh dims go from `src` to `dst`: src, dst, and tensor_dim where
// just one is cut or joined.
void describe_uniform(Step& step, const Placement& src, const Placement& dst);
// The same from what each mesh dim held and holds: uniform where one src and dst says it all, else
// `moves`.
void describe_moves(Step& step, std::vector<Move> moves);

}  // namespace meshplan
