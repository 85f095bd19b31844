#include "search/last_step.h"

#include <functional>
#include <numeric>
#include <random>

#include "doctest/doctest.h"
#include "search/moves.h"
#include "small_question.h"

using namespace meshplan;

namespace {

// `at` and all that slices lead to from it.
void with_slices(const PlanProblem& p, const SearchState& at, std::vector<SearchState>& out) {
  if (std::find(out.begin(), out.end(), at) != out.end()) return;
  out.push_back(at);
  const unsigned taken = sharding(at, p.dims) | at.pending;
  for (int i = 0; i < p.sub_axes; ++i) {
    for (int d = 0; d < p.dims && (taken >> i & 1) == 0; ++d) {
      SearchState next = at;
      append(next, p.dims, d, static_cast<uint8_t>(i));
      with_slices(p, next, out);
    }
  }
}

}  // namespace

TEST_CASE("no plan with one communicating step takes less than its floors") {
  struct World {
    std::vector<int64_t> sizes;
    size_t rank;
    int64_t inside;
    int64_t per_peer_ns;
  };
  const std::vector<World> worlds{
      {{2, 2, 2}, 2, 4, 500}, {{2, 2, 2}, 2, 2, 0}, {{2, 2, 2}, 3, 4, 500}, {{4, 2, 2}, 2, 4, 500}, {{3, 3, 3}, 2, 1, 500}};
  int floors = 0;
  int refused = 0;
  int raised = 0;
  for (const World& w : worlds) {
    std::mt19937_64 random(7);
    const int64_t extent = std::accumulate(w.sizes.begin(), w.sizes.end(), int64_t{64}, std::multiplies<>());
    const test::SmallQuestion question(w.sizes, test::two_levels(w.inside, w.per_peer_ns),
                                       {std::vector<int64_t>(w.rank, extent), DType::float32});
    auto p = question.problem();
    REQUIRE(p);
    PackedWorld world;
    world.reset(*p);
    REQUIRE(world.usable());
    for (int k = 0; k < 300; ++k) {
      const auto pending = static_cast<uint16_t>(k % 4 == 0 ? random() & p->all : 0);
      const SearchState at = test::random_state(*p, pending, random);
      p->target = test::random_state(*p, pending, random);
      p->kept = pending;
      p->state_limit = std::max(box_elements(*p, at), box_elements(*p, p->target)) * p->element * static_cast<int64_t>(1 + k % 2 * 7);
      CAPTURE(to_text(to_state(*p, at), w.sizes));
      CAPTURE(to_text(to_state(*p, p->target), w.sizes));
      const Packed target = world.pack(p->target);
      const int64_t least = world.bound_ps(world.pack(at), target);
      const int64_t floor = last_collective_floor_ps(*p, world, at, least);
      const int64_t exchange = world.exchange_floors(world.pack(at), target).one_phase_ps;
      if (local_steps_lead_to_target(*p, at)) continue;
      const int64_t rest = rest_floor_ps(*p, world, at, world.pack(at), target, least, true);
      REQUIRE(rest >= least);
      REQUIRE(rest <= std::max({least, world.several_ps(world.pack(at), target), world.reordered_ps(world.pack(at), target, true)}));
      ++floors;
      raised += rest > least;
      refused += floor == INT64_MAX;
      std::vector<SearchState> starts;
      with_slices(*p, at, starts);
      for (const SearchState& start : starts) {
        REQUIRE(world.exchange_floors(world.pack(start), target).one_phase_ps >= exchange);
        std::vector<Edge> all;
        std::vector<Edge> last;
        MoveLimits last_only;
        last_only.last_only = true;
        collective_moves(*p, start, all);
        collective_moves(*p, start, last, last_only);
        for (const ExchangeWay way : {ExchangeWay::one_phase, ExchangeWay::two_phases})
          REQUIRE(rest <= price_between(*p, start, p->target, way).predicted_ps);
        int64_t found = 0;
        for (const Edge& edge : all) {
          // Two steps, the second a collective from where the first leads or an exchange.
          if (!is_local(edge.op) && box_elements(*p, edge.to) * p->element <= p->state_limit && start == at) {
            REQUIRE(rest <= edge.cost.ps + price_between(*p, edge.to, p->target, ExchangeWay::one_phase).predicted_ps);
            std::vector<Edge> second;
            collective_moves(*p, edge.to, second, last_only);
            for (const Edge& next : second) {
              if (!is_local(next.op)) REQUIRE(rest <= edge.cost.ps + next.cost.ps);
            }
          }
          if (is_local(edge.op) || !local_steps_lead_to_target(*p, edge.to)) continue;
          ++found;
          if (!(edge.to == p->target) && box_elements(*p, edge.to) * p->element > p->state_limit) continue;
          REQUIRE(edge.cost.ps >= floor);
        }
        // Listing last steps alone leaves out none of them.
        REQUIRE(std::count_if(last.begin(), last.end(), [](const Edge& edge) { return !is_local(edge.op); }) == found);
      }
    }
  }
  CHECK(floors > 1200);
  CHECK(refused > 200);
  CHECK(raised > 400);
}

