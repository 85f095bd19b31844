// How states of a mesh may cut an extent, against states of parts of its dims in any order.
#include "cost/fresh_units.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "cost/rank_boxes.h"
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

TEST_CASE("what is always cut evenly, never into empty shards or wider ones, is so by any order of any parts") {
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
        const std::vector<Interval> cut = shard_intervals(random_parts(random, sizes), extent, sizes);
        const auto shards = static_cast<int64_t>(cut.size());
        for (const Interval& shard : cut) {
          least = std::min(least, width(shard));
          most = std::max(most, width(shard));
        }
        CAPTURE(extent);
        CAPTURE(sizes.size());
        CAPTURE(sizes.front());
        REQUIRE(most <= widest_shard(extent, shards, sizes));
        if (cut_evenly) REQUIRE(least == most);
        if (is_filled) REQUIRE(least > 0);
      }
    }
  }
  CHECK(even > 300);
  CHECK(filled > even);
  CHECK(!always_filled(0, std::vector<int64_t>{2}));
}

TEST_CASE("some ranks hold together at least what is said of them, in states of any parts in any order") {
  static const std::vector<std::vector<int64_t>> meshes{{4, 4}, {8, 8}, {2, 3, 4}, {16}, {12, 2}, {9, 3}};
  Random random(20261129);
  int64_t told = 0;
  int64_t unevenly = 0;
  for (int round = 0; round < 20'000; ++round) {
    const auto& sizes = random.pick(meshes);
    std::vector<int64_t> shape;
    for (int64_t d = 1 + random.below(2); d > 0; --d) shape.push_back(1 + random.below(random.one_in(2) ? 40 : 600));
    State state;
    state.shards.resize(shape.size());
    for (const SubAxis& part : random_parts(random, sizes)) {
      const auto d = static_cast<size_t>(random.below(static_cast<int64_t>(shape.size()) + 1));
      if (d < shape.size()) state.shards[d].push_back(part);
    }
    const BoxGrid boxes(state, shape, sizes);
    std::vector<int32_t> held = boxes.of_ranks();
    random.shuffle(held);
    const auto ranks = static_cast<size_t>(1 + random.below(std::ssize(held)));
    held.resize(ranks);
    const int64_t least = least_held(shape, std::ssize(held), sizes);
    std::sort(held.begin(), held.end());
    held.erase(std::unique(held.begin(), held.end()), held.end());
    int64_t elements = 0;
    for (const int32_t box : held) elements += boxes.volume(box);
    CAPTURE(to_text(state, sizes));
    CAPTURE(shape.front());
    CAPTURE(ranks);
    REQUIRE(elements >= least);
    told += least > 0 ? 1 : 0;
    unevenly += least > 0 && !always_cut_evenly(shape.front(), sizes) && ranks < boxes.of_ranks().size() ? 1 : 0;
  }
  CHECK(told > 3'000);
  CHECK(unevenly > 1'000);
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
