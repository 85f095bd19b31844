#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "base/int_math.h"
#include "search/moves.h"
#include "search/search.h"

namespace meshplan {

namespace {

constexpr size_t listable_aims = 700;  // every one of them is priced in full

using StateWords = std::array<uint64_t, 3>;
StateWords key_of(const SearchState& s) {
  StateWords words;
  std::memcpy(words.data(), &s, sizeof s);
  return words;
}

// Exchanges that reduce all of what is pending but `pending`. Beyond what can be listed, the one to
// the target alone: the least peak named is then one that exists, if not always the least.
void list_exchanges(const PlanProblem& p, const SearchState& at, uint16_t pending,
                    std::vector<Edge>& edges) {
  SearchState like = at;
  like.pending = pending;
  unsigned frozen = 0;
  for (int d = 0; d < p.dims; ++d) {
    for (int k = 0; k < p.frozen[static_cast<size_t>(d)]; ++k)
      frozen |= 1U << at.sub_axis[as_index(at.begin_of(d) + k)];
  }
  const auto movable = static_cast<uint16_t>(p.all & ~frozen & ~like.pending & ~like.made);
  std::vector<SearchState> aims;
  if (!all_spreads(p, like, movable, listable_aims, aims)) {
    aims.clear();
    SearchState landing = p.target;
    landing.made = at.made;
    if (landing.pending == like.pending) aims.push_back(landing);
  }
  for (const SearchState& to : aims) {
    if (!(to == at)) edges.push_back(exchange_edge(p, at, to, ExchangeWay::one_phase));
  }
}

}  // namespace

// Dijkstra on the largest peak along the way instead of the sum of times.
int64_t least_peak(const PlanProblem& p, int64_t work_budget) {
  std::map<StateWords, int64_t> reached;
  std::vector<std::pair<int64_t, SearchState>> open{{0, p.source}};
  auto later = [](const auto& a, const auto& b) { return a.first > b.first; };
  reached[key_of(p.source)] = 0;
  const int64_t most_work = p.work + work_budget;
  SearchState straight = p.target;
  straight.made = 0;
  const int64_t target_peak =
      peak_of(p, p.source, exchange_edge(p, p.source, straight, ExchangeWay::one_phase));
  std::vector<Edge> edges;
  while (!open.empty()) {
    std::pop_heap(open.begin(), open.end(), later);
    auto [peak, at] = open.back();
    open.pop_back();
    if (at == p.target) return peak;
    if (peak > reached[key_of(at)]) continue;
    if (p.work > most_work) return target_peak;
    edges.clear();
    collective_moves(p, at, edges);
    const uint16_t open_sums = at.pending;
    for (uint16_t q = open_sums;; q = static_cast<uint16_t>((q - 1) & open_sums)) {
      if (may_reduce(p, at, q))
        list_exchanges(p, at, static_cast<uint16_t>(at.pending & ~q), edges);
      if (q == 0) break;
    }
    for (const Edge& edge : edges) {
      int64_t next = std::max(peak, peak_of(p, at, edge));
      auto [known, fresh] = reached.try_emplace(key_of(edge.to), next);
      if (!fresh && known->second <= next) continue;
      known->second = next;
      open.emplace_back(next, edge.to);
      std::push_heap(open.begin(), open.end(), later);
    }
  }
  return INT64_MAX;
}

}  // namespace meshplan
