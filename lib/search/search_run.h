// One run of A* over states (search.h): what is known of each state, the best plan so far, and
// what was left out. The loop and collectives are in search.cc, exchanges in search_exchanges.cc,
// better bounds for hard questions in search_rests.cc.
//
//     take up      the state by which a plan may take least: g, the way to it, and rest, a lower
//                  bound on what is left (last_step.h)
//     lead on      collectives and local steps (moves.h), then exchanges to aims (aims.h), nearest
//                  to the target first; each is priced only where its floors say it may be of use
//     end          when nothing may take less than the best plan: it is proven, if no shortcut was
//                  taken on the way
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "base/int_math.h"
#include "search/aims.h"
#include "search/gather_last.h"
#include "search/last_step.h"
#include "search/least_left.h"
#include "search/scatter_first.h"
#include "search/search_nodes.h"
#include "search/work.h"

namespace meshplan {

// What the searches of one thread share: storage only.
struct SearchWorkspace {
  NodeTable table;
  PackedWorld world;
  std::vector<OpenNode> open;
  std::vector<Candidate> candidates;
  std::vector<Edge> moves;
  std::vector<Edge> best;
  struct KnownAims {
    uint16_t pending;
    uint16_t made;
    AimList list;
  };
  std::vector<KnownAims> lists;  // the first `used` are of this question
  size_t used = 0;
  std::vector<FinerTarget> finer;
  std::vector<ScatterWay> scatters;
  std::vector<LeftState> left;
  LeastOutside outside;
};
[[nodiscard]] SearchWorkspace& workspace();

class Search {
 public:
  Search(const PlanProblem& p, const SearchOptions& options);
  Found run();

 private:
  // Sets up source and target, and a plan to beat where one is known; true where that answers.
  bool begin();
  // Whether the work is used up. While there is no plan yet some more is spent on finding one.
  bool stops();

  SearchNode& node(int32_t i) { return table_.nodes[static_cast<size_t>(i)]; }
  int64_t bound(int32_t i, const Packed& packed) {
    SearchNode& n = node(i);
    if (n.bound >= 0) return n.bound;
    p_.work += work::bound;
    n.bound = i == goal_ ? 0 : world_.bound_ps(n.at, packed, p_.target, packed_target_);
    return n.bound;
  }
  int64_t rest(int32_t i) {
    SearchNode& n = node(i);
    if (n.h >= 0) return n.h;
    const Packed packed = world_.pack(n.at);
    n.h = rest_floor_ps(p_, world_, n.at, packed, packed_target_, bound(i, packed),
                        least_latency_ps_ > 0, work_.outside.left(world_, packed));
    return n.h;
  }

  [[nodiscard]] bool ties_matter() const {
    if (best_edges_.empty() || best_edges_.front().op != Op::exchange) return false;
    for (const TopologyLevel& level : p_.topology->levels) {
      if (level.per_peer_ns == 0) return true;
    }
    return false;
  }

  // Whether a plan of cost `f` at least may still replace the best one. Whatever it does, it moves
  // the bytes that the bound says.
  [[nodiscard]] bool better_than_best(PlanCost f) const {
    if (f.ps != best_.ps) return f.ps < best_.ps;
    f.wire_bytes = std::max(f.wire_bytes, least_.bytes);
    if (f != best_) return f < best_;
    return ties_matter();
  }

  // What a plan costs at least that goes through a state: the cost until there and the bound on
  // what is left.
  [[nodiscard]] static PlanCost through(PlanCost g, int64_t left) {
    g.ps = saturating_add(g.ps, left);
    if (left > 0) ++g.collectives;
    return g;
  }

  // Where two communicating steps take too much, only one may still come.
  [[nodiscard]] bool last_step_only(int32_t i) {
    // What is made pending may be made of any shards: then more than one exchange may be the last
    // step.
    if (!has_best_ || ties_matter() || p_.kept != 0 || p_.target.made != 0) return false;
    const Packed packed = world_.pack(node(i).at);
    const int64_t left = step_latency_ps_ > 0 && i != goal_
                             ? world_.several_ps(node(i).at, packed, p_.target, packed_target_)
                             : saturating_add(bound(i, packed), step_latency_ps_);
    return saturating_add(node(i).g.ps, left) >= best_.ps;
  }

