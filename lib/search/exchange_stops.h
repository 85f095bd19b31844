// By way of which states exchanges of a bundle's members may go: stops that spare slow links what
// several ranks need.
//
//     hosts of 8, serve 16 ranks, target R     at once         every rank fetches it all
//                                              by a stop       S(0) over all 16, then R: the source
//                                                              sends it once, replicas share it
//                                              by two stops    S(0) over all 16, S(0) inside hosts,
//                                                              R: every host fetches it once
#pragma once

#include <vector>

#include "plan/question.h"
#include "transfer/level_map.h"

namespace meshplan {

// Shardings on the way to `dst`, the last of them `dst` without what it has pending that the source
// has not: `dst` cut further over sub-axes that hold copies of it.
using Stops = std::vector<State>;

// Stops of a family: what has the same number is cut alike, whatever tensor it is.
struct FamilyStops {
  int family = 0;
  Stops stops;
  int phases = 1;  // of the exchange to the last of them
  [[nodiscard]] bool same_steps(const FamilyStops& other) const {
    return stops == other.stops && phases == other.phases;
  }
};

// At once first, family 0. Then with stops: over all sub-axes that hold copies, over those inside
// units of each level, over both one behind the other, and by what each unit of a level needs,
// spread over its ranks; on one mesh also by what each unit has and by what it needs, spread alike.
// Those inside units also along the tensor dims that the source cuts: few ranks send a part then.
// Where units cut the target mesh unevenly, those inside units, and both one behind the other, also
// by units that do not (even_units.h); and, as units then have unequal numbers of copies, to the
// target in two phases, at once and from it cut over all sub-axes that hold copies. Several
// families may have the same stops. They ascend.
[[nodiscard]] std::vector<FamilyStops> stops_of(const PlanQuestion& question,
                                                const LevelMap& src_levels,
                                                const LevelMap& dst_levels);

// Adds, of families by two stops, the same by the first alone and to the target in two phases: what
// a unit has of it is shared while the rest crosses, so that less is left behind the last of that.
// No state in between says so, as ranks would have two boxes. Their numbers are above all others;
// none where anything is pending.
//
//     hosts of 8, serve 16 ranks    by two stops     comes, crosses, then all of it is shared
//                                   in two phases    comes, crosses while the half that is there is
//                                                    shared, then the other half is
void add_shared_while_crossing(const PlanQuestion& question, std::vector<FamilyStops>& families);

// The target cut further over every whole mesh dim that holds copies of it, then without the
// outermost of them, and so on to the target: an exchange brings each copy a part of its own, and
// one all_gather a dim shares them. Along each tensor dim that has as many slices, the first one
// first. None where no mesh dim holds copies.
[[nodiscard]] std::vector<Stops> gathered_stops(const PlanQuestion& question,
                                                const LevelMap& dst_levels);

// On the source's mesh: each rank of a unit has one part of what the unit has, then the same part
// of all units, gathered over the mesh dims that lie outside of it.
//
//     hosts of 2, fsdp 2 x tp 2    S(0)[0]S(0)[1] -> RS(0)    before S(0)S(1), gathered RS(1)
//
// Over the outer links a rank gathers what its own unit lacks and no more; the exchange before and
// the one behind, to the target, stay inside.
struct Rails {
  State before;
  Stops gathered;  // one behind the other
};
// By units of each level that need all of the target, along each tensor dim that is not cut outside
// of them. None where whole mesh dims do not cut the tensor outside of units, where target and
// source lie on other ranks, or anything is pending.
[[nodiscard]] std::vector<Rails> rails_of(const PlanQuestion& question, const LevelMap& src_levels,
                                          const LevelMap& dst_levels);

}  // namespace meshplan
