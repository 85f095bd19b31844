// What units need from outside of them, what must leave them and what their members send one
// another, where levels cut a mesh unevenly or states a tensor: bounds and floors that closed forms
// over digits do not give.
//
//     mesh dp 128 x tp 8 on units of 72, S(0)R -> RR
//     a copy that starts 8 ranks before the end of a unit has 8 ranks there, which want all and
//     hold 1/128 of it: 127/128 enters that unit over the links of 8 ranks
//
// A few units of each level are looked at (telling_units.h). Whatever is left out, the figures stay
// below the truth.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "search/exchange_way.h"
#include "search/list_pairs.h"
#include "search/rank_sides.h"
#include "search/search_state_bytes.h"
#include "search/unit_boxes.h"

namespace meshplan {

struct PlanProblem;

// Larger units are not looked at.
constexpr size_t most_unit_members = 72;

// Elements, of all members of a unit together.
struct UnitNeed {
  int64_t least = 0;  // that enter whatever the plan: what some member wants and none holds whole
  int64_t one_phase = 0;  // that enter in one exchange in one phase: each member fetches for itself
  int64_t one_member = 0;  // of these, the most that one member fetches
  int64_t inside = 0;      // peers of one member among them: holders of what it wants, or askers
  int64_t one_sender = 0;  // that one member sends to others, which have none nearer
  int64_t missing = 0;     // that members do not hold themselves
  int64_t leaving =
      0;  // that leave whatever the plan: only members have part of it, others want it
  // Of each box that members want (unit_boxes.h).
  struct Want {
    int64_t near = 0;     // shards that members hold part of, each contribution to a sum by itself
    int64_t fetched = 0;  // that no member holds
    int64_t members = 1;  // that want it
    int64_t shards = 0;   // that it meets and of which members hold nothing, at least
  };
  std::vector<Want> wants;
  // Boxes, not empty, of which members are all holders.
  struct Alone {
    size_t held = 0;     // its place in the unit's boxes held
    int64_t asking = 0;  // members that want part of it
    int64_t wanted = 0;  // elements that some member wants, at most
  };
  std::vector<Alone> alone;
  // Elements of these that one member sends out in one exchange in one phase.
  int64_t sent_outside = 0;
  bool shards_known = false;  // of the boxes, counted where floors ask for them
};

// The pair of states that units were asked of last, and what does not differ from unit to unit.
struct UnitPair {
  uint64_t number = 0;  // of those asked so far; 0: none yet
  SearchState from;
  SearchState to;
  const UnitBoxTable::OfState* held = nullptr;
  const UnitBoxTable::OfState* wanted = nullptr;
  uint16_t apart = 0;      // sub-axes pending before and after
  uint16_t reduced = 0;    // before alone
  int64_t held_parts = 1;  // into which the states cut the tensor
  int64_t wanted_parts = 1;
  int64_t contributions = 1;  // to each element, that the exchange reduces
  int64_t talking = 1;        // ranks of the mesh that differ in nothing that stays pending
};

// The ranks of one copy of the mesh in one unit of the level inside of `level`.
struct UnitRanks {
  size_t number = 0;                // of the units looked at
  int level = 1;                    // what enters comes over this level or those outside of it
  int64_t exchange_latency_ns = 0;  // of an exchange over them, the least of theirs
  int64_t per_peer_ns = 0;          // the least of theirs
  TopologyLevel links;              // by which exchanges fetch: of one level, or of several as one
  size_t first = 0;                 // member: its place in PlanProblem::sides
  size_t count = 0;                 // of members
  // Whether the members' coordinates are every combination of some on each sub-axis; how many those
  // are, and the sub-axes on which they are all that there are.
  bool grid = false;
  std::array<int64_t, max_sub_axes> inside{};
  uint16_t whole = 0;
  // What was asked last, of so numbered a pair: bounds and floors ask for one in turn.
  mutable uint64_t asked = 0;
  mutable UnitNeed need;

  // Of the ranks there.
  [[nodiscard]] size_t part() const { return number + 1; }
  [[nodiscard]] int64_t members() const { return static_cast<int64_t>(count); }
};

// Of one exchange, which makes nothing pending; what any plan needs where none may make
// contributions on the way, which may lie anywhere.
[[nodiscard]] const UnitNeed& unit_need(const PlanProblem& p, const UnitRanks& unit,
                                        const SearchState& from, const SearchState& to);

// What a plan between two states takes at least by what units need, ps, 0 where it may make
// contributions on the way; above `enough_ps` it may be
// more. `from` may grow: what it grows to holds less. `at`: the pairs of their lists.
struct UnitAsked {
  int64_t met = 2;       // some rank must come to know of so many
  bool several = false;  // of plans that communicate in two steps or more
};
[[nodiscard]] int64_t unit_bound_ps(const PlanProblem& p, const SearchState& from,
                                    const SearchState& to, const PairPlaces& at,
                                    const UnitAsked& asked = {}, int64_t enough_ps = INT64_MAX);
// What one exchange between them takes at least; above `enough_ps` it may be more. Law: never above
// price_between.
[[nodiscard]] int64_t unit_exchange_floor_ps(const PlanProblem& p, const SearchState& from,
                                             const SearchState& to, ExchangeWay way,
                                             int64_t enough_ps = INT64_MAX);
// The same with the members' peers outside counted one by one, in one phase for each cut: it says
// more, and takes longer.
[[nodiscard]] int64_t unit_peers_floor_ps(const PlanProblem& p, const SearchState& from,
                                          const SearchState& to, ExchangeWay way,
                                          int64_t enough_ps = INT64_MAX);

}  // namespace meshplan
