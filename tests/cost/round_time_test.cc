// Exchanges beside collectives in one wave: what they share of a level comes behind, all else at the
// same time.
#include "cost/round_time.h"

#include <doctest/doctest.h>

namespace meshplan {
namespace {

// Hosts of 2 ranks; inside 1 GB/s, across 1 GB/s; no latencies.
Topology hosts_of_two() {
  Topology topology;
  topology.levels = {{"inside", 2, 1000, 0, 0}, {"across", 4, 1000, 0, 0}};
  return topology;
}

}  // namespace

TEST_CASE("exchanges run beside collectives that use none of their levels") {
  RankTable ranks;
  ranks.global_ids = {0, 1, 2, 3};
  const Topology topology = hosts_of_two();
  RoundCounter counter(ranks, topology);
  counter.add({{0, 1, 3000}}, 1, 1);  // inside: 3 us
  const RoundLoad inside = counter.take();
  const auto beside = [&](LevelSet levels, const std::vector<int32_t>& on) {
    WaveCollectives collectives;
    collectives.add(5'000'000, on, levels, 4);
    return wave_ps(topology, inside, collectives);
  };
  // Groups 0 2 and 1 3 meet across alone, 0 1 inside, 0 1 2 3 on both.
  CHECK(beside(0b10, {0, 1, 2, 3}) == 5'000'000);
  CHECK(beside(0b01, {0, 1, 2, 3}) == 8'000'000);
  CHECK(beside(0b11, {0, 1, 2, 3}) == 8'000'000);
  // Ranks that do not gather exchange meanwhile.
  CHECK(beside(0b11, {2, 3}) == 5'000'000);
}

TEST_CASE("a round has one message for each pair of ranks, however often and in whatever order it was added") {
  for (const int32_t ranks : {12, 5000}) {
    CAPTURE(ranks);
    RankTable table;
    for (int32_t id = 0; id < ranks; ++id) table.global_ids.push_back(id);
    Topology topology = hosts_of_two();
    topology.levels.back().ranks = 8192;
    RoundCounter counter(table, topology);
    const auto last = ranks - 1;
    counter.add({{0, 1, 10}, {last, 0, 4}, {0, last, 5}}, 2, 3);
    counter.add({{0, last, 1}, {0, 1, 1}, {2, last, 7}, {0, 1, 2}}, 1, 1);
    counter.add_once(ReceivedAlike{{{2, 100}}, {1}}, 1, 2);
    const RoundLoad load = counter.take();
    CHECK(load.of_rank(0).sent == 60 + 30 + 1 + 1 + 2);
    CHECK(load.of_rank(0).received == 24);
    CHECK(load.of_rank(0).messages == 3);
    CHECK(load.of_rank(1).received == 63 + 200);
    CHECK(load.of_rank(1).messages == 2);
    CHECK(load.of_rank(2).sent == 207);
    CHECK(load.of_rank(static_cast<size_t>(last)).received == 38);
    CHECK(load.of_rank(static_cast<size_t>(last)).messages == 3);
    CHECK(load.of_rank(3).messages == 0);
    // Nothing is left for the next round.
    counter.add({{0, 1, 10}}, 1, 1);
    const RoundLoad next = counter.take();
    CHECK(next.wire_bytes() == 10);
    CHECK(next.messages() == 1);
  }
}

TEST_CASE("pieces of steps and listed pairs have one message together, in whatever order they are added") {
  RankTable ranks;
  ranks.global_ids = {0, 1, 2, 3};
  RoundCounter counter(ranks, hosts_of_two());
  // Of 7 slices piece 1 of 3 has [3:5], both pieces from there on have [3:7].
  const std::vector<StepCut> cuts{{0, 1, 7, 0, 3, 2}, {0, 1, 7, 3, 7, 2}, {1, 2, 7, 0, 2, 5}, {3, 0, 7, 6, 7, 1}};
  counter.add({{3, 0, 100}, {1, 3, 7}}, 1, 1);
  counter.add(PieceReader(cuts, 1, 3), 4, 10);
  counter.add({{0, 1, 1}, {3, 0, 1}}, 1, 1);
  counter.add(PieceReader(cuts, 1, 3, 2), 1, 1);
  const RoundLoad load = counter.take();
  CHECK(load.of_rank(0).sent == 2 * 2 * 4 * 10 + 1 + 4 * 2);
  CHECK(load.of_rank(0).received == 100 + 1 + 1);
  CHECK(load.of_rank(0).messages == 2);
  CHECK(load.of_rank(1).sent == 7);
  CHECK(load.of_rank(1).messages == 2);
  CHECK(load.of_rank(2).messages == 0);
  CHECK(load.of_rank(3).messages == 2);
}

// Before there are too many, pairs are put together (RoundCounter::add).
TEST_CASE("pairs that are added a million times take one message each") {
  RankTable ranks;
  ranks.global_ids = {0, 1, 2, 3};
  RoundCounter counter(ranks, hosts_of_two());
  const std::vector<StepCut> cuts{{2, 3, 1, 0, 1, 5}};
  counter.add(PieceReader(cuts, 0, 1), 1, 1);
  const std::vector<PairElements> pairs(400'000, {2, 3, 1});
  for (int i = 0; i < 6; ++i) counter.add(pairs, 1, 1);
  counter.add({{0, 3, 8}}, 1, 1);
  const RoundLoad load = counter.take();
  CHECK(load.of_rank(3).received == 2'400'000 + 5 + 8);
  CHECK(load.of_rank(3).messages == 2);
  CHECK(load.of_rank(2).messages == 1);
}

}  // namespace meshplan
