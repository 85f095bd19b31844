// What a plan across meshes does on one of them: the states of that mesh, and the ways between
// these and the request's end there.
#pragma once

#include <optional>
#include <vector>

#include "plan/question.h"
#include "search/search.h"
#include "search/work.h"
#include "transfer/level_map.h"

namespace meshplan {

// A state of one mesh, and the way between it and the request's end there.
struct Stop {
  SearchState at;
  State state;
  int64_t box_elements = 0;
  int64_t ps = 0;  // of the way: at least, and exactly where it is found
  bool found = false;
  // Across: from a state of the source's mesh to the target, or from the source to a landing, at
  // least; -1: not known.
  int64_t bound_ps = -1;
  // Across: by way of it with an exchange that was priced, at least; INT64_MAX: none was.
  int64_t straight_ps = INT64_MAX;
  bool looked_at = false;  // as the state to cross from
  std::vector<Step> steps;
};

// The states of one end's mesh.
class Side {
 public:
  // `request`: on that mesh alone, its other end free. `leads_away`: from the request's source, not
  // to its target.
  Side(const PlanQuestion& question, const LevelMap& levels, Request request, bool leads_away);

  [[nodiscard]] bool fits() const { return p_.has_value(); }
  // Bytes of the largest box of the end.
  [[nodiscard]] int64_t end_bytes() const;
  // Every state whose boxes are no larger than `state_limit`, nearest to the end first.
  [[nodiscard]] std::vector<Stop> stops(int64_t state_limit, Shortcuts& shortcuts) const;
  // Of its largest box.
  [[nodiscard]] int64_t bytes(const Stop& stop) const;
  // Finds the way of least peak.
  LeastPeak find_least_peak(Stop& stop, work::Budget& budget) const;
  // Finds the way of a stop if it takes less than `below_ps`, by a search of `most_work`. What it
  // left out.
  Shortcuts find(Stop& stop, int64_t below_ps, int64_t state_limit, int64_t most_work,
                 work::Budget& budget) const;

 private:
  [[nodiscard]] Request request_of(const Stop& stop) const;
  [[nodiscard]] PlanProblem problem_of(const Request& request) const;
  bool add_states(uint16_t pending, std::vector<SearchState>& states) const;
  void add_near(const SearchState& end, uint16_t movable, std::vector<SearchState>& states) const;

  const PlanQuestion& question_;
  const LevelMap& levels_;
  Request request_;
  bool leads_away_;
  std::optional<PlanProblem> p_;
};

}  // namespace meshplan
