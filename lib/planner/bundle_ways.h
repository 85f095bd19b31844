// Which ways there are for a kind of tensors of a bundle to move.
//
//     exchanges through stops     at once, by a stop over all replicas, by two, ..
//     gathers                     one exchange, then all_gathers; or those between two exchanges
//     its own                     as it is planned for itself, as far as rounds run that
#pragma once

#include <vector>

#include "planner/bundle_kind.h"
#include "planner/plan_groups.h"
#include "search/exchange_plans.h"

namespace meshplan {

// Any, or those that exchange nothing.
enum class Ways : uint8_t { all, of_collectives };

class WayMaker {
 public:
  // All of it stays where it is. `levels`: of every mesh of the members.
  WayMaker(const Plan& plan, const BundleRequest& bundle, PlanGroups& groups,
           const MeshLevels& levels, Ways ways)
      : plan_(plan), bundle_(bundle), groups_(groups), levels_(levels), ways_(ways) {}

  // Exchanges first, at once in both cuts, then those that gather; the plan for itself last, where
  // rounds can run it. `lone`: it is one tensor, and all of the bundle.
  void make(Kind& kind, bool lone);

 private:
  enum class Room : uint8_t { for_messages, any };
  void add_ways(Kind& kind, const PlanQuestion& asked, const std::vector<FamilyStops>& all,
                Room room);
  void add_gathering_ways(Kind& kind, const PlanQuestion& asked);
  void add_way(Kind& kind, StepList list, Room room);
  [[nodiscard]] bool may_take(const PlannedRedistribution& planned) const;
  [[nodiscard]] bool leaves_room_for_messages(const PlannedRedistribution& planned) const;
  [[nodiscard]] std::vector<int64_t> bytes_between(const PlannedRedistribution& planned) const;
  [[nodiscard]] bool keeps_to_memory(const PlannedRedistribution& planned) const;

  const Plan& plan_;
  const BundleRequest& bundle_;
  PlanGroups& groups_;
  const MeshLevels& levels_;
  Ways ways_;
};

}  // namespace meshplan
