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
    from_.emplace_back();
  }
  return known->second;
}

LeastExchange KnownExchanges::unknown(const PlanProblem& p, uint32_t from, uint32_t to,
                                      int64_t latency_ps) const {
  const SearchState& at = states_[from];
  const SearchState& aim = states_[to];
  const auto reduced = static_cast<uint16_t>(at.pending & ~aim.pending);
  const bool runs = from != to && (aim.pending & ~at.pending) == 0 && may_reduce(p, at, reduced);
  return runs ? LeastExchange(latency_ps, Known::latency, true, true) : LeastExchange();
}

void KnownExchanges::ask_to(const PlanProblem& p, uint32_t to, int64_t latency_ps) {
  std::vector<LeastExchange>& row = to_[to];
  p.work += static_cast<int64_t>(states_.size() - row.size()) * work::key;
  row.reserve(states_.size());
  for (auto from = static_cast<uint32_t>(row.size()); from < states_.size(); ++from)
    row.push_back(to < from_[from].size() ? from_[from][to] : unknown(p, from, to, latency_ps));
}

void KnownExchanges::ask_from(const PlanProblem& p, uint32_t from, int64_t latency_ps) {
  std::vector<LeastExchange>& row = from_[from];
  p.work += static_cast<int64_t>(states_.size() - row.size()) * work::key;
  row.reserve(states_.size());
  for (auto to = static_cast<uint32_t>(row.size()); to < states_.size(); ++to)
    row.push_back(unknown(p, from, to, latency_ps));
}

}  // namespace meshplan
