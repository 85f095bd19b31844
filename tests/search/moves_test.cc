// What a search counts for a step is what the step takes by itself.
#include "search/moves.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "../cost/some_protocols.h"
#include "cost/step_cost.h"
#include "search/edge_steps.h"
#include "small_question.h"

using namespace meshplan;

namespace {

struct CutQuestion {
  std::vector<int64_t> sizes;
  int64_t unit_ranks;
  std::vector<int64_t> shape;
};

// Everything that slices lead to from `at`, one step after the other, and itself.
void list_sliced(const PlanProblem& p, const SearchState& at, std::vector<SearchState>& out) {
  if (std::find(out.begin(), out.end(), at) != out.end()) return;
  out.push_back(at);
  std::vector<Edge> edges;
  REQUIRE(collective_moves(p, at, edges));
  for (const Edge& edge : edges) {
    if (edge.op == Op::slice) list_sliced(p, edge.to, out);
  }
}

}  // namespace

// Random world 52812: [4] over a mesh dim of 4 in hosts of 2, cut as {S(0)[1]:2,S(0)[0]:2}. The
// inner half comes first; then the outer one cuts 2 rows where the whole dim would, into 2 and none,
// but they were counted as 1 and 1.
TEST_CASE("every edge costs what its step costs, also where units cut mesh dims") {
  int edges_seen = 0;
  for (const CutQuestion& w : std::vector<CutQuestion>{{{4}, 2, {4, 12}},
                                                       {{4}, 2, {8, 12}},
                                                       {{8}, 2, {8, 96}},
                                                       {{6}, 3, {6, 12}},
                                                       {{2, 4}, 2, {8, 16}},
                                                       {{3, 4}, 2, {12, 24}},
                                                       {{3, 4}, 2, {16, 5003}},
                                                       {{2, 2, 2}, 4, {8, 16}},
                                                       {{8, 8}, 4, {64, 16}}}) {
    for (const bool by_protocols : {false, true}) {
      Topology topology = test::two_levels(w.unit_ranks, 500);
      if (by_protocols) topology = test::with_protocols(topology);
      const test::SmallQuestion question(w.sizes, topology, {w.shape, DType::float32});
      const auto p = question.problem();
      REQUIRE(p);
      const auto check = [&](const SearchState& from, const Edge& edge) {
        PlannedRedistribution alone;
        alone.request = question.request;
        alone.request.src = to_state(*p, from);
        alone.request.dst = to_state(*p, edge.to);
        alone.steps = steps_of_edges(*p, {edge}, "");
        price_redistribution(alone, question.meshes, question.levels);
        CAPTURE(to_text(alone.request.src, w.sizes));
        CAPTURE(to_text(alone.request.dst, w.sizes));
        CAPTURE(std::string(to_text(edge.op)));
        REQUIRE(edge.cost.ps == alone.totals.predicted_ps);
        REQUIRE(edge.cost.wire_bytes == alone.totals.wire_bytes);
        ++edges_seen;
      };
      std::mt19937_64 random(7);
      for (int k = 0; k < 60; ++k) {
        const SearchState from = test::random_state(*p, 0, random);
        std::vector<Edge> edges;
        REQUIRE(collective_moves(*p, from, edges));
        for (const Edge& edge : edges) check(from, edge);
        const SearchState to = test::random_state(*p, 0, random);
        if (from == to) continue;
        check(from, exchange_edge(*p, from, to, ExchangeWay::one_phase));
      }
    }
  }
  CHECK(edges_seen > 3'000);
}

// [2], a of 8 in units of 2 and 4: a:(2)2 cuts it at 1, a:(2)4 into 1 1 0 0, so that what
// {a:(2)2, a:(4)2} has is no slice of what a:(2)2 has.
TEST_CASE("slices lead to what a row of them reaches, and to nothing else") {
  int reached = 0;
  int kept_apart = 0;
  for (const CutQuestion& w : std::vector<CutQuestion>{{{8}, 2, {2, 12}},
                                                       {{8}, 2, {5, 3}},
                                                       {{12}, 3, {16, 5003}},
                                                       {{8, 2}, 2, {3, 10}},
                                                       {{3, 4}, 2, {12, 24}},
                                                       {{2, 2, 2}, 4, {8, 16}}}) {
    Topology topology = test::two_levels(w.unit_ranks, 500);
    topology.levels.back().ranks = 2 * w.unit_ranks;
    topology.levels.push_back({"far", 1'048'576, 12'500, 30'000, 500, 100});
    const test::SmallQuestion question(w.sizes, topology, {w.shape, DType::float32});
    const auto p = question.problem();
    REQUIRE(p);
    std::vector<SearchState> all;
    SearchState whole;
    REQUIRE(all_spreads(*p, whole, p->all, 10'000, all));
    for (const SearchState& from : all) {
      std::vector<SearchState> sliced;
      list_sliced(*p, from, sliced);
      for (const SearchState& to : all) {
        CAPTURE(to_text(to_state(*p, from), w.sizes));
        CAPTURE(to_text(to_state(*p, to), w.sizes));
        const bool is_reached = std::find(sliced.begin(), sliced.end(), to) != sliced.end();
        REQUIRE(slices_lead_to(*p, from, to) == is_reached);
        reached += is_reached ? 1 : 0;
        bool begins = true;
        for (int d = 0; d < p->dims; ++d) begins = begins && common_prefix(from, to, d) == from.length(d);
        kept_apart += begins && !is_reached ? 1 : 0;
      }
    }
  }
  CHECK(reached > 500);
  CHECK(kept_apart > 0);
}
