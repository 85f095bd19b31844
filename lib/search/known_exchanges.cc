#include "search/known_exchanges.h"

#include "search/moves.h"
#include "search/search_state.h"
#include "search/work.h"

namespace meshplan {

size_t KnownExchanges::Hash::operator()(const SearchState& s) const { return hash_of(s); }

uint32_t KnownExchanges::number(const SearchState& s) {
  const auto [known, is_new] = numbers_.try_emplace(s, static_cast<uint32_t>(states_.size()));
  if (is_new) {
    states_.push_back(s);
    to_.emplace_back();
  }
  return known->second;
}

LeastExchange* KnownExchanges::to(const PlanProblem& p, uint32_t to, int64_t latency_ps) {
  std::vector<LeastExchange>& from_each = to_[to];
  const SearchState& aim = states_[to];
  p.work += static_cast<int64_t>(states_.size() - from_each.size()) * work::key;
  from_each.reserve(states_.size());
  for (size_t i = from_each.size(); i < states_.size(); ++i) {
    const SearchState& from = states_[i];
    const auto reduced = static_cast<uint16_t>(from.pending & ~aim.pending);
    const bool runs = i != to && (aim.pending & ~from.pending) == 0 && may_reduce(p, from, reduced);
    from_each.push_back(runs ? LeastExchange(latency_ps, Known::latency) : LeastExchange());
  }
  return from_each.data();
}

}  // namespace meshplan
