#include "search/search.h"

#include "search/coarser.h"
#include "search/joining_sums.h"
#include "search/moves.h"
#include "search/search_run.h"

namespace meshplan {
namespace {

// States that one question may look at as aims of exchanges before the list is cut down to those
// near the ends; the second where states do not pack.
constexpr int64_t most_aim_visits = 150'000;
constexpr int64_t most_slow_aim_visits = 20'000;
// So many times as many where sums may join others.
constexpr int64_t joined_aim_visits = 2;
constexpr int64_t easy_work_of_many = 30'000;
// How many times the budget a search may take that has no plan yet.
constexpr int64_t without_plan = 4;
// The share of the budget that one list of moves may take, and the one that a search for a plan
// without exchanges may.
constexpr int64_t list_percent = 25;
constexpr int64_t collectives_percent = 25;
constexpr int64_t collectives_beside_coarser_percent = 4;
// Floors of units often settle an uneven question without: then less.
constexpr int64_t even_percent = 25;
constexpr int64_t even_beside_units_percent = 3;
// Of a search that most questions need no more of.
constexpr int64_t brief_budget = 4'000'000;
// The share of a hard question's budget that its coarser form may take.
constexpr int64_t coarser_percent = 60;
// And the one for a last look where it ended early.
constexpr int64_t straight_percent = 4;

// Where bounds look at units and ranks are many, exchanges take so long to list that better bounds
// soon repay; not before a few steps have shown good plans, which leave fewer states to look at.
int64_t easy_work_of(const PlanProblem& p, const SearchOptions& options) {
  if (!p.units_tell || p.ranks <= few_ranks) return options.easy_work;
  return std::min(options.easy_work, easy_work_of_many);
}

}  // namespace

SearchWorkspace& workspace() {
  thread_local SearchWorkspace w;
  return w;
}

Search::Search(const PlanProblem& p, const SearchOptions& options)
    : p_(p),
      options_(options),
      work_(workspace()),
      table_(work_.table),
      open_(work_.open),
      candidates_(work_.candidates),
      moves_(work_.moves),
      best_edges_(work_.best),
      world_(work_.world) {
  world_.reset(p);
  aim_visits_ = world_.usable() ? most_aim_visits : most_slow_aim_visits;
  if (p.joins != 0) aim_visits_ *= joined_aim_visits;
  packed_source_ = world_.pack(p.source);
  packed_target_ = world_.pack(p.target);
  table_.clear();
  open_.clear();
  candidates_.clear();
  best_edges_.clear();
  work_.used = 0;
  work_.outside.clear();
}

bool Search::stops() {
  const bool first = !has_best_ && options_.exchange;
  const int64_t budget =
      first ? saturating_mul(options_.work_budget, without_plan) : options_.work_budget;
  if (p_.work - work_before_ > budget) exhausted_ = true;
  return exhausted_;
}

bool Search::begin() {
  p_.estimated = false;
  work_before_ = p_.work;
  raise_after_ = easy_work();
  if (raise_after_ < options_.easy_work)
    raise_after_ = raise_after_ / 100 * options_.unraised_percent;
  source_ = table_.intern(p_.source);
  goal_ = table_.intern(p_.target);
  if (source_ == goal_) return true;
  least_latency_ps_ = exchange_latency_ps_ = INT64_MAX;
  for (const TopologyLevel& level : p_.bounded.levels)
    least_latency_ps_ = std::min(least_latency_ps_, saturating_mul(level.latency_ns, 1000));
  // What moves anything has a peer.
  for (const TopologyLevel& level : p_.topology->levels)
    exchange_latency_ps_ =
        std::min(exchange_latency_ps_,
                 saturating_mul(saturating_add(level.latency_ns, level.per_peer_ns), 1000));
  if (!p_.by_boxes) least_latency_ps_ = exchange_latency_ps_ = 0;
  if (p_.may_move_nothing) exchange_latency_ps_ = 0;
  step_latency_ps_ = std::min(least_latency_ps_, exchange_latency_ps_);

  if (options_.below_ps != INT64_MAX) {
    has_best_ = true;
    wanted_ = false;
    best_ = {options_.below_ps - 1, INT64_MAX, INT64_MAX};
  }
  if (options_.known != nullptr && options_.known->exists) {
    has_best_ = wanted_ = true;
    best_ = options_.known->cost;
    best_edges_ = options_.known->edges;
  }
  node(source_).reached = true;
  if (world_.usable()) {
    least_ = {world_.bound_bytes(packed_source_, packed_target_),
              world_.bound_ps(packed_source_, packed_target_)};
  } else {
    least_ = bound_between(p_, p_.source, p_.target);
  }
  node(source_).bound = least_.ps;
  return least_.ps == 0 && slice_to_target();
}

Found Search::run() {
  if (begin()) return finish();
  seed();
  push(source_);
  while (!open_.empty()) {
    std::pop_heap(open_.begin(), open_.end(), OpensLater());
    const OpenNode top = open_.back();
    open_.pop_back();
    at_hand_ = top;
    if (raises_next()) raise_rests();
    if (top.node < 0) {
      if (has_best_ && !better_than_best(top.f)) break;
      take_up(top);
      if (stops()) break;
      continue;
    }
    SearchNode& n = node(top.node);
    if (n.closed && n.g < top.g) continue;
    if (top.g != n.g) continue;
    if (has_best_ && !better_than_best(top.f)) {
      open_.clear();
      break;
    }
    if (top.node == goal_) {
      accept_goal();
      continue;
    }
    if (put_back(top, saturating_add(n.g.ps, rest(top.node)))) continue;
    frontier_ = top.f.ps;
    if (!n.closed) {
      n.closed = true;
      ++settled_;
    }
    p_.work += work::settle;
    if (stops()) break;
    expand(top.node);
    if (exhausted_) break;
  }
  return finish();
}

int64_t Search::easy_work() const { return easy_work_of(p_, options_); }

bool Search::put_back(OpenNode top, int64_t least_ps) {
  if (least_ps <= top.f.ps) return false;
  top.f.ps = least_ps;
  if (!better_than_best(top.f)) return true;
  open_.push_back(top);
  std::push_heap(open_.begin(), open_.end(), OpensLater());
  return true;
}

void Search::take_up(OpenNode top) {
  Candidate& candidate = candidates_[as_index(~top.node)];
  if (const int32_t to = table_.find(candidate.to); to >= 0)
    candidate.left = std::max(candidate.left, node(to).h);
  if (put_back(top, saturating_add(candidate.least.ps, candidate.left))) return;
  frontier_ = top.f.ps;
  price_candidate(Candidate(candidate));
}

void Search::push(int32_t i) {
  SearchNode& n = node(i);
  const PlanCost f = through(node(i).g, rest(i));
  if (has_best_ && !better_than_best(f)) return;
  open_.push_back({f, i, n.g});
  std::push_heap(open_.begin(), open_.end(), OpensLater());
}

bool Search::slice_to_target() {
  if (!options_.collectives || p_.peak_limit != INT64_MAX ||
      !slices_lead_to(p_, p_.source, p_.target))
    return false;
  has_best_ = wanted_ = true;
  best_ = {};
  best_edges_.clear();
  Edge edge;
  edge.to = p_.source;
  while (!(edge.to == p_.target)) {
    int slice_dim = 0;
    int sub_axis = max_sub_axes;
    for (int d = 0; d < p_.dims; ++d) {
      const int k = edge.to.length(d);
      if (k == p_.target.length(d)) continue;
      const int next = p_.target.sub_axis[as_index(p_.target.begin_of(d) + k)];
      if (next >= sub_axis) continue;
      sub_axis = next;
      slice_dim = d;
    }
    edge.group = static_cast<uint16_t>(1U << sub_axis);
    append(edge.to, p_.dims, slice_dim, static_cast<uint8_t>(sub_axis));
    best_edges_.push_back(edge);
  }
  return true;
}

void Search::accept_goal() {
  const PlanCost cost = node(goal_).g;
  int32_t first = goal_;
  while (node(first).parent != source_) first = node(first).parent;
  if (has_best_ && !(cost < best_) &&
      !(cost == best_ && !best_edges_.empty() && node(first).edge.op < best_edges_.front().op))
    return;
  has_best_ = wanted_ = true;
  best_ = cost;
  best_edges_.clear();
  for (int32_t at = goal_; at != source_; at = node(at).parent)
    best_edges_.push_back(node(at).edge);
  std::reverse(best_edges_.begin(), best_edges_.end());
}

void Search::relax_collective(int32_t from, const SearchState& at, Edge& edge) {
  const int32_t to = table_.intern(edge.to);
  if (!is_local(edge.op)) {
    const int64_t soonest = saturating_add(node(from).g.ps, least_latency_ps_);
    const SearchNode& n = node(to);
    if (n.reached && n.g.ps < soonest) return;
    if (has_best_ && saturating_add(soonest, rest(to)) > best_.ps) return;
    if (edge.cost.collectives == 0) price_collective(p_, at, edge);
  }
  relax(from, edge, to);
}

void Search::relax(int32_t from, const Edge& edge, int32_t to) {
  const PlanCost g = sum(node(from).g, edge.cost);
  if (has_best_ && g.ps > best_.ps) return;
  if (!may_hold(to)) return;
  SearchNode& n = node(to);
  // Equal cost: the earlier op, then the smaller group. By a step that costs nothing a node would
  // become its own ancestor.
  const bool replaces =
      n.reached && g == n.g && node(from).g < g && to != source_ && !is_local(edge.op) &&
      std::make_pair(edge.op, edge.group) < std::make_pair(n.edge.op, n.edge.group);
  if (n.reached && !(g < n.g) && !replaces) return;
  if (p_.peak_limit != INT64_MAX && peak_of(p_, SearchState(node(from).at), edge) > p_.peak_limit)
    return;
  if (replaces) {
    n.edge = edge;
    n.parent = from;
    return;
  }
  n.reached = true;
  n.closed = false;
  n.looked_to = -1;
  n.g = g;
  n.parent = from;
  n.edge = edge;
  push(to);
  if (to == goal_ && (!has_best_ || g < best_)) accept_goal();
}

void Search::expand(int32_t from) {
  if (!options_.collectives) return;
  const bool last_only = last_step_only(from);
  const SearchState at = node(from).at;
  if (options_.straight) {
    if (collectives(from, at, last_only)) exchanges_straight(from, at);
    return;
  }
  if (node(from).looked_to >= 0) {
    if (!last_only) {
      exchanges(from);
    } else if (from != source_) {
      exchange_to_target(from, at);
    }
    return;
  }
  // From the source the collectives that lead straight to the target come first: they often are as
  // cheap as anything can be.
  if (from == source_ && !last_only && !collectives(from, at, true)) return;
  if (!collectives(from, at, last_only) || !options_.exchange) return;
  if (from == source_ && !last_only) {
    try_gathers_last();
    try_reductions_first();
    try_scatters_first();
  }
  if (!last_only) {
    exchanges(from);
  } else if (from != source_) {
    exchange_to_target(from, at);
  }
}

bool Search::collectives(int32_t from, const SearchState& at, bool last_only) {
  moves_.clear();
  MoveLimits limits;
  limits.last_only = last_only;
  if (has_best_) limits.most_ps = best_.ps - node(from).g.ps;
  limits.least_latency_ps = least_latency_ps_;
  limits.world = &world_;
  limits.target = &packed_target_;
  limits.most_work = options_.work_budget / 100 * list_percent;
  if (!list_collectives(p_, at, moves_, limits)) {
    cut_short_ = true;
    shortcuts_.add(Shortcut::work_budget);
  }
  for (Edge& edge : moves_) {
    relax_collective(from, at, edge);
    if (stops()) return false;
  }
  return !has_best_ || better_than_best(through(node(from).g, rest(from)));
}

int64_t Search::least_open_ps() {
  int64_t least = raised_ps(at_hand_);
  for (const OpenNode& open : open_) least = std::min(least, raised_ps(open));
  return least;
}

int64_t Search::raised_ps(const OpenNode& open) {
  if (open.node >= 0) {
    const SearchNode& n = node(open.node);
    return open.g == n.g ? std::max(open.f.ps, saturating_add(n.g.ps, n.h)) : INT64_MAX;
  }
  const Candidate& candidate = candidates_[as_index(~open.node)];
  if (candidate.g != node(candidate.from).g) return INT64_MAX;
  const int32_t to = table_.find(candidate.to);
  const int64_t left = to >= 0 ? std::max(candidate.left, node(to).h) : candidate.left;
  return std::max(open.f.ps, saturating_add(candidate.least.ps, left));
}

Found Search::finish() {
  Shortcuts work_alone;
  work_alone.add(Shortcut::work_budget);
  Found found;
  found.exists = (has_best_ && wanted_) || source_ == goal_;
  if (has_best_) found.edges.assign(best_edges_.begin(), best_edges_.end());
  found.cost = best_;
  found.cost.ps -= drop_joining_ps(found.edges);
  found.settled = settled_;
  found.work = p_.work - work_before_;
  found.shortcuts = shortcuts_;
  found.shortcuts.add(p_.shortcuts);
  const auto is_estimated = [](const Edge& edge) { return edge.estimated; };
  const bool estimated =
      p_.estimated || std::any_of(found.edges.begin(), found.edges.end(), is_estimated);
  if (estimated) {
    found.shortcuts.add(Shortcut::estimated_price);
  } else {
    unpriced_ps_ = std::min(unpriced_ps_, estimated_ps_);
  }
  const int64_t least_left_out =
      std::min(exhausted_ ? least_open_ps() : INT64_MAX, unpriced_ps_) - most_joining_ps(p_);
  if (exhausted_ || (has_best_ && unpriced_ps_ < best_.ps))
    found.shortcuts.add(Shortcut::work_budget);
  found.least_ps = least_.ps;
  if (found.shortcuts.none()) {
    found.least_ps = found.cost.ps;
  } else if (found.shortcuts == work_alone && !cut_short_) {
    // All that was left out goes on from a state that was still to be taken up, or by an exchange
    // that was not priced.
    found.least_ps = std::max(found.least_ps, std::min(least_left_out, found.cost.ps));
  }
  return found;
}

namespace {

// Whether it found a plan that is priced to the end, and cheaper.
bool is_better(const Found& other, const Found& than) {
  return other.exists && !other.shortcuts.has(Shortcut::estimated_price) &&
         (!than.exists || other.cost < than.cost);
}

// The plan of the coarser form, looked for with more work, becomes the one to begin with where that
// is dearer. The work that it took.
int64_t begin_with_coarser(const PlanProblem& problem, const SearchOptions& options, Found& begin) {
  const Found coarse =
      options.coarser->find(problem, options.below_ps, options.work_budget / 100 * coarser_percent);
  if (is_better(coarse, begin)) begin = coarse;
  return coarse.work;
}

// Of a search that ended early: a cheaper plan of collectives and exchanges straight to the target,
// where a short search finds one. What no plan takes less than stays as it is.
void look_straight(const PlanProblem& problem, const SearchOptions& options, int64_t most_work,
                   Found& found) {
  SearchOptions last = options;
  last.straight = true;
  last.known = &found;
  last.hard = true;
  last.work_budget = most_work;
  Found straight = Search(problem, last).run();
  found.work += straight.work;
  if (!is_better(straight, found)) return;
  found.edges = std::move(straight.edges);
  found.cost = straight.cost;
}

// A plan of even states, from which nothing follows for the others.
Found find_even(const PlanProblem& problem, const SearchOptions& options) {
  SearchOptions brief = options;
  brief.work_budget = options.work_budget / 100 *
                      (problem.units.empty() ? even_percent : even_beside_units_percent);
  brief.coarser = nullptr;
  Found found = find_cheapest(even_part(problem), brief);
  found.least_ps = 0;
  return found;
}

// With so much work at most, from a known plan on; adds to `work` what it took, and says it.
Found search_briefly(const PlanProblem& problem, const SearchOptions& options, const Found& known,
                     int64_t most_work, int64_t& work) {
  SearchOptions brief = options;
  brief.known = &known;
  brief.work_budget = std::min(options.work_budget, most_work);
  Found found = Search(problem, brief).run();
  work += found.work;
  found.work = work;
  return found;
}

}  // namespace

Found find_cheapest(const PlanProblem& problem, const SearchOptions& options) {
  if (!options.exchange || !options.collectives || options.straight)
    return Search(problem, options).run();
  // A plan by whole mesh dims is soon found, mostly as good as any, and the one that people read.
  Found known;
  const bool coarsens = options.coarser != nullptr && problem.cut_at_levels;
  if (coarsens)
    known = options.coarser->find(problem, options.below_ps, easy_work_of(problem, options));
  const bool coarse_ended_early = known.shortcuts.has(Shortcut::work_budget);
  int64_t work = known.work;
  // Where closed forms price most exchanges, a short search answers nearly every question.
  const bool lines_up = problem.even && problem.always_line_up && !has_tables(*problem.topology);
  if (lines_up) {
    known = search_briefly(problem, options, known, brief_budget, work);
    if (!known.shortcuts.has(Shortcut::work_budget)) return known;
  }
  // Of many ranks, where exchanges of uneven shards take long to price, the even states first.
  if (problem.ranks > few_ranks && !problem.even && problem.exact_levels &&
      boxes_are_products(problem, problem.source, problem.target)) {
    const Found even = find_even(problem, options);
    work += even.work;
    if (is_better(even, known)) known = even;
  }
  // Else a plan of collectives alone, which is found for little, bounds the search first; beside
  // sums also one with exchanges straight to the target, where those are priced for little.
  SearchOptions first = options;
  first.straight = first.exchange = lines_up && problem.source.pending != 0;
  first.known = &known;
  first.hard = true;
  const int64_t percent = coarsens ? collectives_beside_coarser_percent : collectives_percent;
  first.work_budget = std::max<int64_t>(0, options.work_budget / 100 * percent - work);
  Found bounded = Search(problem, first).run();
  work += bounded.work;
  SearchOptions all = options;
  all.known = &bounded;
  all.hard = true;
  if (coarsens) {
    Found soon;
    if (!lines_up) {
      soon = search_briefly(problem, all, bounded, easy_work_of(problem, options), work);
      if (!soon.shortcuts.has(Shortcut::work_budget)) return soon;
    }
    if (is_better(soon, bounded)) bounded = soon;
    if (coarse_ended_early) work += begin_with_coarser(problem, options, bounded);
  }
  const int64_t kept = lines_up ? 0 : options.work_budget / 100 * straight_percent;
  all.work_budget = std::max<int64_t>(0, options.work_budget - work - kept);
  Found found = Search(problem, all).run();
  found.least_ps = std::max(found.least_ps, known.least_ps);
  found.work += work;
  if (!lines_up && found.exists && found.shortcuts.has(Shortcut::work_budget))
    look_straight(problem, options, kept, found);
  return found;
}

}  // namespace meshplan
