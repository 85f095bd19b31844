#include "search/across.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/int_math.h"
#include "cost/bounds.h"
#include "cost/step_cost.h"
#include "search/across_exchange.h"
#include "search/across_least_peak.h"
#include "search/across_side.h"
#include "search/exchange_step.h"
#include "search/sums_across.h"

namespace meshplan {
namespace {

// Work (search/work.h) a rank of either mesh of a bound, which compares what units hold and want.
constexpr int64_t bounded_rank = 20;
// What a first look at a way on one mesh may take of the work there was at first: most ways need no
// more. Before the first that does, or when so much is used up, comes the look straight across,
// which may take so much of what is left, and at first no more than that on exchanges, so that
// plans by the best of them are made, too.
constexpr int64_t brief_percent = 2;
constexpr int64_t straight_after_percent = 10;
constexpr int64_t straight_percent = 50;
constexpr int64_t straight_priced_percent = 20;

Request on_mesh(const Request& request, size_t mesh) {
  Request on = request;
  on.src_mesh = on.dst_mesh = mesh;
  on.any_dst_order = false;
  return on;
}

Request before_crossing(const Request& request) {
  Request on = on_mesh(request, request.src_mesh);
  on.dst = request.src;
  return on;
}

Request after_crossing(const Request& request) {
  Request on = on_mesh(request, request.dst_mesh);
  on.src = request.dst;
  on.src.partial.clear();
  return on;
}

class AcrossSearch {
 public:
  AcrossSearch(const PlanQuestion& question, const LevelMap& levels, const LevelMap& dst_levels,
               work::Budget& budget, const ExchangeWays& ways, int64_t below_ps)
      : question_(question),
        request_(*question.request),
        levels_(levels),
        dst_levels_(dst_levels),
        budget_(budget),
        work_at_first_(budget.left),
        ways_(ways),
        exchange_(question, levels, dst_levels.mesh(), budget),
        sources_side_(question, levels, before_crossing(request_), true),
        landings_side_(question, dst_levels, after_crossing(request_), false) {
    best_.predicted_ps = below_ps;
    best_.collectives = -1;
  }

  void run() {
    if (!sources_side_.fits() || !landings_side_.fits()) {
      shortcuts_.add(Shortcut::too_many_axes);
      exchange_alone();
      return;
    }
    list();
    from_source();
    for (size_t s = 1; s < sources_.size(); ++s) from_elsewhere(next_source());
  }

  // Of the request as it stands, where one was found.
  [[nodiscard]] const std::optional<StepList>& found() const { return found_; }
  [[nodiscard]] int64_t best_ps() const { return best_.predicted_ps; }
  // Where nothing was found: of any plan, which is found where it fits. Without edges.
  LeastPeak find_least_peak() {
    if (!sources_side_.fits() || !landings_side_.fits()) return {least_peak_, false, {}};
    AcrossLeastPeak known =
        least_peak_across(sources_side_, landings_side_, exchange_, ways_, budget_);
    known.least.bytes = std::min(known.least.bytes, least_peak_);
    if (known.least.bytes > question_.options->max_memory_bytes) return known.least;
    shortcuts_.add(Shortcut::work_budget);
    left_out_ps_ = 0;
    (void)take(known.source, std::move(known.crossing), known.landing);
    return known.least;
  }
  [[nodiscard]] Shortcuts shortcuts() const { return shortcuts_; }
  // What a plan that was left out takes at least.
  [[nodiscard]] int64_t left_out_ps() const { return left_out_ps_; }

 private:
  void list() {
    const int64_t limit = question_.options->max_memory_bytes;
    state_limit_ = INT64_MAX;
    if (limit == 0) state_limit_ = std::max(sources_side_.end_bytes(), landings_side_.end_bytes());
    if (limit > 0) state_limit_ = limit;
    sources_ = sources_side_.stops(state_limit_, shortcuts_);
    landings_ = landings_side_.stops(state_limit_, shortcuts_);
    // No landing has contributions that crossed as they are.
    if (sums_may_cross(request_, *question_.meshes)) shortcuts_.add(Shortcut::few_landings);
    budget_.spend(2 * work::problem +
                  static_cast<int64_t>(sources_.size() + landings_.size()) * work::state);
  }

