// What weights prove, against all times of waves of a small world in steps.
#include "cost/wave_sums.h"

#include <doctest/doctest.h>

#include <random>

namespace meshplan {
namespace {

constexpr int64_t seconds = 1'000'000;  // bytes at 1 MB/s, as picoseconds

bool brings(const std::vector<WaveSum>& sums, const std::vector<int64_t>& times) {
  for (const WaveSum& sum : sums) {
    int64_t bytes = 0;
    for (size_t w = 0; w < times.size(); ++w) bytes += sum.mb_per_s[w] * times[w];
    if (bytes < sum.bytes) return false;
  }
  return true;
}

// The least sum of whole seconds, each `most` at most, that brings all of it.
int64_t least_whole(const std::vector<WaveSum>& sums, size_t waves, int64_t most) {
  int64_t least = INT64_MAX;
  std::vector<int64_t> times(waves, 0);
  for (;;) {
    int64_t sum = 0;
    for (const int64_t time : times) sum += time;
    if (sum < least && brings(sums, times)) least = sum;
    size_t w = 0;
    while (w < waves && times[w] == most) times[w++] = 0;
    if (w == waves) return least;
    ++times[w];
  }
}

}  // namespace

TEST_CASE("two waves of two kinds: the header's example") {
  const std::vector<WaveSum> sums{{12, {1, 4}}, {2, {0, 1}}};
  CHECK(least_sum_ps(sums, 2) <= 3 * seconds);
  CHECK(least_sum_ps(sums, 2) > 2.99 * seconds);
}

TEST_CASE("what nothing can bring says nothing, and nothing to bring takes no time") {
  CHECK(least_sum_ps({}, 2) == 0);
  CHECK(least_sum_ps({{0, {1, 1}}}, 2) == 0);
  CHECK(least_sum_ps({{5, {0, 0}}}, 2) == 0);
  CHECK(least_sum_ps({{5, {0, 0}}, {6, {3, 2}}}, 2) >= 2 * seconds - 1);
}

TEST_CASE("no times of waves beat what is proven, and some come close") {
  std::mt19937_64 random(7);
  double closest = 10;
  for (int world = 0; world < 400; ++world) {
    const size_t waves = 1 + random() % 3;
    std::vector<WaveSum> sums;
    for (size_t k = 1 + random() % 4; k > 0; --k) {
      WaveSum sum{static_cast<int64_t>(1 + random() % 60), {}};
      for (size_t w = 0; w < waves; ++w) sum.mb_per_s.push_back(static_cast<int64_t>(random() % 8));
      sums.push_back(sum);
    }
    const int64_t least = least_whole(sums, waves, 24);
    if (least == INT64_MAX) continue;
    const int64_t proven = least_sum_ps(sums, waves);
    CHECK_MESSAGE(proven <= least * seconds, "world " << world);
    // Whole seconds are at most one for each wave more than the best.
    CHECK_MESSAGE(proven > (least - static_cast<int64_t>(waves)) * seconds - 10, "world " << world);
    closest = std::min(closest, static_cast<double>(least) * seconds / static_cast<double>(proven));
  }
  CHECK(closest < 1.001);
}

TEST_CASE("amounts and rates of real worlds lose nothing that counts") {
  // 128 MiB by 8 NICs of 45 GB/s, and to 1,024 ranks by all of theirs.
  const int64_t bytes = int64_t{1} << 27;
  const std::vector<WaveSum> sums{{bytes, {360'000, 360'000}}, {bytes * 1024, {46'080'000, 46'080'000}}};
  const double exact = static_cast<double>(bytes) * 1024 / 46'080'000 * 1e6;
  CHECK(static_cast<double>(least_sum_ps(sums, 2)) > exact * 0.99999);
  CHECK(static_cast<double>(least_sum_ps(sums, 2)) <= exact);
  const std::vector<WaveSum> huge{{int64_t{1} << 61, {1'000, 1}}, {1, {1, 1}}, {int64_t{1} << 61, {int64_t{1} << 50, 1}}};
  CHECK(least_sum_ps(huge, 2) > 0);
}

}  // namespace meshplan