namespace {

// Every arrangement of sub-axes in lists.
void arrange(const PlanProblem& p, const SearchState& at, int d, std::vector<SearchState>& out) {
  if (d == p.dims) {
    out.push_back(at);
    return;
  }
  arrange(p, at, d + 1, out);
  for (unsigned left = p.all & ~sharding(at, p.dims); left != 0; left &= left - 1) {
    SearchState next = at;
    append(next, p.dims, d, static_cast<uint8_t>(__builtin_ctz(left)));
    arrange(p, next, d, out);
  }
}

// What the cheapest way takes between any two states, by all steps there are (Floyd and Warshall).
std::vector<std::vector<int64_t>> cheapest_ways(const PlanProblem& p, const std::vector<SearchState>& all) {
  const size_t n = all.size();
  std::vector<std::vector<int64_t>> ps(n, std::vector<int64_t>(n));
  for (size_t a = 0; a < n; ++a) {
    for (size_t b = 0; b < n; ++b) {
      if (a == b) continue;
      ps[a][b] = INT64_MAX;
      for (const ExchangeWay way : exchange_ways) {
        if (may_go(p, all[a], all[b], way)) ps[a][b] = std::min(ps[a][b], price_between(p, all[a], all[b], way).predicted_ps);
      }
    }
    std::vector<Edge> edges;
    collective_moves(p, all[a], edges);
    for (const Edge& edge : edges) {
      const auto to = static_cast<size_t>(std::find(all.begin(), all.end(), edge.to) - all.begin());
      REQUIRE(to < n);
      ps[a][to] = std::min(ps[a][to], edge.cost.ps);
    }
  }
  for (size_t k = 0; k < n; ++k) {
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = 0; b < n; ++b) ps[a][b] = std::min(ps[a][b], ps[a][k] + ps[k][b]);
    }
  }
  return ps;
}

}  // namespace

TEST_CASE("no way of any number of steps takes less than what is left at least") {
  struct World {
    std::vector<int64_t> sizes;
    size_t rank;
    int64_t inside;
    bool by_all = false;  // may fetch
  };
  int raised = 0;
  int met = 0;
  int below = 0;
  std::vector<World> worlds{World{{2, 2, 2}, 2, 4}, World{{2, 2, 2}, 2, 2}, World{{2, 2, 2}, 1, 4},
                            World{{2, 2, 2}, 3, 2}, World{{3, 3}, 2, 3},    World{{4, 2}, 2, 2}};
  for (size_t i = worlds.size(); i-- > 0;) {
    worlds.push_back(worlds[i]);
    worlds.back().by_all = true;
  }
  for (const World& w : worlds) {
    const int64_t extent = std::accumulate(w.sizes.begin(), w.sizes.end(), int64_t{512}, std::multiplies<>());
    const test::SmallQuestion question(w.sizes, test::two_levels(w.inside, 500), {std::vector<int64_t>(w.rank, extent), DType::float32});
    auto p = question.problem();
    REQUIRE(p);
    p->state_limit = INT64_MAX;
    REQUIRE(p->all_may_fetch);
    PlanProblem alone = *p;
    alone.all_may_fetch = false;
    PackedWorld without;
    without.reset(alone);
    p->all_may_fetch = w.by_all;
    PackedWorld world;
    world.reset(*p);
    REQUIRE(world.usable());
    std::vector<SearchState> all;
    arrange(*p, SearchState{}, 0, all);
    const auto ps = cheapest_ways(*p, all);
    for (size_t b = 0; b < all.size(); ++b) {
      p->target = all[b];
      const Packed target = world.pack(all[b]);
      for (size_t a = 0; a < all.size(); ++a) {
        const Packed packed = world.pack(all[a]);
        const int64_t least = a == b ? 0 : world.bound_ps(packed, target);
        const int64_t rest = rest_floor_ps(*p, world, all[a], packed, target, least, true);
        CAPTURE(to_text(to_state(*p, all[a]), w.sizes));
        CAPTURE(to_text(to_state(*p, all[b]), w.sizes));
        REQUIRE(rest <= ps[a][b]);
        const int64_t reordered = world.reordered_ps(packed, target);
        REQUIRE(reordered <= ps[a][b]);
        raised += reordered > least;
        below += without.reordered_ps(packed, target) > ps[a][b];
        met += rest > 0 && ps[a][b] <= rest + rest / 50;
      }
    }
  }
  CHECK(raised > 500);
  CHECK(met > 4000);
  CHECK(below > 50);  // what holds where those that want a box fetch it
}

