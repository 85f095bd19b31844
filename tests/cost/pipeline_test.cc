// Two phases in chunks: the law of the best number of chunks, against trying all of them.
#include "cost/pipeline.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/int_math.h"
#include "plan/plan.h"
#include "verify/random_world.h"

namespace meshplan {
namespace {

using test::Random;

// Round by round, in units of 1/chunks ps.
int128 round_by_round(const PhaseTime& first, const PhaseTime& second, int64_t chunks) {
  const int128 fetch = int128{first.latency_ps} * chunks + first.transfer_ps;
  const int128 share = int128{second.latency_ps} * chunks + second.transfer_ps;
  int128 all = 0;
  for (int64_t round = 0; round <= chunks; ++round) {
    const int128 a = round < chunks ? fetch : 0;
    const int128 b = round > 0 ? share : 0;
    all += std::max(a, b);
  }
  return all;
}

PhaseTime random_phase(Random& random) {
  const auto below = [&] { return random.below(int64_t{1} << (1 + random.below(40))); };
  return {random.one_in(6) ? 0 : below(), random.one_in(6) ? 0 : below()};
}

TEST_CASE("one chunk is one phase after the other") {
  CHECK(pipelined_ps({25'000, 700}, {10'000, 300}, 1) == 36'000);
  CHECK(best_chunks({25'000, 700}, {10'000, 300}) == 1);
}

TEST_CASE("the faster phase is hidden but for a chunk's share") {
  // 100 chunks: 100 x (10 + 20) of the first, and one chunk of the second, 5 + 18.
  CHECK(pipelined_ps({10, 2'000}, {5, 1'800}, 100) == 3'000 + 23);
}

TEST_CASE("a time is that of its rounds, and the best number of chunks is the best of all") {
  Random random(4711);
  int64_t several = 0;
  for (int round = 0; round < 300; ++round) {
    const PhaseTime first = random_phase(random);
    const PhaseTime second = random_phase(random);
    int64_t best = 1;
    for (int64_t k = 1; k <= most_chunks; ++k) {
      const int128 all = round_by_round(first, second, k);
      REQUIRE(pipelined_ps(first, second, k) == saturated((all + k - 1) / k));
      if (all * best < round_by_round(first, second, best) * k) best = k;
    }
    REQUIRE(best_chunks(first, second) == best);
    several += best > 1;
  }
  CHECK(several > 50);
}

TEST_CASE("what chunks take, each rounded up, is at least the whole rounded up once") {
  Random random(99);
  CHECK(rounds_ps(30, 23, 100) == 30 + 99 * 30 + 23);
  for (int round = 0; round < 2'000; ++round) {
    const PhaseTime first = random_phase(random);
    const PhaseTime second = random_phase(random);
    const int64_t k = 1 + random.below(40);
    const int64_t a = first.latency_ps + ceil_div(first.transfer_ps, k);
    const int64_t b = second.latency_ps + ceil_div(second.transfer_ps, k);
    REQUIRE(rounds_ps(a, b, k) >= pipelined_ps(first, second, k));
    REQUIRE(rounds_ps(a, b, k) <= pipelined_ps(first, second, k) + k + 1);
  }
}

TEST_CASE("more traffic or latency never takes less time") {
  Random random(815);
  const auto best = [](const PhaseTime& a, const PhaseTime& b) { return pipelined_ps(a, b, best_chunks(a, b)); };
  for (int round = 0; round < 20'000; ++round) {
    PhaseTime first = random_phase(random);
    PhaseTime second = random_phase(random);
    const int64_t before = best(first, second);
    int64_t* const terms[] = {&first.latency_ps, &first.transfer_ps, &second.latency_ps, &second.transfer_ps};
    *terms[random.below(4)] += 1 + random.below(1'000);
    REQUIRE(best(first, second) >= before);
  }
}

TEST_CASE("times beyond what an integer holds saturate") {
  const PhaseTime longest{INT64_MAX, INT64_MAX};
  CHECK(pipelined_ps(longest, longest, most_chunks) == INT64_MAX);
  CHECK(best_chunks(longest, longest) >= 1);
}

}  // namespace
}  // namespace meshplan