  [[nodiscard]] const Mesh& dst_mesh() const { return dst_levels_.mesh(); }

  // Whether a plan may be better than the best one that takes so long at least.
  [[nodiscard]] bool useful(int64_t ps, int64_t collectives) const {
    return ps < best_.predicted_ps || (ps == best_.predicted_ps && collectives < best_.collectives);
  }
  // What more a plan may take to be as quick as the best one.
  [[nodiscard]] int64_t room_beside(int64_t ps) const {
    return best_.predicted_ps == INT64_MAX ? INT64_MAX : best_.predicted_ps - ps;
  }
  static int64_t collectives_by(const Stop& source, const Stop& landing) {
    return 1 + (source.ps > 0 ? 1 : 0) + (landing.ps > 0 ? 1 : 0);
  }

  // No more than tells that it is above `most_ps`.
  int64_t bound(const State& src, const State& dst, int64_t most_ps) {
    budget_.spend((mesh_size(levels_.mesh()) + mesh_size(dst_mesh())) * bounded_rank);
    return lower_bounds(exchange_.leg(src, dst), *question_.meshes, levels_, most_ps).ps;
  }

  void bound_to_target(Stop& source) {
    if (source.bound_ps < 0)
      source.bound_ps = bound(source.state, request_.dst, room_beside(source.ps));
  }

  // The way of a stop, unless it takes too long beside `other_ps`. Whether there is one.
  bool find(Side& side, Stop& stop, int64_t other_ps) {
    if (stop.found) return true;
    if (budget_.left < work_at_first_ / 100 * (100 - straight_after_percent)) look_straight();
    const int64_t before = stop.ps;
    Stop soon = stop;
    Shortcuts left_out = find_within(brief_work(), side, soon, other_ps);
    if (left_out.has(Shortcut::work_budget)) {
      look_straight();
      if (saturating_add(before, other_ps) > best_.predicted_ps) return false;
      left_out = find_within(landing_work(), side, stop, other_ps);
    } else {
      stop = std::move(soon);
    }
    if (!left_out.none()) leave_out(saturating_add(before, other_ps), left_out);
    return stop.found;
  }
  Shortcuts find_within(int64_t work, Side& side, Stop& stop, int64_t other_ps) {
    const int64_t below_ps = saturating_add(room_beside(other_ps), 1);
    return side.find(stop, below_ps, state_limit_, work, budget_);
  }
  [[nodiscard]] int64_t landing_work() const { return budget_.left / 100 * work::landing_percent; }
  [[nodiscard]] int64_t brief_work() const {
    return std::min(work_at_first_ / 100 * brief_percent, landing_work());
  }

  // Before much is spent on one way: plans that cross to the target itself, from any state of the
  // source's mesh, or from the source itself; then the same around the states of the best of them.
  // Good plans leave less to look at, and something where the work does not suffice.
  void look_straight() {
    if (std::exchange(looked_straight_, true)) return;
    const int64_t kept = budget_.left / 100 * (100 - straight_percent);
    int64_t priced = budget_.left / 100 * (100 - straight_priced_percent);
    const Straight* around = nullptr;
    std::vector<Straight> found;
    do {
      Stop& source = around == nullptr ? sources_.front() : *around->source;
      Stop& landing = around == nullptr ? landings_.front() : *around->landing;
      found.clear();
      for (size_t i = 0; i < std::max(sources_.size(), landings_.size()); ++i) {
        if (i < sources_.size()) add_straight(sources_[i], landing, priced, found);
        if (i < landings_.size()) add_straight(source, landings_[i], priced, found);
      }
      priced = kept;
      order_straight(found);
      around = take_straight(found, kept);
    } while (around != nullptr);
  }

