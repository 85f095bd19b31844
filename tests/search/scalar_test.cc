// A scalar has no dim that anything could shard.
#include "doctest/doctest.h"
#include "search/search.h"
#include "small_question.h"

using namespace meshplan;

TEST_CASE("a scalar summed over two of four mesh dims: no state on the way shards it") {
  test::SmallQuestion question({2, 2, 2, 2}, test::one_level(0, 0), {{1}, DType::float64});
  question.request.tensor.shape.clear();
  question.request.src.shards.clear();
  question.request.dst.shards.clear();
  question.request.src.partial = {{{0, 1, 2}, ReduceOp::avg}, {{2, 1, 2}, ReduceOp::avg}};
  question.options.max_memory_bytes = -1;
  for (const GroupPolicy groups : {GroupPolicy::any, GroupPolicy::declared}) {
    question.options.groups = groups;
    const auto p = question.problem();
    REQUIRE(p);
    const Found found = find_cheapest(*p);
    REQUIRE(found.exists);
    for (const Edge& edge : found.edges) {
      CHECK(sharding(edge.to, p->dims) == 0);
      CHECK(to_state(*p, edge.to).shards.empty());
    }
  }
}