  void push(int32_t i);
  void push(const Candidate& c);

  // The plan of slices alone, the sub-axis of the lowest number first; false where there is none.
  bool slice_to_target();

  // Memory, at its peak, as a plan by itself.
  [[nodiscard]] bool needs_less_than_best(const Edge& edge) const;
  // Plans known without search: one exchange, or one in two phases, then local steps.
  void seed();
  // Appends the local steps that make the target's sums pending.
  void make_partials(SearchState at, std::vector<Edge>& edges);
  // The way to the target that is known now becomes the best plan, where it is better.
  void accept_goal();

  // The default memory rule: no state on the way larger than the larger end.
  bool may_hold(const SearchState& s) {
    if (p_.state_limit == INT64_MAX) return true;
    return saturating_mul(box_elements(p_, s), p_.element) <= p_.state_limit;
  }
  bool may_hold(int32_t i) {
    if (p_.state_limit == INT64_MAX || i == goal_) return true;
    SearchNode& n = node(i);
    if (n.bytes < 0) n.bytes = saturating_mul(box_elements(p_, n.at), p_.element);
    return n.bytes <= p_.state_limit;
  }

  // A step that is priced only where it could take less time than the way there that is known.
  void relax_collective(int32_t from, const SearchState& at, Edge& edge);
  // `to`: the node of edge.to.
  void relax(int32_t from, const Edge& edge, int32_t to);
  // Every step that leads on from a node and may be of use.
  void expand(int32_t from);
  // False where no plan from here can beat the best one any more.
  bool collectives(int32_t from, const SearchState& at, bool last_only);
  // Plans of an exchange and a gather (gather_last.h): a good plan cuts the lists of aims short.
  void try_gathers_last();
  // Plans that reduce first, where little is held, and only then exchange: every free sub-axis is
  // cut away as the aim has it, one reduce_scatter completes all sums, or those inside of hosts.
  //
  //     hosts of 4, a 2 x b 4, S(0)P(sum) -> S(1)[1]S(1)[0]    reduce_scatter to S(0)S(1), and an
  //                                                            exchange; in one exchange hosts
  //                                                            would be sent 4 contributions
  void try_reductions_first();
  void reduce_first(const SearchState& aim, uint16_t reduced);
  // Plans that bring to its place what lies before the sums' shards in the aim's lists, while the
  // sums are pending, and reduce only then.
  //
  //     RP(sum)S(1) -> S(0)S(1)R    exchanged to S(0)P(sum)R, then scattered
  void arrange_first(const SearchState& aim, uint16_t reduced);
  // The same of hard questions by way of more states (scatter_first.h), at a bounded share of the
  // work.
  void try_scatters_first();
  // From the source to a state whose lists begin as its own do; returns the state's node.
  int32_t slice_and_scatter(const SearchState& to, uint16_t reduced);
  int32_t scatter_from(int32_t from, const SearchState& at, const SearchState& to,
                       uint16_t reduced);
  // From a state that has more digits than the target.
  void gather_to_target(int32_t from, const SearchState& at);
  // The exchanges of a search that goes straight to the target (SearchOptions::straight).
  void exchanges_straight(int32_t from, const SearchState& at);
  // The exchange that lands on the target but for what is still to be made pending.
  void exchange_to_target(int32_t from, const SearchState& at);

  // The time in which a plan reaches a state already; INT64_MAX: none does.
  [[nodiscard]] int64_t reached_in(const SearchState& s) {
    const int32_t to = table_.find(s);
    return to >= 0 && node(to).reached ? node(to).g.ps : INT64_MAX;
  }
  // One exchange, in one phase and in two, where it may still lead to a better plan. `left`: the
  // bound from there, -1 where not known. `soonest`: the time until there at least.
  // `known_reached`: the time in which a plan reaches it already, or more, told anew where it is
  // looked up; nullptr: not asked.
  void exchange_to(int32_t from, const SearchState& at, const Packed& packed, const SearchState& to,
                   const Packed& packed_to, int64_t left, int64_t soonest = 0,
                   int64_t* known_reached = nullptr);