  // A plan by way of two states, and what it takes at least.
  struct Straight {
    int64_t ps = 0;
    Stop* source = nullptr;
    Stop* landing = nullptr;
    const ExchangeStep* crossing = nullptr;
    size_t turn = 0;  // among those of boxes as large
  };
  // Those first that may take least, of each size of boxes one before the second of any: where the
  // steps beside an exchange take far more than their bound, they do for all boxes of a size.
  static void order_straight(std::vector<Straight>& found) {
    std::stable_sort(found.begin(), found.end(),
                     [](const Straight& a, const Straight& b) { return a.ps < b.ps; });
    std::map<std::pair<int64_t, int64_t>, size_t> turns;
    for (Straight& one : found)
      one.turn = turns[{one.source->box_elements, one.landing->box_elements}]++;
    std::stable_sort(found.begin(), found.end(),
                     [](const Straight& a, const Straight& b) { return a.turn < b.turn; });
  }
  void add_straight(Stop& source, Stop& landing, int64_t kept, std::vector<Straight>& found) {
    const int64_t beside_ps = saturating_add(source.ps, landing.ps);
    if (budget_.left < kept || beside_ps >= best_.predicted_ps) return;
    bound_to_target(source);
    const int64_t least_ps = std::max(saturating_add(source.ps, source.bound_ps),
                                      saturating_add(landing.bound_ps, landing.ps));
    if (least_ps >= best_.predicted_ps) return;
    Crossing& crossing = crossing_between(source, landing);
    if (std::exchange(crossing.looked_at, true)) return;
    const int64_t ps = saturating_add(beside_ps, crossing.step.cost.predicted_ps);
    source.straight_ps = std::min(source.straight_ps, ps);
    if (crossing.step.cost.exact && ps < best_.predicted_ps)
      found.push_back({ps, &source, &landing, &crossing.step, 0});
  }
  // The last of them that became the best plan.
  const Straight* take_straight(const std::vector<Straight>& found, int64_t kept) {
    const Straight* last = nullptr;
    for (const Straight& one : found) {
      if (budget_.left < kept) break;
      if (one.ps >= best_.predicted_ps) continue;
      Stop source = *one.source;
      Stop landing = *one.landing;
      const int64_t crossing_ps = one.crossing->cost.predicted_ps;
      (void)find_within(brief_work(), sources_side_, source,
                        saturating_add(crossing_ps, landing.ps));
      if (!source.found) continue;
      (void)find_within(brief_work(), landings_side_, landing,
                        saturating_add(crossing_ps, source.ps));
      if (!landing.found) continue;
      const int64_t before_ps = best_.predicted_ps;
      take_with_less(source, one.crossing->step, landing);
      if (best_.predicted_ps < before_ps) last = &one;
    }
    return last;
  }

  void leave_out(int64_t ps, Shortcuts why) {
    shortcuts_.add(why);
    left_out_ps_ = std::min(left_out_ps_, ps);
  }
  bool stops_before(int64_t ps) {
    if (!budget_.used_up() || best_.predicted_ps == INT64_MAX) return false;
    Shortcuts why;
    why.add(Shortcut::work_budget);
    leave_out(ps, why);
    return true;
  }

  // From the source as it is to every landing, those first that may take least; what each takes is
  // known better step by step: by bounds, by its exchange, by the steps behind it.
  void from_source() {
    struct Open {
      int64_t ps;
      size_t landing;
      std::optional<ExchangeStep> crossing;
    };
    const auto later = [](const Open& a, const Open& b) {
      return std::tie(a.ps, a.landing) > std::tie(b.ps, b.landing);
    };
    std::vector<Open> open;
    const auto push = [&](Open next) {
      open.push_back(std::move(next));
      std::push_heap(open.begin(), open.end(), later);
    };
    const Stop& source = sources_.front();
    for (size_t l = 0; l < landings_.size(); ++l) push({landings_[l].ps, l, {}});
    while (!open.empty()) {
      std::pop_heap(open.begin(), open.end(), later);
      Open top = std::move(open.back());
      open.pop_back();
      Stop& landing = landings_[top.landing];
      if (!useful(top.ps, collectives_by(source, landing)) || stops_before(top.ps)) return;
      if (top.crossing) {
        finish(source, *std::move(top.crossing), landing);
        continue;
      }
      if (landing.bound_ps < 0) {
        landing.bound_ps = bound(source.state, landing.state, room_beside(landing.ps));
        top.ps = saturating_add(landing.bound_ps, landing.ps);
      } else {
        top.crossing = cross(source, landing);
        if (!top.crossing) continue;
        top.ps = saturating_add(top.crossing->cost.predicted_ps, landing.ps);
      }
      push(std::move(top));
    }
  }

