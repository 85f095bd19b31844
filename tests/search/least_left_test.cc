#include "search/least_left.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>

#include "../cost/some_protocols.h"
#include "cost/step_cost.h"
#include "cost/topology.h"
#include "doctest/doctest.h"
#include "search/moves.h"
#include "search/optimal.h"
#include "search/telling_units.h"
#include "small_question.h"

using namespace meshplan;

namespace {

struct SizedQuestion {
  std::vector<int64_t> sizes;
  std::vector<int64_t> shape;
  int64_t inside;
  bool packs = false;
  bool grows = packs;  // latencies, with ranks
};

// Every arrangement of the sub-axes, with any of those pending that are in the source.
std::vector<LeftState> every_left_state(const PlanProblem& p) {
  std::vector<LeftState> states;
  for (uint16_t q = p.source.pending;; q = static_cast<uint16_t>((q - 1) & p.source.pending)) {
    SearchState like;
    like.pending = q;
    std::vector<SearchState> spread;
    all_spreads(p, like, static_cast<uint16_t>(p.all & ~q), SIZE_MAX, spread);
    for (const SearchState& s : spread) {
      states.push_back({s, bound_between(p, p.source, s).ps, bound_between(p, s, p.target).ps});
    }
    if (q == 0) break;
  }
  return states;
}

// The largest peak of the steps of a way, each by the edge of least peak.
int64_t peak_of_way(const PlanProblem& p, const KnownWay& way) {
  int64_t peak = 0;
  SearchState from = p.source;
  for (const KnownStep& step : way) {
    std::vector<Edge> edges;
    if (step.way)
      edges.push_back(exchange_edge(p, from, step.to, *step.way));
    else
      (void)collective_moves(p, from, edges);
    int64_t least = INT64_MAX;
    for (const Edge& edge : edges) {
      if (edge.to == step.to) least = std::min(least, peak_of(p, from, edge));
    }
    peak = std::max(peak, least);
    from = step.to;
  }
  return peak;
}

}  // namespace

