#include "search/scatter_first.h"

#include <numeric>
#include <random>

#include "doctest/doctest.h"
#include "search/moves.h"
#include "small_question.h"

using namespace meshplan;

namespace {

bool begins_with(const PlanProblem& p, const SearchState& longer, const SearchState& shorter) {
  for (int d = 0; d < p.dims; ++d) {
    if (common_prefix(longer, shorter, d) < shorter.length(d)) return false;
  }
  return true;
}

int64_t scatter_ps(const PlanProblem& p, const ScatterWay& way) {
  if (way.reduced == 0) return 0;
  Edge edge;
  edge.op = Op::reduce_scatter;
  edge.group = edge.reduced = way.reduced;
  edge.to = way.at;
  price_collective(p, before_scatter(p, way.at, way.reduced), edge);
  return edge.cost.ps;
}

int64_t exchange_ps(const PlanProblem& p, const SearchState& from, const SearchState& to) {
  int64_t ps = price_between(p, from, to, ExchangeWay::one_phase).predicted_ps;
  if (from.pending == to.pending) ps = std::min(ps, price_between(p, from, to, ExchangeWay::two_phases).predicted_ps);
  return ps;
}

void require_ascending(const std::vector<ScatterWay>& ways, int64_t below_ps) {
  REQUIRE(std::is_sorted(ways.begin(), ways.end(), [](const ScatterWay& a, const ScatterWay& b) { return a.least_ps < b.least_ps; }));
  if (!ways.empty()) REQUIRE(ways.back().least_ps < below_ps);
}

void require_best_of(const std::vector<ScatterWay>& few, const std::vector<ScatterWay>& all) {
  REQUIRE(few.size() == std::min<size_t>(all.size(), 5));
  for (size_t i = 0; i < few.size(); ++i) {
    REQUIRE(few[i].least_ps == all[i].least_ps);
    REQUIRE(few[i].at == all[i].at);
  }
}

}  // namespace

