#include "search/across_side.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/int_math.h"
#include "search/edge_steps.h"
#include "search/moves.h"

namespace meshplan {
namespace {

// Of one mesh with one set of pending reductions; beyond it those near the end alone.
constexpr size_t most_states = 2'000;

}  // namespace

Side::Side(const PlanQuestion& question, const LevelMap& levels, Request request, bool leads_away)
    : question_(question),
      levels_(levels),
      request_(std::move(request)),
      leads_away_(leads_away),
      p_(make_problem(levels, question, request_, request_.dst)) {}

int64_t Side::end_bytes() const {
  return saturating_mul(box_elements(*p_, leads_away_ ? p_->source : p_->target), p_->element);
}

std::vector<Stop> Side::stops(int64_t state_limit, Shortcuts& shortcuts) const {
  std::vector<SearchState> states;
  shortcuts.add(p_->shortcuts);
  const uint16_t open = leads_away_ ? p_->source.pending : 0;
  for (uint16_t q = open;; q = static_cast<uint16_t>((q - 1) & open)) {
    const bool reduced_at_once = q == 0 || q == open || !p_->one_reduction;
    if (reduced_at_once && !add_states(q, states)) shortcuts.add(Shortcut::few_landings);
    if (q == 0) break;
  }
  std::vector<Stop> stops;
  for (const SearchState& at : states) {
    const SearchState& end = leads_away_ ? p_->source : p_->target;
    Stop stop;
    stop.found = at == end;
    if (!stop.found && saturating_mul(box_elements(*p_, at), p_->element) > state_limit) continue;
    stop.at = at;
    stop.state = to_state(*p_, at);
    stop.box_elements = box_elements(*p_, at);
    if (!stop.found)
      stop.ps = (leads_away_ ? bound_between(*p_, end, at) : bound_between(*p_, at, end)).ps;
    stops.push_back(std::move(stop));
  }
  std::stable_sort(stops.begin(), stops.end(), [](const Stop& a, const Stop& b) {
    return std::tuple(a.ps, !a.found) < std::tuple(b.ps, !b.found);
  });
  return stops;
}

int64_t Side::bytes(const Stop& stop) const {
  return saturating_mul(stop.box_elements, p_->element);
}

LeastPeak Side::find_least_peak(Stop& stop, work::Budget& budget) const {
  if (stop.found) return {0, true, {}};
  const PlanProblem problem = problem_of(request_of(stop));
  LeastPeak least = least_peak(problem, budget.left / 100 * work::landing_percent);
  budget.spend(problem.work + work::problem);
  stop.found = true;
  stop.ps = cost_of(least.edges).ps;
  stop.steps = steps_of_edges(problem, least.edges, levels_.mesh().name);
  return least;
}

Shortcuts Side::find(Stop& stop, int64_t below_ps, int64_t state_limit, int64_t most_work,
                     work::Budget& budget) const {
  if (stop.found) return {};
  const Request request = request_of(stop);
  PlanProblem problem = problem_of(request);
  if (question_.options->max_memory_bytes == 0) problem.state_limit = state_limit;
  SearchOptions options;
  options.below_ps = below_ps;
  options.work_budget = most_work;
  // Its share of the work is small: bounds that are raised sooner leave none for a plan.
  options.unraised_percent = 100;
  const Found found = find_cheapest(problem, options);
  budget.spend(found.work + work::problem);
  if (!found.exists && found.shortcuts.none()) stop.ps = below_ps;
  if (!found.exists) return found.shortcuts;
  stop.found = true;
  stop.ps = found.cost.ps;
  stop.steps = steps_of_edges(problem, found.edges, levels_.mesh().name);
  return found.shortcuts;
}

Request Side::request_of(const Stop& stop) const {
  Request request = request_;
  (leads_away_ ? request.dst : request.src) = stop.state;
  return request;
}

// The way of a stop as a question.
PlanProblem Side::problem_of(const Request& request) const {
  auto problem = make_problem(levels_, question_, request, request.dst);
  MESHPLAN_CHECK(problem.has_value(), "a state of a search does not fit into one");
  // With one_reduction what is still pending is the crossing's to reduce, and nothing is before.
  if (leads_away_ && problem->target.pending != 0) problem->source_pending = 0;
  return *std::move(problem);
}

// False: more than are listed; those near the end stand in.
bool Side::add_states(uint16_t pending, std::vector<SearchState>& states) const {
  SearchState like = leads_away_ ? p_->source : p_->target;
  like.pending = pending;
  like.made = 0;
  const size_t before = states.size();
  const auto movable = static_cast<uint16_t>(p_->all & ~pending);
  if (all_spreads(*p_, like, movable, before + most_states, states)) return true;
  states.resize(before);
  add_near(like, movable, states);
  return false;
}

// The end, and that cut further over one or two sub-axes that hold copies.
void Side::add_near(const SearchState& end, uint16_t movable,
                    std::vector<SearchState>& states) const {
  size_t first = states.size();
  states.push_back(end);
  for (int depth = 0; depth < 2; ++depth) {
    const size_t last = states.size();
    for (; first < last; ++first) {
      const SearchState from = states[first];
      for (unsigned free = movable & ~sharding(from, p_->dims); free != 0; free &= free - 1) {
        for (int d = 0; d < p_->dims; ++d) {
          SearchState next = from;
          append(next, p_->dims, d, static_cast<uint8_t>(__builtin_ctz(free)));
          if (std::find(states.begin(), states.end(), next) == states.end()) states.push_back(next);
        }
      }
    }
  }
}

}  // namespace meshplan
