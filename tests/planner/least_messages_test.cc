// least_messages of bundle_rounds.h against what pieces really send.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "planner/bundle_rounds.h"
#include "planner/small_bundle.h"
#include "transfer/elements_of.h"

namespace meshplan {
namespace {

using test::elements_of;

// The messages of the rank that has most in any piece.
int64_t most_in_pieces(const std::vector<StepCut>& cuts, int64_t pieces) {
  int64_t most = 0;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    std::map<int32_t, int64_t> messages;
    for (const PairElements& pair : elements_of(cuts, piece, pieces)) {
      for (const int32_t rank : {pair.from, pair.to}) most = std::max(most, ++messages[rank]);
    }
  }
  return most;
}

}  // namespace

TEST_CASE("no number of pieces has fewer messages in all rounds than are told before") {
  std::mt19937 random(7);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    Way way;
    WayStep& step = way.steps.emplace_back();
    for (int32_t from = 0; from < 5; ++from) {
      for (int32_t to = 0; to < 5; ++to) {
        for (int64_t cuts = from == to ? 0 : below(3); cuts > 0; --cuts) {
          const int64_t length = 1 + below(4);
          const int64_t lo = below(length);
          step.cuts.push_back({from, to, length, lo, lo + 1 + below(length - lo), 1 + below(3)});
        }
      }
    }
    const int64_t least = least_messages(way);
    for (const int64_t pieces : {1, 2, 3, 4, 5, 7, 16, 33}) CHECK(most_in_pieces(step.cuts, pieces) >= least);
  }
}

TEST_CASE("a choice whose messages no number of buckets makes few is given up at once") {
  // All 512 ranks send to all in any piece: 1,022 messages of each. To count that bucket by bucket, up to 4,096 of them, took 20 s.
  const MeshTable table = one_root({{"a", 512}});
  BundleRequest bundle;
  bundle.id = "all";
  bundle.members = {0};
  bundle.max_messages = 1000;
  const PlanOutcome outcome =
      plan_requests(table, uniform_topology(), {request_of(table, "w", {1024, 1024}, "S(0)", "S(1)", 3)}, {}, "", {bundle});
  REQUIRE(outcome.failures.size() == 1);
  CHECK(
      outcome.failures[0].error.message ==
      "bundle 'all' has no rounds within max_messages 1,000 of those that were tried: some have 1,022 messages of one rank; raise it to that");
}

}  // namespace meshplan