  // Of those that are left the one with the best way straight across, where any is known; else that
  // which is reached soonest.
  Stop& next_source() {
    Stop* next = nullptr;
    for (size_t s = 1; s < sources_.size(); ++s) {
      Stop& source = sources_[s];
      if (source.looked_at || (next != nullptr && source.straight_ps >= next->straight_ps))
        continue;
      next = &source;
    }
    next->looked_at = true;
    return *next;
  }

  // By way of another state of the source's mesh.
  void from_elsewhere(Stop& source) {
    if (!useful(source.ps, 1)) return;
    bound_to_target(source);
    const int64_t least_ps = saturating_add(source.ps, source.bound_ps);
    if (!useful(least_ps, 1)) return;
    if (stops_before(least_ps) || !find(sources_side_, source, source.bound_ps)) return;
    for (Stop& landing : landings_) {
      int64_t ps = saturating_add(std::max(landing.bound_ps, source.ps), landing.ps);
      ps = std::max(ps, saturating_add(source.ps, source.bound_ps));
      if (!useful(ps, collectives_by(source, landing))) continue;
      if (stops_before(ps)) return;
      const int64_t room_ps = room_beside(saturating_add(source.ps, landing.ps));
      ps = saturating_add(bound(source.state, landing.state, room_ps), landing.ps);
      if (!useful(saturating_add(source.ps, ps), collectives_by(source, landing))) continue;
      if (auto crossing = cross(source, landing)) finish(source, *std::move(crossing), landing);
    }
  }

  // The exchange between both, priced once: what was too long then is still. Kept for the look
  // straight across, and for the search behind it, which asks for each once.
  struct Crossing {
    ExchangeStep step;
    bool looked_at = false;  // by the look straight across
  };
  Crossing& crossing_between(const Stop& source, const Stop& landing) {
    const auto [at, fresh] = crossings_.try_emplace({&source, &landing});
    const int64_t most_ps = room_beside(saturating_add(source.ps, landing.ps));
    if (fresh) at->second.step = exchange_.made(source.state, landing.state, ways_, most_ps);
    return at->second;
  }
  // The same; nothing where it takes too long.
  std::optional<ExchangeStep> cross(const Stop& source, const Stop& landing) {
    const int64_t most_ps = room_beside(saturating_add(source.ps, landing.ps));
    ExchangeStep crossing = crossing_between(source, landing).step;
    if (&source != &sources_.front()) crossings_.erase({&source, &landing});
    if (crossing.cost.in_shifts_unknown) shortcuts_.add(Shortcut::estimated_price);
    if (crossing.cost.predicted_ps > most_ps) return std::nullopt;
    if (!crossing.cost.exact) shortcuts_.add(Shortcut::estimated_price);
    return crossing;
  }

  // The plan by way of both, unless the steps behind the landing take too long.
  void finish(const Stop& source, ExchangeStep crossing, Stop& landing) {
    const int64_t before = saturating_add(source.ps, crossing.cost.predicted_ps);
    if (!useful(saturating_add(before, landing.ps), collectives_by(source, landing)) ||
        !find(landings_side_, landing, before))
      return;
    take_with_less(source, std::move(crossing.step), landing);
  }

  // The plan by this exchange where it fits into memory; else by another, as one without a far
  // share, fetched by those that want it, or in one phase may need less.
  void take_with_less(const Stop& source, Step crossing, const Stop& landing) {
    ExchangeWays ways = ways_;
    while (!take(source, crossing, landing)) {
      if (!leave_out_way(crossing, ways)) return;
      crossing = exchange_.made(source.state, landing.state, ways).step;
    }
  }

