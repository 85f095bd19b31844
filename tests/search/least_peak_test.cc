// The least memory that any plan takes at its peak, which an error of a limit names.
#include <doctest/doctest.h>

#include <numeric>

#include "search/moves.h"
#include "search/search.h"
#include "small_question.h"

namespace meshplan {
namespace {

// Whether a plan fits the limit; nullopt where the search ended early.
std::optional<bool> fits(test::SmallQuestion& question, int64_t limit) {
  question.options.max_memory_bytes = limit;
  const auto p = question.problem();
  const Found found = find_cheapest(*p);
  if (found.exists) return true;
  return found.shortcuts.has(Shortcut::work_budget) ? std::nullopt : std::optional(false);
}

void check_least(test::SmallQuestion& question) {
  question.options.groups = GroupPolicy::declared;
  question.options.max_memory_bytes = 1;
  const LeastPeak least = least_peak(*question.problem(), 40'000'000);
  CAPTURE(least.bytes);
  CHECK(least.proven);
  CHECK(fits(question, least.bytes) == std::optional(true));
  CHECK(fits(question, least.bytes - 1) != std::optional(true));
  const std::optional<PlanProblem> p = question.problem();
  int64_t peak = 0;
  SearchState at = p->source;
  for (const Edge& edge : least.edges) {
    peak = std::max(peak, peak_of(*p, at, edge));
    at = edge.to;
  }
  CHECK(at == p->target);
  CHECK(peak == least.bytes);
}

Topology three_inside() {
  Topology topology;
  topology.levels = {{"in", 3, 100'000, 1'000, 0, 100}, {"out", 1'048'576, 50'000, 2'000, 0, 100}};
  return topology;
}

}  // namespace

TEST_CASE("the least peak is one that a plan has, and none has less: sums between gathers, and rows that few ranks hold") {
  // By one exchange it is 2,768,896 B.
  test::SmallQuestion sums({2, 7, 2}, test::one_level(10'000, 0), {{64, 64, 64}, DType::float32});
  sums.request.src.shards = {{}, {}, {{1, 1, 7}}};
  sums.request.src.partial = {{{0, 1, 2}, ReduceOp::min}};
  sums.request.dst.shards = {{{0, 1, 2}}, {}, {}};
  sums.request.dst.partial = {{{2, 1, 2}, ReduceOp::min}};
  check_least(sums);
  CHECK(least_peak(*sums.problem(), 40'000'000).bytes == 1'048'576);
  test::SmallQuestion rows({3, 3, 3}, test::one_level(10'000, 0), {{1, 9, 1}, DType::float32});
  rows.request.src.shards = {{{1, 1, 3}}, {{0, 1, 3}, {2, 1, 3}}, {}};
  rows.request.dst.shards = {{{1, 1, 3}}, {{0, 1, 3}}, {{2, 1, 3}}};
  check_least(rows);
  CHECK(least_peak(*rows.problem(), 40'000'000).bytes == 24);
}

TEST_CASE("the least peak is also that of exchanges in two phases") {
  // Units of three cut the ranks 2 to 5 in 1 and 3: one element to all takes 24 B in one phase.
  test::SmallQuestion one({4}, three_inside(), {{1}, DType::int32}, {2, 3, 4, 5});
  one.request.dst.shards = {{}};
  check_least(one);
  CHECK(least_peak(*one.problem(), 40'000'000).bytes == 20);
}

TEST_CASE("the least peak of random questions is one that a plan has, and none has less") {
  std::mt19937_64 random(20'261'128);
  for (int round = 0; round < 60; ++round) {
    const std::vector<int64_t> sizes = round % 3 == 0 ? std::vector<int64_t>{2, 3} : std::vector<int64_t>{2, 2, 3};
    test::SmallQuestion question(sizes, test::two_levels(2, round % 2 * 500),
                                 {{7 + static_cast<int64_t>(random() % 90), 1 + static_cast<int64_t>(random() % 50)}, DType::float32});
    for (State* state : {&question.request.src, &question.request.dst}) {
      *state = {};
      state->shards.resize(2);
      for (size_t m = 0; m < sizes.size(); ++m) {
        const size_t d = random() % 4;
        if (d < 2) state->shards[d].push_back({static_cast<int32_t>(m), 1, sizes[m]});
        if (d == 3 && state == &question.request.src) state->partial.push_back({{static_cast<int32_t>(m), 1, sizes[m]}, ReduceOp::sum});
      }
    }
    if (question.request.src == question.request.dst) continue;
    CAPTURE(round);
    check_least(question);
  }
}

TEST_CASE("the least peak of random questions of few elements on units that cut the mesh unevenly") {
  std::mt19937_64 random(20'261'129);
  for (int round = 0; round < 200; ++round) {
    const std::vector<int64_t> sizes = random() % 2 == 0 ? std::vector<int64_t>{4} : std::vector<int64_t>{2, 4};
    const int64_t ranks = sizes.size() == 1 ? 4 : 8;
    std::vector<int64_t> ids(static_cast<size_t>(ranks));
    std::iota(ids.begin(), ids.end(), static_cast<int64_t>(random() % 3));
    test::SmallQuestion question(sizes, three_inside(),
                                 {{1 + static_cast<int64_t>(random() % 9), 1 + static_cast<int64_t>(random() % 5)}, DType::int32}, ids);
    for (State* state : {&question.request.src, &question.request.dst}) {
      *state = {};
      state->shards.resize(2);
      for (size_t m = 0; m < sizes.size(); ++m) {
        const size_t d = random() % 3;
        if (d < 2) state->shards[d].push_back({static_cast<int32_t>(m), 1, sizes[m]});
      }
    }
    if (question.request.src == question.request.dst) continue;
    CAPTURE(round);
    check_least(question);
  }
}

TEST_CASE("a least peak that the work did not suffice to prove says so") {
  test::SmallQuestion question({2, 7, 2}, test::one_level(10'000, 0), {{64, 64, 64}, DType::float32});
  const LeastPeak least = least_peak(*question.problem(), 1);
  CHECK(!least.proven);
  CHECK(least.bytes >= least_peak(*question.problem(), 40'000'000).bytes);
  CHECK(fits(question, least.bytes) == std::optional(true));
}

}  // namespace meshplan
