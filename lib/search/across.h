// Plans across two meshes, in one search:
//
//     source ── steps ──▶ S ── one exchange ──▶ L ── steps ──▶ target
//               source's mesh                       target's mesh
//
// S is any state of the source's mesh whose boxes the memory rule allows, with what is still to be
// reduced pending; L any of the target's mesh with nothing pending. The steps before S and behind L
// are plans on one mesh (search.h). What a plan by way of S or of L takes at least is known before
// it is priced (cost/bounds.h), so that most are never listed:
//
//     L alone      the bound from the source to L, and what is left on the target's mesh
//     S and L      what leads to S, the bound from there to L, and what is left
//
// The exchange goes in one phase or in two, by the ways of exchange_step.h. Steps on one mesh are
// those that a search there finds. Everything that may take less than the best plan is looked at,
// or said to be left out. Where ways on one mesh take much work, plans that need few of them come
// first.
#pragma once

#include "search/optimal.h"

namespace meshplan {

// As plan_optimal (optimal.h) for a request that crosses meshes. `levels`: of the source's mesh.
[[nodiscard]] Result<StepList> plan_across(const PlanQuestion& question, const LevelMap& levels,
                                           work::Budget& budget, const WhatIf& what_if);

}  // namespace meshplan