namespace {

// With any of the sub-axes pending.
std::vector<SearchState> every_state(const PlanProblem& p) {
  std::vector<SearchState> all;
  for (uint16_t q = 0; q <= p.all; ++q) {
    SearchState at;
    at.pending = q;
    std::vector<SearchState> spread;
    REQUIRE(all_spreads(p, at, static_cast<uint16_t>(p.all & ~q), SIZE_MAX, spread));
    all.insert(all.end(), spread.begin(), spread.end());
  }
  return all;
}

// What the cheapest way to the last of the states takes from each, where sums are reduced and none
// is made.
std::vector<int64_t> cheapest_to(const std::vector<SearchState>& all, const std::vector<std::vector<Edge>>& edges, size_t target) {
  std::vector<int64_t> ps(all.size(), INT64_MAX);
  std::vector<bool> settled(all.size());
  ps[target] = 0;
  for (size_t k = 0; k < all.size(); ++k) {
    size_t to = all.size();
    for (size_t i = 0; i < all.size(); ++i) {
      if (!settled[i] && (to == all.size() || ps[i] < ps[to])) to = i;
    }
    if (ps[to] == INT64_MAX) break;
    settled[to] = true;
    for (size_t a = 0; a < all.size(); ++a) {
      for (const Edge& edge : edges[a]) {
        if (edge.to == all[to]) ps[a] = std::min(ps[a], ps[to] + edge.cost.ps);
      }
    }
  }
  return ps;
}

}  // namespace