  // Whether the plan fits into memory; it is the best one from now on where it is.
  bool take(const Stop& source, Step crossing, const Stop& landing) {
    PlannedRedistribution planned;
    planned.request = request_;
    std::vector<Step> steps = source.steps;
    steps.push_back(std::move(crossing));
    steps.insert(steps.end(), landing.steps.begin(), landing.steps.end());
    planned.steps = steps;
    price_redistribution(planned, *question_.meshes, levels_);
    const Totals& totals = planned.totals;
    least_peak_ = std::min(least_peak_, totals.peak_bytes);
    const int64_t limit = question_.options->max_memory_bytes;
    if (limit > 0 && totals.peak_bytes > limit) return false;
    const auto key = [](const Totals& t) {
      return std::tuple(t.predicted_ps, t.collectives, t.wire_bytes, t.peak_bytes);
    };
    if (key(totals) >= key(best_)) return true;
    best_ = totals;
    found_.emplace();
    found_->steps = std::move(steps);
    found_->dst = request_.dst;
    return true;
  }

  void exchange_alone() {
    Stop landing;
    landing.state = landing_of(request_);
    add_partials(request_, dst_mesh(), landing.state, landing.steps);
    Stop source;
    source.state = request_.src;
    take_with_less(source, exchange_.made(source.state, landing.state, ways_).step, landing);
  }

  const PlanQuestion& question_;
  const Request& request_;
  const LevelMap& levels_;
  const LevelMap& dst_levels_;
  work::Budget& budget_;
  int64_t work_at_first_;
  ExchangeWays ways_;
  AcrossExchange exchange_;
  Side sources_side_;
  Side landings_side_;
  std::vector<Stop> sources_;
  std::vector<Stop> landings_;
  std::map<std::pair<const Stop*, const Stop*>, Crossing> crossings_;
  int64_t state_limit_ = INT64_MAX;  // bytes
  bool looked_straight_ = false;
  Totals best_;
  std::optional<StepList> found_;
  int64_t least_peak_ = INT64_MAX;
  int64_t left_out_ps_ = INT64_MAX;
  Shortcuts shortcuts_;
};

}  // namespace

Result<StepList> plan_across(const PlanQuestion& question, const LevelMap& levels,
                             work::Budget& budget, const WhatIf& what_if) {
  const LevelMap dst_levels(question.meshes->meshes[question.request->dst_mesh],
                            *question.topology);
  Request request = *question.request;
  std::vector<State> targets{request.dst};
  if (std::exchange(request.any_dst_order, false)) targets = all_orders(request.dst, most_orders);
  PlanQuestion asked = question;
  asked.request = &request;
  std::optional<StepList> best;
  ExchangeWays ways;
  if (question.in_rounds) ways = {2, Fetchers::wanting, false};
  int64_t below_ps = what_if.below_ps;
  int64_t left_out_ps = INT64_MAX;
  LeastPeak least;
  least.bytes = what_if.least_peak;
  Shortcuts shortcuts;
  if (targets.size() == most_orders) shortcuts.add(Shortcut::few_orders);
  for (State& target : targets) {
    request.dst = std::move(target);
    const int64_t work = std::max<int64_t>(budget.left, 0);
    AcrossSearch search(asked, levels, dst_levels, budget, ways, below_ps);
    search.run();
    if (!search.found() && below_ps == INT64_MAX) {
      // As much work again: what fits is most often found soon by what it needs.
      const int64_t spent = work - std::exchange(budget.left, work);
      least.add(search.find_least_peak());
      budget.spend(spent);
    }
    shortcuts.add(search.shortcuts());
    left_out_ps = std::min(left_out_ps, search.left_out_ps());
    if (search.found()) {
      best = search.found();
      below_ps = search.best_ps();
    }
  }
  if (!best && may_park_elsewhere(question, what_if, shortcuts))
    return plan_across(wider(question), levels, budget, of_wider(what_if, least));
  if (!best) return nothing_fits(question.options->max_memory_bytes, least, shortcuts);
  best->shortcuts = shortcuts;
  Shortcuts work_alone;
  work_alone.add(Shortcut::work_budget);
  if (shortcuts.none()) best->least_ps = below_ps;
  if (shortcuts == work_alone) best->least_ps = std::min(left_out_ps, below_ps);
  return std::move(*best);
}

}  // namespace meshplan