  // The same where states do not pack: what the exchange takes at least decides when it is priced.
  // `most`: a way to it that takes longer is of no use.
  void exchange_later(int32_t from, const SearchState& at, const SearchState& to, int64_t left,
                      int64_t soonest, int64_t most);
  // Prices an exchange; where that takes too long nothing, or an estimate while there is no plan.
  // `least_ps`: what a plan by it takes at least.
  std::optional<Edge> priced_exchange(const SearchState& from, const SearchState& to,
                                      ExchangeWay way, int64_t most_ps, int64_t least_ps);
  // A candidate that came up: priced, if it is still of use, or put back once it takes more than
  // the next entry of the heap.
  void take_up(OpenNode top);
  void price_candidate(const Candidate& candidate);

  // Where a question turns out to be hard: raises what is left from each state that a plan of use
  // may go through, step by step (least_left.h); where latencies do not grow with ranks and states
  // pack, by what goes over the outer links alone first (least_outside.h).
  [[nodiscard]] int64_t easy_work() const;
  [[nodiscard]] bool raises_next() const { return p_.work - work_before_ > raise_after_; }
  void raise_rests();
  void raise_outside();
  void raise_by_steps();
  // Every state that a plan of use may go through; false where they are too many, or to list them
  // takes half the budget.
  bool list_useful_states();
  // A plan that was found on the way.
  void take_way(const KnownWay& way);
  // Lists what exchanges may aim at, whatever is pending; false where that takes too much.
  bool list_every_aim();
  // What slices from `at` lead to, itself included, as long as it may be of use.
  void list_sliced(const SearchState& at, NodeTable& sliced);
  // Whether an entry of the heap went back into it, as a plan takes more by what is left now.
  bool put_back(OpenNode top, int64_t least_ps);

  // What an exchange may aim at with these sub-axes pending and made.
  AimList& aims(uint16_t pending, uint16_t made);

  // Exchanges from a node by which a plan may take little more than what is looked at now. The node
  // comes up again for the others, if no plan is found before that takes less than they do.
  void exchanges(int32_t from);

  // Whether a plan that takes so long at least is for later, or was looked at before.
  bool not_now(int64_t least_ps) {
    if (least_ps > look_to_) {
      next_look_ = std::min(next_look_, least_ps);
      return true;
    }
    return least_ps <= looked_to_;
  }
  void exchanges_reducing(int32_t from, const SearchState& at, const Packed& packed, uint16_t q);

  // What a plan takes at least that goes on from what was taken up last or is still to be taken up,
  // by what is left as it is known now.
  [[nodiscard]] int64_t least_open_ps();
  [[nodiscard]] int64_t raised_ps(const OpenNode& open);

  Found finish();

  const PlanProblem& p_;
  const SearchOptions& options_;
  SearchWorkspace& work_;
  NodeTable& table_;
  std::vector<OpenNode>& open_;
  std::vector<Candidate>& candidates_;
  std::vector<Edge>& moves_;
  std::vector<Edge>& best_edges_;
  PackedWorld& world_;
  Packed packed_source_;
  Packed packed_target_;
  int64_t aim_visits_ = 0;
  int32_t source_ = 0;
  int32_t goal_ = 0;
  Bounds least_;  // of any plan
  bool has_best_ = false;
  bool wanted_ = true;  // false while best_ is only the time to stay below
  PlanCost best_;
  Shortcuts shortcuts_;
  bool cut_short_ = false;  // a list of moves
  bool exhausted_ = false;
  int64_t work_before_ = 0;
  OpenNode at_hand_{};  // taken up last
  int64_t frontier_ = 0;
  // What plans take at least by exchanges that were not priced, or only by an estimate.
  int64_t unpriced_ps_ = INT64_MAX;
  int64_t estimated_ps_ = INT64_MAX;
  // Exchanges of the node at hand: a plan by those looked at now takes more than looked_to_ and up
  // to look_to_ at least, by the others at least next_look_. ps.
  int64_t looked_to_ = -1;
  int64_t look_to_ = INT64_MAX;
  int64_t next_look_ = INT64_MAX;
  int64_t least_latency_ps_ = 0;     // of a collective
  int64_t exchange_latency_ps_ = 0;  // of an exchange
  int64_t step_latency_ps_ = 0;      // of either
  int64_t settled_ = 0;
  int64_t raise_after_ = 0;     // so much work bounds are raised; INT64_MAX: no more
  bool states_listed_ = false;  // for that
};

}  // namespace meshplan