TEST_CASE("no way takes less over the outer links than its steps one by one") {
  struct World {
    std::vector<int64_t> sizes;
    size_t rank;
    int64_t inside;
    bool slow;  // bytes decide
  };
  int raised = 0;
  int met = 0;
  int64_t looked = 0;
  for (const World& w :
       {World{{2, 2, 2}, 2, 1, false}, World{{2, 2, 2}, 2, 2, false}, World{{2, 2, 2}, 2, 2, true}, World{{2, 2, 2}, 1, 1, true},
        World{{2, 2, 2}, 2, 1, true}, World{{2, 2, 2, 2}, 1, 2, true}, World{{2, 2, 2, 2}, 1, 4, false}, World{{4, 2}, 2, 2, true},
        World{{3, 3}, 2, 3, true}, World{{4, 4}, 1, 2, true}, World{{2, 2, 2}, 2, 4, true}, World{{2, 2, 2}, 2, 4, false},
        World{{2, 2, 2, 2}, 1, 8, true}, World{{2, 4}, 2, 4, true}, World{{3, 3, 3}, 1, 9, true}}) {
    const int64_t extent = std::accumulate(w.sizes.begin(), w.sizes.end(), int64_t{w.slow ? 4096 : 512}, std::multiplies<>());
    test::SmallQuestion question(w.sizes, test::two_levels(w.inside, 500), {std::vector<int64_t>(w.rank, extent), DType::float32});
    auto p = question.problem();
    REQUIRE(p);
    p->state_limit = INT64_MAX;
    PackedWorld world;
    world.reset(*p);
    REQUIRE(world.usable());
    const std::vector<SearchState> all = every_state(*p);
    std::vector<std::vector<Edge>> edges(all.size());
    for (size_t a = 0; a < all.size(); ++a) {
      collective_moves(*p, all[a], edges[a]);
      for (const SearchState& to : all) {
        if (to == all[a] || (to.pending & ~all[a].pending) != 0) continue;
        for (const ExchangeWay way : {ExchangeWay::one_phase, ExchangeWay::two_phases}) {
          if (way == ExchangeWay::one_phase || to.pending == all[a].pending) edges[a].push_back(exchange_edge(*p, all[a], to, way));
        }
      }
      // Each step by itself.
      for (const Edge& edge : edges[a]) {
        const int64_t step = world.outer_step_ps(world.outer_part(world.pack(all[a])), world.outer_part(world.pack(edge.to)));
        CAPTURE(to_text(to_state(*p, all[a]), w.sizes));
        CAPTURE(to_text(to_state(*p, edge.to), w.sizes));
        REQUIRE(step <= edge.cost.ps);
        if (step > 0) REQUIRE(step >= world.least_outer_step_ps(world.outer_part(world.pack(all[a])).inner_pending));
      }
    }
    for (size_t b = 0; b < all.size(); ++b) {
      if (all[b].pending != 0) continue;
      p->target = all[b];
      const Packed target = world.pack(all[b]);
      const std::vector<int64_t> ps = cheapest_to(all, edges, b);
      LeastOutside outside;
      for (const SearchState& s : all) outside.add(world, world.pack(s), 0);
      outside.settle(*p, world, target, INT64_MAX, INT64_MAX);
      for (size_t a = 0; a < all.size(); ++a) {
        const Packed packed = world.pack(all[a]);
        const int64_t least = a == b ? 0 : world.bound_ps(packed, target);
        const int64_t before = rest_floor_ps(*p, world, all[a], packed, target, least, true);
        const int64_t rest = rest_floor_ps(*p, world, all[a], packed, target, least, true, outside.left(world, packed));
        CAPTURE(to_text(to_state(*p, all[a]), w.sizes));
        CAPTURE(to_text(to_state(*p, all[b]), w.sizes));
        REQUIRE(rest >= before);
        REQUIRE(rest <= ps[a]);
        ++looked;
        raised += rest > before;
        met += rest > before && ps[a] <= rest + rest / 50;
      }
    }
  }
  MESSAGE(looked << " looked at, " << raised << " raised, " << met << " met");
  CHECK(raised > 500);
}

