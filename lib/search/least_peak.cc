#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <utility>

#include "base/int_math.h"
#include "search/moves.h"
#include "search/search.h"
#include "search/work.h"

namespace meshplan {

namespace {

constexpr size_t listable_aims = 700;  // of exchanges from one state

using StateWords = std::array<uint64_t, 3>;
StateWords key_of(const SearchState& s) {
  StateWords words;
  std::memcpy(words.data(), &s, sizeof s);
  return words;
}

// Dijkstra on the largest peak along the way instead of the sum of times. An exchange counts by its
// input and output until it is the next step to be taken: so few are priced. No plan has less than
// both ends take, so that up to there no way is better than another, and what lies nearest to the
// target is taken up first.
class PeakSearch {
 public:
  PeakSearch(const PlanProblem& p, int64_t work_budget)
      : p_(p),
        most_work_(saturating_add(p.work, work_budget)),
        ends_(std::max(bytes_of(p.source), bytes_of(p.target))) {}

  LeastPeak run() {
    take_one_exchange();
    reached_[key_of(p_.source)].peak = ends_;
    push({ends_, p_.source});
    while (!open_.empty()) {
      std::pop_heap(open_.begin(), open_.end(), later);
      const Open next = open_.back();
      open_.pop_back();
      if (next.peak >= found_.bytes) break;
      if (p_.work > most_work_) {
        found_.proven = false;
        break;
      }
      if (next.by_exchange) {
        price(next);
      } else if (next.peak == reached_[key_of(next.at)].peak) {
        list_steps(next.at, next.peak);
      }
    }
    return found_;
  }

 private:
  struct Open {
    int64_t peak = 0;  // on the way there, at least
    SearchState at;
    SearchState from = {};  // of an exchange that is not priced yet
    bool by_exchange = false;
    int apart = 0;  // from the target
  };
  static bool later(const Open& a, const Open& b) {
    return std::pair(a.peak, a.apart) > std::pair(b.peak, b.apart);
  }
  // Sub-axes that are elsewhere, or in another place of their list.
  [[nodiscard]] int apart(const SearchState& at) const {
    const SearchState& to = p_.target;
    int sub_axes = std::popcount(static_cast<unsigned>(at.pending ^ to.pending)) +
                   std::popcount(static_cast<unsigned>(at.made ^ to.made));
    for (int d = 0; d < p_.dims; ++d)
      sub_axes += at.length(d) + to.length(d) - 2 * common_prefix(at, to, d);
    return sub_axes;
  }

  // The least of any way that it may go.
  struct Exchange {
    Edge edge;
    int64_t peak = INT64_MAX;
  };
  // Those that need no more than `enough` are alike.
  [[nodiscard]] Exchange exchange(const SearchState& from, const SearchState& to,
                                  int64_t enough) const {
    Exchange least;
    for (const ExchangeWay way : exchange_ways) {
      if (least.peak <= enough) break;
      if (!may_go(p_, from, to, way)) continue;
      const Edge edge = exchange_edge(p_, from, to, way);
      const int64_t peak = peak_of(p_, from, edge);
      if (peak < least.peak) least = {edge, peak};
    }
    return least;
  }

  // One to the target, and the steps that make contributions where it has some.
  void take_one_exchange() {
    SearchState at = p_.target;
    at.made = 0;
    found_.bytes = 0;
    if (!(at == p_.source)) {
      const Exchange one = exchange(p_.source, at, 0);
      found_.bytes = one.peak;
      found_.edges = {one.edge};
    }
    for (int i = 0; i < p_.sub_axes; ++i) {
      if ((p_.target.made >> i & 1) == 0) continue;
      Edge edge;
      edge.op = Op::to_partial;
      edge.group = static_cast<uint16_t>(1U << i);
      edge.to = at;
      edge.to.made = static_cast<uint16_t>(at.made | edge.group);
      found_.bytes = std::max(found_.bytes, peak_of(p_, at, edge));
      found_.edges.push_back(edge);
      at = edge.to;
    }
  }

  struct Reached {
    int64_t peak = INT64_MAX;
    SearchState from = {};
    Edge edge = {};  // from there
  };
  [[nodiscard]] std::vector<Edge> edges_to(SearchState at) const {
    std::vector<Edge> edges;
    while (at != p_.source) {
      const Reached& last = reached_.at(key_of(at));
      edges.push_back(last.edge);
      at = last.from;
    }
    std::reverse(edges.begin(), edges.end());
    return edges;
  }

  void push(Open open) {
    if (open.peak >= found_.bytes) return;
    open.apart = apart(open.at);
    open_.push_back(open);
    std::push_heap(open_.begin(), open_.end(), later);
  }
  void reach(const SearchState& from, const Edge& edge, int64_t peak) {
    Reached& known = reached_[key_of(edge.to)];
    if (known.peak <= peak) return;
    known = {peak, from, edge};
    if (edge.to != p_.target) return push({peak, edge.to});
    if (peak >= found_.bytes) return;
    // Known at once, in case the work does not last until nothing less is left.
    found_.bytes = peak;
    found_.edges = edges_to(edge.to);
  }
  void price(const Open& open) {
    const auto known = reached_.find(key_of(open.at));
    if (known != reached_.end() && known->second.peak <= open.peak) return;
    const Exchange least = exchange(open.from, open.at, open.peak);
    reach(open.from, least.edge, std::max(open.peak, least.peak));
  }

  void list_steps(const SearchState& at, int64_t peak) {
    std::vector<Edge> edges;
    (void)collective_moves(p_, at, edges);
    for (const Edge& edge : edges) reach(at, edge, std::max(peak, peak_of(p_, at, edge)));
    const uint16_t open_sums = at.pending;
    for (uint16_t q = open_sums;; q = static_cast<uint16_t>((q - 1) & open_sums)) {
      if (may_reduce(p_, at, q)) list_exchanges(at, static_cast<uint16_t>(at.pending & ~q), peak);
      if (q == 0) break;
    }
  }

  // Exchanges that reduce all of what is pending but `pending`. Beyond what can be listed, the one
  // to the target alone.
  void list_exchanges(const SearchState& at, uint16_t pending, int64_t peak) {
    SearchState like = at;
    like.pending = pending;
    const auto movable =
        static_cast<uint16_t>(p_.all & ~frozen_sub_axes(p_) & ~like.pending & ~like.made);
    std::vector<SearchState> aims;
    if (!all_spreads(p_, like, movable, listable_aims, aims)) {
      found_.proven = false;
      aims.clear();
      SearchState landing = p_.target;
      landing.made = at.made;
      if (landing.pending == like.pending) aims.push_back(landing);
    }
    const int64_t input = bytes_of(at);
    for (const SearchState& to : aims) {
      p_.work += work::state;
      if (!(to == at)) push({std::max(peak, saturating_add(input, bytes_of(to))), to, at, true});
    }
  }
  [[nodiscard]] int64_t bytes_of(const SearchState& at) const {
    return saturating_mul(box_elements(p_, at), p_.element);
  }

  const PlanProblem& p_;
  int64_t most_work_;
  int64_t ends_;  // bytes of source or target, the larger
  LeastPeak found_;
  std::map<StateWords, Reached> reached_;
  std::vector<Open> open_;
};

}  // namespace

LeastPeak least_peak(const PlanProblem& p, int64_t work_budget) {
  return PeakSearch(p, work_budget).run();
}

}  // namespace meshplan
