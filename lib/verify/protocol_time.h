// The model of protocols, recounted: a collective takes the least over protocols and over the ways
// that each has.
//
//   ring       every unit of level l-1 is left once a round, but the last of each unit of level l;
//              what a rank moves beyond the near bytes is held to the far share too
//   tree       all_reduce: in and out of a chain through the ranks of a unit of level 0, up and
//              down a binary tree over units; every rank sends its unit's share twice
//   switches   all_reduce: the same, but what lies inside of the outermost level with switches
//              takes no steps
#pragma once

#include "verify/group_time.h"
#include "verify/op_rules.h"

namespace meshplan::verification {

// Whether any protocol may be taken by collectives of the op.
[[nodiscard]] bool has_protocol(const Topology& topology, Op op);

[[nodiscard]] int64_t protocol_time(const Topology& topology, Op op, const OpRule& rule,
                                    const GroupPattern& pattern, const LevelTraffic& ring,
                                    const Moved& moved);

}  // namespace meshplan::verification
