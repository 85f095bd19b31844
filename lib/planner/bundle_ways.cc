#include "planner/bundle_ways.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "base/int_math.h"
#include "cost/step_cost.h"
#include "plan/step_mesh.h"
#include "search/exchange_step.h"
#include "tensor/largest_elements.h"

namespace meshplan {
namespace {

// What a kind's plan for itself is numbered as among families of stops: it comes last.
constexpr int own_family = INT_MAX;

}  // namespace

void WayMaker::make(Kind& kind, bool lone) {
  PlannedRedistribution own = plan_.redistributions[kind.members.front()];
  if (plan_for_rounds(plan_, *levels_[own.request.src_mesh], own)) groups_.name_groups(own);
  const bool runs = may_take(own) && runs_in_rounds(own) && keeps_to_memory(own);
  const bool moves = std::any_of(own.steps.begin(), own.steps.end(),
                                 [](const Step& step) { return !is_local(step.op); });
  if (moves && own.planner == PlannerKind::optimal) {
    Request request = own.request;
    request.dst = own.dst;
    const PlanQuestion asked{&plan_.meshes, &plan_.topology, &request, &plan_.options};
    std::vector<FamilyStops> all =
        stops_of(asked, *levels_[request.src_mesh], *levels_[request.dst_mesh]);
    // The last waves of one tensor by itself have nothing of others beside them.
    if (lone) add_shared_while_crossing(asked, all);
    if (const auto own_stops = stops_of_steps(asked, std::as_const(own.steps).list()))
      all.push_back({own_family, *own_stops});
    std::erase_if(all, [&](const FamilyStops& f) { return has_idle_step(request, f.stops); });
    add_ways(kind, asked, all, Room::for_messages);
    add_gathering_ways(kind, asked);
    // Ways that leave no room say how much staging they need.
    if (kind.ways.empty() && !(runs && is_in_one_phase(own))) add_ways(kind, asked, all, Room::any);
  }
  if (runs) kind.ways.emplace_back().planned = own;
  kind.own_in_two_phases = runs && kind.ways.size() > 1 && !is_in_one_phase(own);
}

void WayMaker::add_ways(Kind& kind, const PlanQuestion& asked, const std::vector<FamilyStops>& all,
                        Room room) {
  for (size_t i = 0; i < all.size(); ++i) {
    const auto same = std::find_if(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i),
                                   [&](const auto& f) { return f.same_steps(all[i]); });
    for (const bool whole : {false, true}) {
      const size_t before = kind.ways.size();
      if (whole && all[i].phases == 2 && all[i].stops.size() == 1) continue;
      if (same->family == all[i].family) {
        add_way(kind, exchanges_through(asked, all[i].stops, whole, all[i].phases), room);
        if (kind.ways.size() > before) kind.families[{all[i].family, whole}] = before;
      } else if (const auto known = kind.families.find({same->family, whole});
                 known != kind.families.end()) {
        kind.families[{all[i].family, whole}] = known->second;
      }
    }
  }
}

void WayMaker::add_gathering_ways(Kind& kind, const PlanQuestion& asked) {
  const Request& request = *asked.request;
  kind.gathering = kind.ways.size();
  for (const Stops& stops : gathered_stops(asked, *levels_[request.dst_mesh])) {
    if (has_idle_step(request, stops)) continue;
    for (const bool whole : {false, true})
      add_way(kind, gathers_through(asked, stops, whole), Room::for_messages);
  }
  kind.rails = kind.ways.size();
  for (const Rails& rails :
       rails_of(asked, *levels_[request.src_mesh], *levels_[request.dst_mesh])) {
    Request behind = request;
    behind.src = rails.gathered.back();
    if (!has_idle_step(behind, {landing_of(request)}))
      add_way(kind, gathers_by_rails(asked, rails), Room::for_messages);
  }
  kind.gathers_end = kind.ways.size();
}

bool WayMaker::may_take(const PlannedRedistribution& planned) const {
  return ways_ == Ways::all ||
         std::none_of(planned.steps.begin(), planned.steps.end(),
                      [](const Step& step) { return step.op == Op::exchange; });
}

// Bytes that a rank holds between its steps, the most of any, after each but the last.
std::vector<int64_t> WayMaker::bytes_between(const PlannedRedistribution& planned) const {
  const Request& request = planned.request;
  std::vector<int64_t> between;
  for (size_t i = 0; i + 1 < planned.steps.size(); ++i) {
    const Step& step = planned.steps[i];
    const auto shape = mesh_shape(mesh_after(plan_.meshes, request, step));
    between.push_back(largest_bytes(step.state, request.tensor, shape));
  }
  return between;
}

// Whether the boxes between its steps leave an eighth of the staging at least.
bool WayMaker::leaves_room_for_messages(const PlannedRedistribution& planned) const {
  int64_t between = 0;
  for (const int64_t bytes : bytes_between(planned)) between = saturating_add(between, bytes);
  const int64_t staging = bundle_.max_staging_bytes;
  return staging == 0 || between <= staging - floor_div(staging, 8);
}

// It is priced where there is a limit. By default no state on the way is larger than both ends.
bool WayMaker::keeps_to_memory(const PlannedRedistribution& planned) const {
  const int64_t limit = plan_.options.max_memory_bytes;
  if (limit != 0 || planned.planner != PlannerKind::optimal)
    return limit <= 0 || planned.totals.peak_bytes <= limit;
  const Request& request = planned.request;
  const auto largest = [&](const State& state, size_t mesh) {
    return largest_bytes(state, request.tensor, mesh_shape(plan_.meshes.meshes[mesh]));
  };
  const int64_t ends =
      std::max(largest(request.src, request.src_mesh), largest(planned.dst, request.dst_mesh));
  const std::vector<int64_t> between = bytes_between(planned);
  return std::all_of(between.begin(), between.end(), [&](int64_t bytes) { return bytes <= ends; });
}

void WayMaker::add_way(Kind& kind, StepList list, Room room) {
  PlannedRedistribution planned = plan_.redistributions[kind.members.front()];
  planned.steps = std::move(list.steps);
  planned.dst = std::move(list.dst);
  if (!may_take(planned)) return;
  if (room == Room::for_messages && !leaves_room_for_messages(planned)) return;
  if (plan_.options.max_memory_bytes > 0)
    price_redistribution(planned, plan_.meshes, *levels_[planned.request.src_mesh]);
  if (!keeps_to_memory(planned)) return;
  groups_.name_groups(planned);
  kind.ways.emplace_back().planned = std::move(planned);
}

}  // namespace meshplan