TEST_CASE("no plan has less left than single steps take: against the cheapest plan of each state") {
  int64_t raised = 0;
  int64_t refused = 0;
  int64_t told = 0;
  int64_t made = 0;
  int64_t fitting = 0;
  int64_t packed = 0;
  int64_t on_best = 0;
  int64_t in_part = 0;
  for (const SizedQuestion& w :
       {SizedQuestion{{3, 4}, {1000, 7}, 6}, SizedQuestion{{2, 3, 2}, {600, 50}, 4}, SizedQuestion{{4, 3}, {2, 30}, 100},
        SizedQuestion{{2, 2, 3}, {360, 24}, 8}, SizedQuestion{{2, 2, 2}, {64, 32}, 4, true}, SizedQuestion{{2, 4}, {256, 64}, 2, true},
        SizedQuestion{{3, 4}, {1000, 7}, 6, false, true}, SizedQuestion{{2, 3, 2}, {60, 5003}, 4, false, true},
        SizedQuestion{{6, 2}, {16, 90}, 4, false, true}}) {
    Topology topology = w.inside == 100 ? uniform_topology() : test::two_levels(w.inside, 500);
    // Bytes decide.
    for (TopologyLevel& level : topology.levels) level.mb_per_s /= 1'000;
    if (w.grows) topology = test::with_protocols(topology);
    test::SmallQuestion question(w.sizes, topology, {w.shape, DType::float32});
    std::mt19937_64 random(3);
    for (int k = 0; k < 10; ++k) {
      auto p = question.problem();
      REQUIRE(p);
      p->state_limit = INT64_MAX;
      p->source = test::random_state(*p, static_cast<uint16_t>(k % 2 == 0 ? 0 : random() & p->all), random);
      p->source_pending = p->source.pending;
      p->target = test::random_state(*p, 0, random);
      PackedWorld world;
      world.reset(*p);
      if (world.usable() != w.packs) continue;
      packed += w.packs;
      const Found best = find_cheapest(*p);
      REQUIRE(best.exists);
      REQUIRE(best.shortcuts.none());
      std::vector<LeftState> states = every_left_state(*p);
      const std::vector<LeftState> before = states;
      LeftQuestion q;
      q.problem = &*p;
      q.world = w.packs ? &world : nullptr;
      q.most_ps = best.cost.ps;
      const Raised all = raise_left(q, states);
      CHECK(all.way.empty());
      CHECK(all.least_ps == best.cost.ps);
      // What a plan from there takes, where it is of use, and one by way of it.
      std::vector<std::optional<int64_t>> rests(states.size());
      std::vector<int64_t> by_way_of(states.size());
      for (size_t i = 0; i < states.size(); ++i) {
        REQUIRE(states[i].left >= before[i].left);
        raised += states[i].left > before[i].left;
        refused += states[i].before + states[i].left > q.most_ps;
        if (states[i].before + before[i].left > q.most_ps) continue;
        PlanProblem from = *p;
        from.source = states[i].at;
        const Found rest = find_cheapest(from);
        REQUIRE(rest.exists);
        rests[i] = rest.cost.ps;
        PlanProblem until = *p;
        until.target = states[i].at;
        until.kept = p->source.pending & states[i].at.pending;
        const Found way_there = find_cheapest(until);
        REQUIRE(way_there.exists);
        by_way_of[i] = way_there.cost.ps + rest.cost.ps;
        on_best += by_way_of[i] == best.cost.ps;
        CAPTURE(to_text(to_state(*p, p->source), w.sizes));
        CAPTURE(to_text(to_state(*p, states[i].at), w.sizes));
        CAPTURE(to_text(to_state(*p, p->target), w.sizes));
        if (by_way_of[i] <= best.cost.ps) REQUIRE(states[i].left <= std::max(before[i].left, rest.cost.ps));
      }
      // A plan that is not the cheapest is known: what lies on the cheapest way is priced.
      std::vector<LeftState> looser = before;
      q.most_ps = best.cost.ps + best.cost.ps / 5;
      CHECK(raise_left(q, looser).least_ps == best.cost.ps);
      for (const LeftState& state : looser) {
        if (state.at == p->source) CHECK(state.left == best.cost.ps);
      }
      // Whatever a plan may take.
      std::vector<LeftState> any = before;
      q.most_ps = INT64_MAX;
      CHECK(raise_left(q, any).least_ps == best.cost.ps);
      // Cut short, it makes a plan of what it knows, and says no more than that.
      q.most_ps = 2 * best.cost.ps;
      for (q.most_work = 1'000; q.most_work < 100'000; q.most_work *= 2) {
        std::vector<LeftState> cut = before;
        const Raised part = raise_left(q, cut);
        CHECK(part.least_ps <= best.cost.ps);
        for (size_t i = 0; i < cut.size(); ++i) {
          // Of plans that take no more than the one that was found.
          if (!rests[i] || by_way_of[i] > (part.way.empty() ? q.most_ps : best.cost.ps)) continue;
          REQUIRE(cut[i].left <= std::max(before[i].left, *rests[i]));
          ++in_part;
        }
        if (part.way.empty()) continue;
        ++made;
        CHECK(part.way.back().to == p->target);
        // Under a limit of peaks a plan keeps to it; what is left is no more for that.
        const int64_t reached = peak_of_way(*p, part.way);
        PlanProblem tight = *p;
        q.problem = &tight;
        for (const int64_t limit : {reached, reached - 1}) {
          tight.peak_limit = limit;
          std::vector<LeftState> within = before;
          const Raised fit = raise_left(q, within);
          CHECK(fit.least_ps <= best.cost.ps);
          if (fit.way.empty()) continue;
          ++fitting;
          CHECK(fit.way.back().to == p->target);
          CHECK(peak_of_way(tight, fit.way) <= limit);
        }
        q.problem = &*p;
      }
      q.most_ps = best.cost.ps;
      // Where none but the cheapest is of use, too.
      std::vector<LeftState> some = before;
      q.most_work = 2'000;
      const int64_t least_ps = raise_left(q, some).least_ps;
      CHECK(least_ps <= best.cost.ps);
      told += least_ps > bound_between(*p, p->source, p->target).ps;
      for (size_t i = 0; i < some.size(); ++i) {
        if (rests[i] && by_way_of[i] <= best.cost.ps) REQUIRE(some[i].left <= std::max(before[i].left, *rests[i]));
      }
    }
  }
  MESSAGE(raised << " raised, " << refused << " refused, more told of " << told << " cut short, plans made of " << made << ", " << on_best
                 << " states on cheapest plans, " << in_part << " on plans of use where it was cut short; under a limit of " << fitting
                 << "; of " << packed << " questions states pack");
  CHECK(packed > 10);
  CHECK(on_best > 100);
  CHECK(in_part > 1'000);
  CHECK(fitting > 5);
  CHECK(told > 5);
  CHECK(made > 5);
  CHECK(raised > 300);
  CHECK(refused > 300);
}

TEST_CASE("where nothing leads from the source nothing is said to lead there, whatever a plan may take") {
  test::SmallQuestion question({2, 2}, test::two_levels(2, 500), {{8, 8}, DType::float32});
  auto p = question.problem();
  REQUIRE(p);
  std::mt19937_64 random(1);
  p->source = test::random_state(*p, 1, random);
  p->target = test::random_state(*p, 0, random);
  // One reduction may run, and not this one.
  p->one_reduction = true;
  p->source_pending = 3;
  LeftQuestion q;
  q.problem = &*p;
  for (const int64_t most_ps : {int64_t{0}, int64_t{1'000'000}, INT64_MAX}) {
    q.most_ps = most_ps;
    std::vector<LeftState> states{{p->source, 0, 0}, {p->target, 0, 0}};
    const Raised raised = raise_left(q, states);
    CHECK(raised.way.empty());
    CHECK(raised.least_ps <= most_ps);
  }
}

TEST_CASE("an exchange that takes too much to list leaves a plan proven that it cannot be cheaper than") {
  // 6,144 ranks, [8192, 28672]: every rank would miss 768 parts, from other hosts; collectives on
  // single mesh dims lead nowhere, so that its estimate is the first plan.
  test::SmallQuestion question({24, 32, 8}, *topology_preset("h100"), {{8192, 28672}, DType::bfloat16});
  question.options.groups = GroupPolicy::declared;
  const std::vector<SubAxis> order{{0, 1, 24}, {1, 1, 32}};
  question.request.src.shards = {{}, order};
  question.request.dst.shards = {order, {}};
  const auto p = question.problem();
  REQUIRE(p);
  (void)price_between(*p, p->source, p->target, ExchangeWay::one_phase);
  CHECK(p->estimated);
  const Found found = find_cheapest(*p);
  REQUIRE(found.exists);
  CHECK(to_text(found.shortcuts) == "none");
  CHECK(found.cost.ps == 241'129'630);
}

TEST_CASE("a limit that no step reaches costs nothing, and one that the plan keeps to little") {
  // 3,840 ranks in racks of 72, [4096, 4099], none of whose states packs.
  test::SmallQuestion question({5, 8, 6, 16}, *topology_preset("gb200-nvl72"), {{4096, 4099}, DType::bfloat16});
  question.options.groups = GroupPolicy::declared;
  question.request.src.shards = {{}, {{1, 1, 8}, {3, 1, 16}}};
  question.request.dst.shards = {{{1, 1, 8}, {2, 1, 6}, {3, 1, 16}}, {{0, 1, 5}}};
  const auto planned = [&](int64_t limit) {
    question.options.max_memory_bytes = limit;
    const auto list = plan_optimal({&question.meshes, &question.topology, &question.request, &question.options});
    REQUIRE(list.ok());
    PlannedRedistribution priced;
    priced.request = question.request;
    priced.steps = list->steps;
    price_redistribution(priced, question.meshes, question.topology);
    return priced;
  };
  const PlannedRedistribution any = planned(-1);
  CHECK(planned(int64_t{1} << 40).steps == any.steps);
  CHECK(planned(any.totals.peak_bytes).totals.predicted_ps < any.totals.predicted_ps / 10 * 11);
}

TEST_CASE("what one search comes to know of exchanges serves the next") {
  // 576 ranks on hosts of 8, [2, 2048, 768]: 600 states, none of which packs.
  test::SmallQuestion question({12, 2, 4, 6}, *topology_preset("h100"), {{2, 2048, 768}, DType::float32});
  question.options.groups = GroupPolicy::declared;
  const SubAxis a{0, 1, 12};
  const SubAxis b{1, 1, 2};
  const SubAxis c{2, 1, 4};
  const SubAxis d{3, 1, 6};
  question.request.src.shards = {{a, b}, {c, d}, {}};
  question.request.dst.shards = {{b}, {c}, {}};
  auto declared = question.problem();
  auto fresh = question.problem();
  REQUIRE(declared);
  REQUIRE(fresh);
  const Found first = find_cheapest(*declared);
  REQUIRE(first.shortcuts.none());
  std::fill(fresh->allowed.begin() + 1, fresh->allowed.end(), 1);
  declared->allowed = fresh->allowed;
  const Found every_set = find_cheapest(*declared);
  question.levels.forget_listings();
  const Found anew = find_cheapest(*fresh);
  REQUIRE(anew.shortcuts.none());
  CHECK(every_set.shortcuts.none());
  CHECK(every_set.cost == anew.cost);
  CHECK(anew.cost.ps <= first.cost.ps);
  CHECK(every_set.work < anew.work / 2);
}

TEST_CASE("a unit that cuts mesh dims unevenly has few of their coordinates") {
  // Units of 8 ranks begin at 0, 2 and 4 of the 6 coordinates of the last dim.
  test::SmallQuestion question({12, 2, 4, 6}, test::two_levels(8, 500), {{60, 64}, DType::bfloat16});
  question.request.src.shards = {{{0, 1, 12}}, {{1, 1, 2}, {2, 1, 4}, {3, 1, 6}}};
  const auto p = question.problem();
  REQUIRE(p);
  REQUIRE(!p->exact_levels);
  for (int i = 0; i < p->sub_axes; ++i) {
    const std::array<int64_t, 4> inside{1, 1, 2, 6};
    CHECK(p->inside[as_index(i)] == inside[as_index(p->sub_axis[as_index(i)].mesh_dim)]);
  }
}

TEST_CASE("a mesh of one rank has no units to look at, wherever the rank lies in its unit") {
  for (const int64_t rank : {0, 1, 4, 5, 7}) {
    test::SmallQuestion question({1}, test::two_levels(4, 500), {{4, 4}, DType::bfloat16}, {rank});
    question.request.dst = question.request.src;
    const auto p = question.problem();
    REQUIRE(p);
    CHECK(p->exact_levels);
    PlanProblem looked = *p;
    looked.units.clear();
    look_at_units(looked);
    CHECK(looked.units.empty());
    CHECK(bound_between(*p, p->source, p->target).ps == 0);
    // Targets of any order are bounded before they are searched.
    question.request.any_dst_order = true;
    const auto list = plan_optimal({&question.meshes, &question.topology, &question.request, &question.options}, question.levels);
    REQUIRE(list);
    CHECK(list->steps.empty());
  }
}
