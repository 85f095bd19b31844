// Plans that exchange in one phase, straight or by way of stops (exchange_stops.h): what a bundle
// is made of, whose rounds pay a latency once for many tensors, and overlap; and plans that gather
// behind one exchange.
#pragma once

#include <optional>
#include <vector>

#include "plan/question.h"
#include "search/exchange_stops.h"

namespace meshplan {

// An exchange in two phases that rounds run, in pieces, in place of chunks of its own.
void go_in_no_chunks(Step& step);

// The states that a plan passes, as stops of exchanges: collectives move in one launch what
// exchanges move in pieces. Nullopt where it reduces, makes partials, or moves on the source's mesh
// before it crosses.
[[nodiscard]] std::optional<Stops> stops_of_steps(const PlanQuestion& question,
                                                  const std::vector<Step>& steps);

// One exchange to the first of gathered stops, then all_gathers, and the local steps behind them.
[[nodiscard]] StepList gathers_through(const PlanQuestion& question, const Stops& stops,
                                       bool whole_pieces);
// An exchange inside of units, all_gathers over the mesh dims outside, an exchange inside again.
[[nodiscard]] StepList gathers_by_rails(const PlanQuestion& question, const Rails& rails);

// Steps through the stops, and the local ones behind them that make partials. The request's target
// stands as it is.
[[nodiscard]] StepList exchanges_through(const PlanQuestion& question, const Stops& stops,
                                         bool whole_pieces, int phases = 1);

}  // namespace meshplan