TEST_CASE("plans that scatter first take no less than is said of them, and lists of them leave none out") {
  struct World {
    std::vector<int64_t> sizes;
    size_t rank;
    int64_t inside;
  };
  size_t scattered = 0;
  size_t arranged = 0;
  size_t gathered = 0;
  for (const World& w :
       {World{{2, 2, 2}, 2, 4}, World{{2, 2, 2, 2}, 2, 4}, World{{2, 4, 2}, 2, 4}, World{{3, 3}, 2, 3}, World{{2, 2, 2}, 3, 2}}) {
    std::mt19937_64 random(11);
    const int64_t extent = std::accumulate(w.sizes.begin(), w.sizes.end(), int64_t{64}, std::multiplies<>());
    const test::SmallQuestion question(w.sizes, test::two_levels(w.inside, 500), {std::vector<int64_t>(w.rank, extent), DType::float32});
    auto p = question.problem();
    REQUIRE(p);
    PackedWorld world;
    world.reset(*p);
    REQUIRE(world.usable());
    for (int k = 0; k < 40; ++k) {
      p->source = test::random_state(*p, static_cast<uint16_t>(random() & p->all), random);
      p->source_pending = p->source.pending;
      p->target = test::random_state(*p, 0, random);
      CAPTURE(to_text(to_state(*p, p->source), w.sizes));
      CAPTURE(to_text(to_state(*p, p->target), w.sizes));
      std::vector<ScatterWay> ways;
      std::vector<ScatterWay> few;
      list_scattered(*p, world, INT64_MAX, SIZE_MAX, INT64_MAX, ways);
      list_scattered(*p, world, INT64_MAX, 5, INT64_MAX, few);
      require_ascending(ways, INT64_MAX);
      require_best_of(few, ways);
      // Every state that slices and one scatter lead to, once.
      std::vector<SearchState> every;
      for (uint16_t q = 0; q <= p->all; ++q) {
        if ((q & ~p->source.pending) != 0) continue;
        SearchState like = p->source;
        like.pending = static_cast<uint16_t>(like.pending & ~q);
        std::vector<SearchState> spread;
        REQUIRE(all_spreads(*p, like, static_cast<uint16_t>(p->all & ~like.pending), SIZE_MAX, spread));
        for (const SearchState& s : spread) {
          if (begins_with(*p, s, p->source) && (q & ~sharding(s, p->dims)) == 0 && !(s == p->source)) every.push_back(s);
        }
      }
      REQUIRE(ways.size() == every.size());
      for (const ScatterWay& way : ways) {
        REQUIRE(std::find(every.begin(), every.end(), way.at) != every.end());
        REQUIRE(way.reduced == (p->source.pending & ~way.at.pending));
        REQUIRE(way.least_ps <= scatter_ps(*p, way) + exchange_ps(*p, way.at, p->target));
      }
      scattered += ways.size();
      const int64_t below_ps = ways.empty() ? INT64_MAX : ways[ways.size() / 2].least_ps;
      list_scattered(*p, world, below_ps, SIZE_MAX, INT64_MAX, ways);
      require_ascending(ways, below_ps);

      list_gathered(*p, world, INT64_MAX, SIZE_MAX, INT64_MAX, ways);
      list_gathered(*p, world, INT64_MAX, 5, INT64_MAX, few);
      require_ascending(ways, INT64_MAX);
      require_best_of(few, ways);
      const uint16_t sums = p->source.pending;
      size_t with_all = 0;
      size_t by_inside = 0;
      size_t by_all = 0;
      for (const ScatterWay& way : ways) {
        REQUIRE(way.at.pending == 0);
        REQUIRE(begins_with(*p, way.at, p->target));
        const int64_t gather = exchange_ps(*p, way.at, p->target);
        if (way.arranged) {
          ++arranged;
          ++with_all;
          REQUIRE(way.reduced == sums);
          const SearchState at = before_scatter(*p, way.at, way.reduced);
          REQUIRE(at.pending == sums);
          const int64_t exchange = begins_with(*p, at, p->source) ? 0 : exchange_ps(*p, p->source, at);
          REQUIRE(way.least_ps <= exchange + scatter_ps(*p, way) + gather);
          continue;
        }
        by_all += way.reduced == sums;
        by_inside += way.reduced != sums;
        REQUIRE((way.reduced == sums || way.reduced == sums_inside_units(*p, sums)));
        const auto at = scattered_as(*p, way.at, way.reduced);
        REQUIRE(at);
        REQUIRE(begins_with(*p, *at, p->source));
        REQUIRE(at->pending == (sums & ~way.reduced));
        REQUIRE(way.least_ps <= scatter_ps(*p, {0, *at, way.reduced}) + exchange_ps(*p, *at, way.at) + gather);
      }
      gathered += by_all + by_inside;
      // All states with more digits than the target that have the sums in their lists.
      std::vector<SearchState> finer;
      REQUIRE(all_spreads(*p, p->target, p->all, SIZE_MAX, finer));
      const auto having = [&](uint16_t of) {
        return static_cast<size_t>(std::count_if(finer.begin(), finer.end(), [&](const SearchState& s) {
          return begins_with(*p, s, p->target) && (of & ~sharding(s, p->dims)) == 0;
        }));
      };
      const uint16_t inside = sums_inside_units(*p, sums);
      REQUIRE(with_all == (sums == 0 ? 0 : having(sums)));
      REQUIRE(by_all == with_all);
      REQUIRE(by_inside == (inside == 0 || inside == sums ? 0 : having(inside)));
    }
  }
  CHECK(scattered > 5'000);
  CHECK(arranged > 800);
  CHECK(gathered > 1'000);
}

TEST_CASE("lists of plans that scatter first end where their work does") {
  test::SmallQuestion question({2, 2, 2, 2, 2, 2}, test::two_levels(8, 500), {{256, 256, 256}, DType::float32});
  auto p = question.problem();
  REQUIRE(p);
  PackedWorld world;
  world.reset(*p);
  p->source = SearchState{};
  p->source.pending = 0b000111;
  std::vector<ScatterWay> ways;
  for (int64_t most_work : {int64_t{0}, int64_t{1'000}, int64_t{50'000}}) {
    for (auto list : {list_scattered, list_gathered}) {
      const int64_t before = p->work;
      list(*p, world, INT64_MAX, SIZE_MAX, most_work, ways);
      CHECK(p->work - before <= most_work + 100);
    }
  }
}

namespace {

Found cheapest(const std::vector<int64_t>& sizes, const std::vector<int64_t>& shape, const State& src,
               const std::vector<std::vector<SubAxis>>& dst) {
  test::SmallQuestion question(sizes, test::two_levels(8, 500), {shape, DType::float32});
  question.request.src = src;
  question.request.dst.shards = dst;
  SearchOptions options;
  options.work_budget = 140'000'000;  // what the gaps below take
  return find_cheapest(*question.problem(), options);
}

}  // namespace

TEST_CASE("shards are brought to their places before sums are scattered, into more than one list of the target") {
  State src;
  src.shards = {{{3, 1, 2}}, {}, {{4, 1, 2}}};
  src.partial = {{{2, 1, 2}, ReduceOp::sum}, {{5, 1, 2}, ReduceOp::sum}};
  const Found found = cheapest({2, 2, 2, 2, 2, 2}, {64, 64, 4096}, src, {{{2, 1, 2}}, {}, {}});
  CHECK(found.cost.ps == 152'653'387);
  CHECK(found.cost.ps - found.least_ps < found.cost.ps / 100);
}

TEST_CASE("slices into several lists come before one exchange") {
  State src;
  src.shards = {{}, {{4, 1, 2}, {5, 1, 4}}, {{3, 1, 2}}, {}};
  const Found found =
      cheapest({2, 4, 2, 2, 2, 4}, {256, 256, 256, 256}, src, {{}, {{1, 1, 4}, {3, 1, 2}, {2, 1, 2}}, {{0, 1, 2}, {4, 1, 2}}, {}});
  CHECK(found.cost.ps == 1'797'442'720);
}

TEST_CASE("three sums are scattered into several lists before one exchange in two phases") {
  State src;
  src.shards = {{{3, 1, 2}}, {}, {{5, 1, 4}}, {}};
  src.partial = {{{1, 1, 4}, ReduceOp::sum}, {{2, 1, 2}, ReduceOp::sum}, {{4, 1, 2}, ReduceOp::sum}};
  const Found found = cheapest({2, 4, 2, 2, 2, 4}, {256, 256, 256, 256}, src, {{{0, 1, 2}, {3, 1, 2}}, {{1, 1, 4}}, {}, {}});
  CHECK(found.cost.ps == 13'974'198'235);
  CHECK(found.edges.back().phases == 2);
}

TEST_CASE("sums are scattered into the shards of a state with more digits than the target, in several lists") {
  State src;
  src.shards = {{{0, 1, 2}}, {{3, 1, 2}}, {{1, 1, 2}}};
  src.partial = {{{4, 1, 2}, ReduceOp::sum}, {{5, 1, 2}, ReduceOp::sum}};
  const Found all = cheapest({2, 2, 2, 2, 2, 2}, {64, 64, 4096}, src, {{{2, 1, 2}}, {{1, 1, 2}}, {}});
  CHECK(all.cost.ps == 131'979'506);
  CHECK(all.cost.ps - all.least_ps < all.cost.ps / 50);
  src.shards = {{}, {{2, 1, 2}}, {{5, 1, 2}, {4, 1, 2}}};
  src.partial = {{{0, 1, 2}, ReduceOp::sum}, {{1, 1, 2}, ReduceOp::sum}, {{3, 1, 2}, ReduceOp::sum}};
  const Found inside = cheapest({2, 2, 2, 2, 2, 2}, {64, 64, 4096}, src, {{{1, 1, 2}}, {}, {{2, 1, 2}}});
  CHECK(inside.cost.ps == 206'218'562);
}