TEST_CASE("no step takes less than what units fetch and reduce, whatever is pending inside of them") {
  struct World {
    std::vector<int64_t> sizes;
    size_t rank;
    int64_t inside;
    int64_t per_peer_ns;
  };
  int64_t looked = 0;
  int64_t reducing_inside = 0;
  int64_t met = 0;
  for (const World& w : {World{{2, 4, 2, 2, 2, 4}, 4, 8, 500}, World{{2, 2, 2, 2, 2, 2}, 3, 8, 500}, World{{2, 2, 2, 2, 2}, 3, 8, 0},
                         World{{3, 3, 3, 3}, 2, 9, 500}, World{{4, 4, 4}, 2, 16, 500}, World{{2, 2, 2, 2, 2}, 2, 16, 500}}) {
    std::mt19937_64 random(5);
    const int64_t extent = std::accumulate(w.sizes.begin(), w.sizes.end(), int64_t{8}, std::multiplies<>());
    const test::SmallQuestion question(w.sizes, test::two_levels(w.inside, w.per_peer_ns),
                                       {std::vector<int64_t>(w.rank, extent), DType::float32});
    auto p = question.problem();
    REQUIRE(p);
    p->state_limit = INT64_MAX;
    PackedWorld world;
    world.reset(*p);
    REQUIRE(world.usable());
    const auto require_less = [&](const SearchState& at, const Edge& edge) {
      const OuterPart from = world.outer_part(world.pack(at));
      const OuterPart to = world.outer_part(world.pack(edge.to));
      const int64_t step = world.outer_step_ps(from, to);
      CAPTURE(to_text(to_state(*p, at), w.sizes));
      CAPTURE(to_text(to_state(*p, edge.to), w.sizes));
      REQUIRE(step <= edge.cost.ps);
      if (step > 0) REQUIRE(step >= world.least_outer_step_ps(from.inner_pending));
      ++looked;
      reducing_inside += step > 0 && to.inner_pending < from.inner_pending;
      met += step > 0 && to.inner_pending < from.inner_pending && edge.cost.ps <= step + step / 50;
    };
    for (int k = 0; k < 40; ++k) {
      const SearchState at = test::random_state(*p, static_cast<uint16_t>(random() & p->all), random);
      std::vector<Edge> edges;
      collective_moves(*p, at, edges);
      for (int few = 0; few < 300 && !edges.empty(); ++few) require_less(at, edges[random() % edges.size()]);
      for (int j = 0; j < 40; ++j) {
        const auto pending = static_cast<uint16_t>(j % 2 == 0 ? at.pending & random() : at.pending);
        SearchState to = test::random_state(*p, pending, random);
        // Half of them cut what the state cuts, or what it cuts and more.
        if (j % 4 < 2) {
          to = at;
          to.pending = pending;
          const unsigned taken = sharding(to, p->dims) | pending;
          for (int i = 0; i < p->sub_axes; ++i) {
            if ((taken >> i & 1) == 0 && random() % 2 == 0)
              append(to, p->dims, static_cast<int>(random() % w.rank), static_cast<uint8_t>(i));
          }
        }
        if (to == at) continue;
        for (const ExchangeWay way : {ExchangeWay::one_phase, ExchangeWay::two_phases}) {
          if (way == ExchangeWay::one_phase || to.pending == at.pending) require_less(at, exchange_edge(*p, at, to, way));
        }
      }
    }
  }
  MESSAGE(looked << " looked at, " << reducing_inside << " of them reduce inside of units, " << met << " met");
  CHECK(reducing_inside > 10'000);
  CHECK(met > 500);
}

TEST_CASE("what is pending inside of units comes as many times over the outer links, but for what a collective reduces") {
  test::SmallQuestion question({2, 2}, test::two_levels(2, 500), {{1024, 1024}, DType::float32});
  const auto p = question.problem();
  REQUIRE(p);
  PackedWorld world;
  world.reset(*p);
  REQUIRE(world.usable());
  const auto packed = [&](uint16_t pending, std::initializer_list<std::pair<int, int>> shards) {
    SearchState s;
    s.pending = pending;
    for (const auto& [d, sub_axis] : shards) append(s, p->dims, d, static_cast<uint8_t>(sub_axis));
    return world.pack(s);
  };
  const auto part = [&](uint16_t pending, std::initializer_list<std::pair<int, int>> shards) {
    return world.outer_part(packed(pending, shards));
  };
  const auto step_ps = [&](const OuterPart& from, const OuterPart& to) { return world.outer_step_ps(from, to); };
  const int64_t bytes = p->digit_bytes;
  // By two ranks of a unit together, over the outer links (45 GB/s, 25 us) or inside (370 GB/s, 10 us).
  const auto outside = [](int64_t all) { return 25'000'000 + (all / 2 * 1000 + 44) / 45; };
  const auto inside = [](int64_t all) { return 10'000'000 + (all / 2 * 1000 + 369) / 370; };
  // A host has half of what it wants: the other half comes once, or once for each value that is pending inside.
  CHECK(step_ps(part(0, {{0, 0}}), part(0, {{1, 0}})) == outside(bytes / 4));
  CHECK(step_ps(part(2, {{0, 0}}), part(2, {{1, 0}})) == outside(bytes / 2));
  CHECK(step_ps(part(2, {{0, 0}}), part(0, {{1, 0}})) == outside(bytes / 2));
  // A sum is scattered: what is pending inside stays so, or is reduced with it.
  CHECK(step_ps(part(1, {}), part(0, {{0, 0}})) == outside(bytes / 2));
  CHECK(step_ps(part(3, {}), part(2, {{0, 0}})) == outside(bytes));
  CHECK(step_ps(part(3, {}), part(0, {{0, 0}})) == outside(bytes / 2));
  // An exchange by itself.
  CHECK(world.outer_bound_ps(packed(2, {{0, 0}}), packed(0, {{1, 0}})) == outside(bytes / 2) + 500'000);
  CHECK(world.outer_bound_ps(packed(3, {}), packed(0, {{0, 0}})) == outside(bytes) + 500'000);
  // Inside alone.
  CHECK(step_ps(part(2, {{0, 0}}), part(0, {{0, 0}})) == inside(bytes / 2));
  CHECK(step_ps(part(2, {}), part(0, {{0, 0}})) == inside(bytes / 2));
  CHECK(step_ps(part(3, {}), part(1, {})) == inside(bytes));
  // Nothing becomes pending.
  CHECK(step_ps(part(0, {}), part(2, {})) == INT64_MAX);
  CHECK(step_ps(part(0, {}), part(1, {})) == INT64_MAX);
}

TEST_CASE("a sum inside of units that is reduced before shards cross is charged for") {
  test::SmallQuestion question({2, 4, 2, 2, 2, 4}, test::two_levels(8, 500), {{256, 256, 256, 256}, DType::float32});
  State& src = question.request.src;
  src.shards = {{}, {}, {{0, 1, 2}}, {}};
  src.partial = {{{5, 1, 4}, ReduceOp::sum}};
  question.request.dst.shards = {{}, {{0, 1, 2}, {2, 1, 2}}, {{1, 1, 4}}, {{4, 1, 2}}};
  const Found found = find_cheapest(*question.problem());
  CHECK(found.cost.ps <= 3'587'742'103);
  CHECK(found.cost.ps - found.least_ps < found.cost.ps / 100);
}

TEST_CASE("a sum that is fetched and shared takes two steps over the outer links") {
  test::SmallQuestion question({2, 2, 2, 2, 2, 2}, test::two_levels(8, 500), {{256, 256, 256}, DType::float32});
  const auto p = question.problem();
  REQUIRE(p);
  PackedWorld world;
  world.reset(*p);
  const auto packed = [&](uint16_t pending, std::initializer_list<std::pair<int, int>> shards) {
    SearchState s;
    s.pending = pending;
    for (const auto& [d, sub_axis] : shards) append(s, p->dims, d, static_cast<uint8_t>(sub_axis));
    return world.pack(s);
  };
  LeastOutside outside;
  for (const uint16_t q : std::initializer_list<uint16_t>{0b110100, 0b000100, 0b000000}) {
    SearchState like;
    like.pending = q;
    std::vector<SearchState> spread;
    REQUIRE(all_spreads(*p, like, static_cast<uint16_t>(p->all & ~q), SIZE_MAX, spread));
    for (const SearchState& s : spread) outside.add(world, world.pack(s), 0);
  }
  const Packed source = packed(0b110100, {{0, 0}, {1, 3}});
  const Packed target = packed(0, {{2, 0}, {0, 2}, {2, 3}, {0, 5}});
  outside.settle(*p, world, target, INT64_MAX, INT64_MAX);
  const OutsideLeft left = outside.left(world, source);
  CHECK(world.bound_ps(source, target) == 83'254'223);
  CHECK(left.one_ps == 397'827'023);
  CHECK(left.several_ps == 119'905'067);
}

TEST_CASE("four sums are scattered at once and gathered behind it, where lists of aims are too long") {
  test::SmallQuestion question({2, 4, 2, 2, 2, 4}, test::two_levels(8, 500), {{256, 256, 256, 256}, DType::float32});
  State& src = question.request.src;
  src.shards.assign(4, {});
  for (const SubAxis& s : {SubAxis{0, 1, 2}, SubAxis{1, 1, 4}, SubAxis{3, 1, 2}, SubAxis{4, 1, 2}})
    src.partial.push_back({s, ReduceOp::sum});
  question.request.dst.shards = {{}, {{4, 1, 2}}, {{0, 1, 2}}, {{3, 1, 2}}};
  const Found found = find_cheapest(*question.problem());
  CHECK(found.cost.ps == 32'858'777'957);
  CHECK(found.shortcuts.none());
}

TEST_CASE("of what lies inside of hosts a gather brings some from outside, which takes less of large tensors") {
  test::SmallQuestion question({2, 2, 2, 4}, test::two_levels(8, 500), {{32768, 32768}, DType::float32});
  question.request.src.shards = {{{2, 1, 2}}, {}};
  question.request.dst.shards = {{{1, 1, 2}}, {}};
  std::optional<PlanProblem> problem = question.problem();
  problem->in_rounds = true;
  const Found found = find_cheapest(*problem);
  // Not one exchange inside, 5'814'509'860.
  CHECK(found.cost.ps == 5'476'759'245);
  CHECK(found.least_ps <= found.cost.ps);
  // But one that brings part from outside is better still.
  const Found with_far_share = find_cheapest(*question.problem());
  CHECK(with_far_share.cost.ps == 5'247'578'312);
  REQUIRE(with_far_share.edges.size() == 1);
  CHECK(with_far_share.edges.front().far_64ths > 0);
}
