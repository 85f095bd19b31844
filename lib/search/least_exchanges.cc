#include "search/least_exchanges.h"

#include <algorithm>
#include <utility>

#include "base/int_math.h"
#include "search/exchange_floor.h"
#include "search/moves.h"
#include "search/work.h"

namespace meshplan {

LeastExchanges::LeastExchanges(const LeftQuestion& question, const std::vector<LeftState>& states,
                               const StateMoves& moves)
    : q_(question),
      p_(*question.problem),
      states_(states),
      moves_(moves),
      known_(p_.known_exchanges) {
  for (const LeftState& state : states) {
    known_as_.push_back(known_.number(state.at));
    if (q_.world != nullptr) {
      packed_.push_back(q_.world->pack(state.at));
    } else {
      lists_.push_back(p_.sides.lists(p_, state.at));
      largest_.push_back(box_elements(p_, state.at));
    }
  }
}

namespace {

// What was known holds still.
void know(LeastExchange& least, const AnyWayFloor& floor, Known known) {
  if (floor.ps > least.ps()) {
    least = {floor.ps, known, floor.of_less_held, floor.of_more_wanted};
  } else {
    least = {least.ps(), known, least.of_less_held(), least.of_more_wanted()};
  }
}

}  // namespace

bool LeastExchanges::inherit(size_t from, size_t to, LeastExchange& least) const {
  LeastExchange most = least;
  const auto look_at = [&](size_t f, size_t t, auto is_told) {
    const LeastExchange* const other = known_.find(known_as_[f], known_as_[t]);
    if (other != nullptr && other->ps() > most.ps() && is_told(*other)) most = *other;
  };
  p_.work += work::key;
  for (const uint32_t holds_more : moves_.coarser[from])
    look_at(holds_more, to, [](const LeastExchange& e) { return e.of_less_held(); });
  for (const uint32_t wants_less : moves_.finer[to])
    look_at(from, wants_less, [](const LeastExchange& e) { return e.of_more_wanted(); });
  if (most.ps() == least.ps()) return false;
  least = {most.ps(), least.known(), most.of_less_held(), most.of_more_wanted()};
  return true;
}

void LeastExchanges::refine(size_t from, size_t to, int64_t most) {
  if (q_.world != nullptr) return refine_packed(from, to, most);
  const SearchState& at = states_[from].at;
  const SearchState& aim = states_[to].at;
  LeastExchange& least = known_.between(known_as_[from], known_as_[to]);
  const int64_t ps = least.ps();
  const Known known = least.known();
  if (known < Known::floors && inherit(from, to, least)) return;
  if (known > Known::latency) {
    p_.sides.recall(lists_[to]);
    p_.sides.recall(lists_[from]);
  }
  switch (known) {
    case Known::latency:
      // By levels peers cost little beside what the bound says.
      know(least,
           p_.times.grow() ? few_peers(from, to, most)
                           : AnyWayFloor{larger_box_ps(p_, at, aim, largest_[from], largest_[to])},
           Known::peers);
      return;
    case Known::peers:
      know(least, boxes_floor(p_, at, aim, most), Known::boxes);
      return;
    case Known::boxes:
      least = floor_each(from, to, ps, most);
      break;
    case Known::floors:
      least = floor_closely(from, to, most).least();
      break;
    case Known::close_floors:
      least = price_sooner(from, to, most).least();
      return;
    case Known::price:
      return;
  }
  // Above `most` not all of it was looked at: it is asked again where more may be taken.
  if (least.ps() > most) least = {least.ps(), known};
}

// Where states pack all floors are known at once; each way has its own only where they decide.
void LeastExchanges::refine_packed(size_t from, size_t to, int64_t most) {
  const SearchState& at = states_[from].at;
  const SearchState& aim = states_[to].at;
  LeastExchange& least = known_.between(known_as_[from], known_as_[to]);
  if (least.known() == Known::close_floors) {
    least = price_sooner(from, to, most).least();
    return;
  }
  p_.work += work::packed_floors;
  const ExchangeFloors floors = q_.world->exchange_floors(packed_[from], packed_[to]);
  if (least.known() < Known::floors) {
    least = {floors.least_ps(at.pending != aim.pending), Known::floors};
    return;
  }
  LeastOfWays& each = ways(from, to);
  for (size_t k = 0; k < LeastOfWays::ways; ++k) {
    if (!may_go(p_, at, aim, exchange_ways[k])) continue;
    each.ps[k] = std::min(floors.of(exchange_ways[k]), too_long);
    each.priced[k] = each.ps[k] == too_long;
  }
  each.close = true;
  least = each.least();
}

AnyWayFloor LeastExchanges::few_peers(size_t from, size_t to, int64_t most) const {
  const SearchState& at = states_[from].at;
  const SearchState& aim = states_[to].at;
  if (!p_.sides.knows(lists_[from]) || !p_.sides.knows(lists_[to]))
    return few_peers_floor(p_, at, aim, most);
  return few_peers_floor(p_, at, aim, lists_[from], lists_[to], most);
}

// What is above `most` is told anew where it is asked for again, and kept only where all may
// fetch: whether that is offered is not always looked at.
LeastExchange LeastExchanges::floor_each(size_t from, size_t to, int64_t least_ps, int64_t most) {
  const WayFloors floors = exchange_floors_ps(p_, states_[from].at, states_[to].at, most);
  const int64_t least = std::max(least_ps, *std::min_element(floors.begin(), floors.end()));
  if (least > most && !may_go(p_, states_[from].at, states_[to].at, ExchangeWay::by_all))
    return {least, Known::floors};
  LeastOfWays& each = ways(from, to);
  for (size_t k = 0; k < LeastOfWays::ways; ++k) {
    if (floors[k] == INT64_MAX) continue;
    each.ps[k] = std::min(std::max(least_ps, floors[k]), too_long);
    each.priced[k] = false;
  }
  return each.least();
}

const LeastOfWays& LeastExchanges::floor_closely(size_t from, size_t to, int64_t most) {
  LeastOfWays& each = ways(from, to);
  for (size_t k = 0; k < LeastOfWays::ways; ++k) {
    if (each.priced[k]) continue;
    const int64_t floor =
        close_exchange_floor_ps(p_, states_[from].at, states_[to].at, exchange_ways[k], most);
    each.ps[k] = std::min(std::max(each.ps[k], floor), too_long);
  }
  each.close = true;
  return each;
}

// Where that takes too much to list, its floor stays.
const LeastOfWays& LeastExchanges::price_sooner(size_t from, size_t to, int64_t most) {
  LeastOfWays& each = ways(from, to);
  const size_t k = each.sooner();
  const bool before = std::exchange(p_.estimated, false);
  const Edge edge = exchange_edge(p_, states_[from].at, states_[to].at, exchange_ways[k],
                                  std::min(most, each.ps[k]));
  if (!p_.estimated) each.ps[k] = std::min(std::max(each.ps[k], edge.cost.ps), too_long);
  each.exact[k] = !p_.estimated && !edge.at_least;
  each.priced[k] = !edge.at_least;
  p_.estimated = before;
  return each;
}

}  // namespace meshplan
