// How states of a mesh may cut an extent, against states of parts of its dims in any order.
#include "cost/fresh_units.h"

#include <doctest/doctest.h>

#include "tensor/box.h"
#include "verify/random_world.h"

namespace meshplan {
namespace {

using test::Random;

// The mesh dims in parts, some of them in no list, in any order.
std::vector<SubAxis> random_parts(Random& random, const std::vector<int64_t>& sizes) {
  std::vector<SubAxis> parts;
  for (size_t m = 0; m < sizes.size(); ++m) {
    int64_t before = 1;
    while (before < sizes[m]) {
      int64_t size = 2 + random.below(sizes[m] / before - 1);
      while (sizes[m] / before % size != 0) ++size;
      if (!random.one_in(6)) parts.push_back({static_cast<int32_t>(m), before, size});
      before *= size;
    }
  }
  random.shuffle(parts);
  return parts;
}

}  // namespace

TEST_CASE("what is always cut evenly, or never into empty shards, is so by any order of any parts") {
  static const std::vector<std::vector<int64_t>> meshes{{1},    {2},    {3}, {4},    {8},       {12}, {2, 4},
                                                        {6, 2}, {4, 4}, {9}, {8, 8}, {2, 3, 4}, {16}};
  Random random(20261128);
  int64_t even = 0;
  int64_t filled = 0;
  for (const auto& sizes : meshes) {
    for (int64_t extent = 1; extent < 200; ++extent) {
      const bool cut_evenly = always_cut_evenly(extent, sizes);
      const bool is_filled = always_filled(extent, sizes);
      even += cut_evenly ? 1 : 0;
      filled += is_filled ? 1 : 0;
      for (int k = 0; k < 40; ++k) {
        int64_t least = extent;
        int64_t most = 0;
        for (const Interval& shard : shard_intervals(random_parts(random, sizes), extent, sizes)) {
          least = std::min(least, width(shard));
          most = std::max(most, width(shard));
        }
        CAPTURE(extent);
        CAPTURE(sizes.size());
        CAPTURE(sizes.front());
        if (cut_evenly) REQUIRE(least == most);
        if (is_filled) REQUIRE(least > 0);
      }
    }
  }
  CHECK(even > 300);
  CHECK(filled > even);
  CHECK(!always_filled(0, std::vector<int64_t>{2}));
}

TEST_CASE("8 over x of 8 leave shards empty where parts are out of order, 32 do not") {
  const std::vector<int64_t> sizes{8};
  const std::vector<SubAxis> turned{{0, 2, 4}, {0, 1, 2}};
  CHECK(width(shard_intervals(turned, 8, sizes).at(0)) == 2);
  CHECK(width(shard_intervals(turned, 8, sizes).at(1)) == 0);
  CHECK_FALSE(always_cut_evenly(8, sizes));
  CHECK_FALSE(always_filled(8, sizes));
  CHECK(always_cut_evenly(32, sizes));
  CHECK(always_filled(56, sizes));
}

}  // namespace meshplan
