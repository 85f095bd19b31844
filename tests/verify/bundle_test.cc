// Bundles: figures worked out by hand, right ones raise no alarm, broken ones are caught. The oracle
// follows every element of every tensor.
#include <doctest/doctest.h>

#include <map>

#include "base/seed.h"
#include "cost/topology.h"
#include "verify/bundle.h"
#include "verify/bundle_world.h"

namespace meshplan {
namespace {

using test::BundleWorld;
using test::Random;

constexpr uint64_t bundle_seed = 20261123;

TEST_CASE("random right bundles raise no alarm") {
  const uint64_t used_seed = test::seed_or(bundle_seed);
  int64_t in_rounds = 0;
  int64_t in_pieces = 0;
  for (int64_t round = 0; round < test::rounds_or(1'500); ++round) {
    Random random(used_seed + static_cast<uint64_t>(round));
    BundleWorld world(random, 1 + random.below(4));
    PlannedBundle& bundle = world.plan.bundles.front();
    const std::string problem = test::fill_figures(world.plan, bundle);
    CAPTURE(round);
    REQUIRE_MESSAGE(problem.empty(), problem);
    const auto proven = verify_bundle(world.plan, bundle);
    if (!proven) FAIL_CHECK("seed " << used_seed << ": " << proven.error().message);
    for (const BundleRound& r : bundle.rounds) {
      ++in_rounds;
      for (const RoundPart& part : r.parts) in_pieces += part.pieces > 1 ? 1 : 0;
    }
  }
  MESSAGE(in_rounds << " rounds, " << in_pieces << " parts in pieces");
  CHECK(in_pieces > test::rounds_or(1'500));
}

TEST_CASE("every change that makes a bundle wrong is caught") {
  const uint64_t used_seed = test::seed_or(bundle_seed) + 1'000'000;
  struct Count {
    int64_t caught = 0;
    int64_t right = 0;
  };
  std::map<std::string, Count> counts;
  for (int64_t round = 0; round < test::rounds_or(150); ++round) {
    Random random(used_seed + static_cast<uint64_t>(round));
    BundleWorld world(random, 1 + random.below(3));
    PlannedBundle& bundle = world.plan.bundles.front();
    REQUIRE(test::fill_figures(world.plan, bundle).empty());
    for (const test::BundleMutant& mutant : test::bundle_mutants(world.plan, bundle, random)) {
      const auto proven = verify_bundle(world.plan, mutant.bundle);
      Count& count = counts[mutant.name];
      ++(proven ? count.right : count.caught);
      if (!proven && !random.one_in(8)) continue;
      const bool right = test::is_right(world.plan, mutant.bundle);
      if (proven && !right) FAIL_CHECK("seed " << used_seed << ", round " << round << ": '" << mutant.name << "' is not caught");
      if (!proven && right) {
        FAIL_CHECK("seed " << used_seed << ", round " << round << ": '" << mutant.name << "' is right, but: " << proven.error().message);
      }
      if (!proven && proven.error().message.find("bundle 'sync': ") != 0) FAIL_CHECK(proven.error().message);
    }
  }
  int64_t caught = 0;
  int64_t right = 0;
  for (const auto& entry : counts) {
    const std::string& name = entry.first;
    const Count& count = entry.second;
    INFO(name);
    if (name != "staging limit kept" && name != "parts: turned") CHECK(count.caught > 0);
    MESSAGE(name << ": " << count.caught << " refused, " << count.right << " right");
    caught += count.caught;
    right += count.right;
  }
  MESSAGE(caught << " refused, " << right << " right");
}

}  // namespace
}  // namespace meshplan
