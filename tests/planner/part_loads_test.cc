// What rounds move by what their parts do (planner/part_loads.h), against all their pairs one by one.
#include "planner/part_loads.h"

#include <doctest/doctest.h>

#include <map>

#include "transfer/elements_of.h"
#include "verify/random_world.h"

namespace meshplan {
namespace {

using test::Random;

Topology hosts_of(int64_t ranks) {
  Topology topology;
  topology.levels = {{"inside", ranks, 400'000, 3'000, 100}, {"across", 1 << 20, 50'000, 10'000, 300}};
  return topology;
}

// By sender, then receiver; most pairs of ranks have something.
std::vector<StepCut> random_cuts(Random& random, int32_t ranks) {
  const int64_t lengths = 1 + random.below(3);
  const bool whole = random.one_in(2);
  std::vector<StepCut> cuts;
  for (int32_t from = 0; from < ranks; ++from) {
    for (int32_t to = 0; to < ranks; ++to) {
      for (int64_t left = from == to || random.one_in(4) ? 0 : 1 + random.below(2); left > 0; --left) {
        const int64_t length = 1 + 5 * random.below(lengths);
        const int64_t lo = whole ? 0 : random.below(length);
        const int64_t hi = whole ? length : lo + 1 + random.below(length - lo);
        cuts.push_back({from, to, length, lo, hi, 1 + random.below(3)});
      }
    }
  }
  return cuts;
}

// Each pair once, summed here.
RoundLoad one_by_one(const std::vector<PartLoads::Part>& parts, RoundCounter& counter) {
  std::map<std::pair<int32_t, int32_t>, int64_t> bytes;
  for (const PartLoads::Part& part : parts) {
    const auto& [kind, way, step, piece, pieces, count] = part.what;
    for (int64_t p = piece; p < piece + count; ++p) {
      for (const PairElements& pair : test::elements_of(part.moved->cuts, p, pieces))
        bytes[{pair.from, pair.to}] += pair.elements * part.moved->element_bytes * part.tensors;
    }
  }
  std::vector<PairElements> pairs;
  for (const auto& [pair, sum] : bytes) pairs.push_back({pair.first, pair.second, sum});
  counter.add(pairs, 1, 1);
  return counter.take();
}

}  // namespace

TEST_CASE("random rounds: bytes and messages by parts that are known are those of all pairs") {
  Random random(20261201);
  int64_t known = 0;
  for (int world = 0; world < 60; ++world) {
    CAPTURE(world);
    const auto ranks = static_cast<int32_t>(5 + random.below(12));
    RankTable table;
    for (int32_t id = 0; id < ranks; ++id) table.global_ids.push_back(id);
    const Topology topology = hosts_of(4);
    RoundCounter counter(table, topology);
    RoundCounter other(table, topology);
    PartLoads loads(counter);
    std::vector<WayStep> steps(static_cast<size_t>(1 + random.below(4)));
    for (WayStep& step : steps) {
      step.cuts = random_cuts(random, ranks);
      step.element_bytes = 1 + random.below(4);
    }
    for (int round = 0; round < 25; ++round) {
      CAPTURE(round);
      std::vector<PartLoads::Part> parts;
      int64_t cuts = 0;
      for (int64_t left = 1 + random.below(5); left > 0; --left) {
        const auto s = static_cast<size_t>(random.below(std::ssize(steps)));
        const int64_t pieces = 1 + random.below(4);
        const int64_t piece = random.below(pieces);
        const int64_t count = 1 + random.below(pieces - piece);
        parts.push_back({{s % 2, s / 2, s, piece, pieces, count}, &steps[s], 1 + random.below(3)});
        cuts += std::ssize(steps[s].cuts);
      }
      const int64_t before = loads.looked_at();
      const RoundLoad load = loads.load_of(parts);
      const RoundLoad expected = one_by_one(parts, other);
      if (loads.looked_at() - before < cuts) ++known;
      for (size_t rank = 0; rank < static_cast<size_t>(ranks); ++rank) {
        CHECK(load.of_rank(rank).received == expected.of_rank(rank).received);
        CHECK(load.of_rank(rank).sent == expected.of_rank(rank).sent);
        CHECK(load.of_rank(rank).messages == expected.of_rank(rank).messages);
      }
      CHECK(load.predicted_ps(topology) == expected.predicted_ps(topology));
    }
  }
  CHECK(known > 200);
}

// 200 ranks of two levels, of which so many loads are kept that they are dropped now and then.
TEST_CASE("rounds of very many different parts are counted as before once what was known is dropped") {
  const int32_t ranks = 200;
  RankTable table;
  for (int32_t id = 0; id < ranks; ++id) table.global_ids.push_back(id);
  const Topology topology = hosts_of(8);
  RoundCounter counter(table, topology);
  PartLoads loads(counter);
  WayStep step;
  for (int32_t from = 0; from < 40; ++from) {
    for (int32_t to = 100; to < 150; ++to) step.cuts.push_back({from, to, 10'000, 0, 10'000, 1});
  }
  const auto load_of = [&](int64_t piece) {
    const PartLoads::Part part{{0, 0, 0, piece, 9'000, 1}, &step, 1};
    return loads.load_of({part, part}).wire_bytes();
  };
  const int64_t first = load_of(0);
  CHECK(first == 2 * 40 * 2);  // the first 1,000 pieces have 2 slices
  const int64_t before = loads.looked_at();
  CHECK(load_of(0) == first);
  CHECK(loads.looked_at() - before < std::ssize(step.cuts));
  for (int64_t piece = 1; piece < 8'000; ++piece) {
    const int64_t bytes = load_of(piece);
    if (bytes != 80 && bytes != 160) FAIL_CHECK(piece << ": " << bytes);
  }
  const int64_t later = loads.looked_at();
  CHECK(load_of(0) == first);
  CHECK(loads.looked_at() - later > std::ssize(step.cuts));
}

}  // namespace meshplan
