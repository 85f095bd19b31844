// The examples of lib/transfer/README.md.
#include <doctest/doctest.h>

#include <algorithm>

#include "tensor/state.h"
#include "transfer/exchange_transfers.h"

using namespace meshplan;

namespace {

// Every rank of the mesh with its box, by its index as global id.
std::vector<RankBox> ranks_of(std::string_view text, const std::vector<int64_t>& mesh_shape) {
  auto state = parse_state(text, mesh_shape, 1);
  REQUIRE(state.ok());
  const std::vector<int64_t> shape{8};
  int64_t n = 1;
  for (int64_t size : mesh_shape) n *= size;
  std::vector<RankBox> out;
  for (int64_t i = 0; i < n; ++i) out.push_back({i, box_of(*state, shape, mesh_shape, coordinates_of(i, mesh_shape))});
  return out;
}

// What the target receives from others.
std::vector<ExchangeTransfer> received(const std::vector<ExchangeTransfer>& all, int32_t target) {
  std::vector<ExchangeTransfer> out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out),
               [&](const ExchangeTransfer& t) { return t.target == target && t.source != target; });
  return out;
}

using Transfers = std::vector<ExchangeTransfer>;

}  // namespace

TEST_CASE("one phase: the even cut and whole pieces of 2 x 2, [8], S(0)R -> RR") {
  const auto before = ranks_of("S(0)R", {2, 2});
  const auto after = ranks_of("RR", {2, 2});
  const std::vector<int64_t> one_level{4};
  const auto even = exchange_transfers(before, after, one_level, ExchangeCut::even);
  CHECK(received(even, 0) == Transfers{{2, 0, {{4, 6}}}, {3, 0, {{6, 8}}}});
  CHECK(received(even, 1) == Transfers{{2, 1, {{4, 6}}}, {3, 1, {{6, 8}}}});
  const auto whole = exchange_transfers(before, after, one_level, ExchangeCut::whole);
  CHECK(received(whole, 0) == Transfers{{2, 0, {{4, 8}}}});
  CHECK(received(whole, 1) == Transfers{{3, 1, {{4, 8}}}});
}

TEST_CASE("one phase: only the nearest holders of hosts of 4, RRS(0) -> RRR") {
  const auto before = ranks_of("RRS(0)", {2, 2, 2});
  const auto after = ranks_of("RRR", {2, 2, 2});
  const std::vector<int64_t> hosts{4, 8};
  const auto even = exchange_transfers(before, after, hosts, ExchangeCut::even);
  CHECK(received(even, 0) == Transfers{{1, 0, {{4, 6}}}, {3, 0, {{6, 8}}}});
}

TEST_CASE("one phase with a far share of 3 hosts of 2 that hold the same") {
  std::vector<RankBox> before;
  for (int64_t i = 0; i < 6; ++i) before.push_back({i, {{64 * (i % 2), 64 * (i % 2) + 64}}});
  const std::vector<RankBox> after{{0, {{0, 128}}}, {3, {{0, 128}}}};
  const std::vector<int64_t> hosts{2, 8};
  const auto in_ranks = [&](int32_t target, const std::vector<ExchangeTransfer>& all) {
    Transfers out;
    for (const ExchangeTransfer& t : all) {
      const bool kept = before[static_cast<size_t>(t.source)].rank == after[static_cast<size_t>(target)].rank;
      if (t.target == target && !kept) out.push_back(t);
    }
    return out;
  };
  const auto even = exchange_transfers(before, after, hosts, ExchangeCut::even);
  CHECK(in_ranks(0, even) == Transfers{{1, 0, {{64, 128}}}});
  CHECK(in_ranks(1, even) == Transfers{{2, 1, {{0, 64}}}});
  const auto far = exchange_transfers(before, after, hosts, ExchangeCut::even, 32);
  CHECK(in_ranks(0, far) == Transfers{{1, 0, {{64, 96}}}, {3, 0, {{96, 112}}}, {5, 0, {{112, 128}}}});
  CHECK(in_ranks(1, far) == Transfers{{2, 1, {{0, 32}}}, {0, 1, {{32, 48}}}, {4, 1, {{48, 64}}}});
}

TEST_CASE("two phases of 2 hosts of 4 where one rank of a host wants what it misses, fetched by all") {
  std::vector<RankBox> before;
  std::vector<RankBox> after;
  for (int64_t i = 0; i < 4; ++i) before.push_back({i, {{8 * (i % 2), 8 * (i % 2) + 8}}});
  for (int64_t i = 0; i < 4; ++i) after.push_back({4 + i, {{i == 0 ? 0 : 16, 16}}});
  const std::vector<int64_t> hosts{4, 8};
  const TwoPhaseTransfers both = two_phase_transfers(before, after, hosts, Fetchers::all);
  CHECK(both.first_phase == Transfers{{0, 0, {{0, 4}}}, {2, 1, {{4, 8}}}, {1, 2, {{8, 12}}}, {3, 3, {{12, 16}}}});
  CHECK(received(both.from_fetchers, 0) == Transfers{{1, 0, {{4, 8}}}, {2, 0, {{8, 12}}}, {3, 0, {{12, 16}}}});
  CHECK(both.from_sources.empty());
}

TEST_CASE("two phases of 2 hosts of 2 across meshes, fetched by all in one lap and in two") {
  const std::vector<RankBox> before{{0, {{0, 4}}}, {1, {{4, 8}}}};
  const std::vector<RankBox> after{{2, {{0, 8}}}, {3, {{0, 8}}}};
  const std::vector<int64_t> hosts{2, 4};
  const TwoPhaseTransfers once = two_phase_transfers(before, after, hosts, Fetchers::all);
  CHECK(once.first_phase == Transfers{{0, 0, {{0, 4}}}, {1, 1, {{4, 8}}}});
  const TwoPhaseTransfers twice = two_phase_transfers(before, after, hosts, Fetchers::all_in_laps);
  CHECK(twice.first_phase == Transfers{{0, 0, {{0, 2}}}, {0, 1, {{2, 4}}}, {1, 0, {{4, 6}}}, {1, 1, {{6, 8}}}});
  CHECK(received(twice.from_fetchers, 0) == Transfers{{1, 0, {{2, 4}}}, {1, 0, {{6, 8}}}});
}

TEST_CASE("two phases of 2 hosts of 2 in two laps") {
  const std::vector<RankBox> before{{0, {{0, 4}}}, {1, {{0, 4}}}, {2, {{4, 8}}}, {3, {{4, 8}}}};
  const std::vector<RankBox> after{{0, {{0, 8}}}, {1, {{0, 8}}}, {2, {{0, 8}}}, {3, {{0, 8}}}};
  const std::vector<int64_t> hosts{2, 4};
  const TwoPhaseTransfers twice = two_phase_transfers(before, after, hosts, Fetchers::wanting_in_laps);
  CHECK(received(twice.first_phase, 0) == Transfers{{2, 0, {{4, 5}}}, {3, 0, {{5, 6}}}});
  CHECK(received(twice.first_phase, 1) == Transfers{{2, 1, {{6, 7}}}, {3, 1, {{7, 8}}}});
}

TEST_CASE("two phases of 2 hosts of 4 across meshes, fetched by all: shards that differ by a slice are not cut for it") {
  std::vector<RankBox> before;
  std::vector<RankBox> after;
  for (int64_t i = 0; i < 4; ++i) before.push_back({i, {{1025 * i, std::min<int64_t>(1025 * i + 1025, 4099)}}});
  for (int64_t i = 4; i < 8; ++i) after.push_back({i, {{0, 4099}}});
  const std::vector<int64_t> hosts{4, 8};
  const TwoPhaseTransfers both = two_phase_transfers(before, after, hosts, Fetchers::all);
  CHECK(both.first_phase == Transfers{{0, 0, {{0, 1025}}}, {1, 1, {{1025, 2050}}}, {2, 2, {{2050, 3075}}}, {3, 3, {{3075, 4099}}}});
}

TEST_CASE("two phases of 2 hosts of 2, S(0)R -> RR") {
  const auto before = ranks_of("S(0)R", {2, 2});
  const auto after = ranks_of("RR", {2, 2});
  const std::vector<int64_t> hosts{2, 4};
  const TwoPhaseTransfers both = two_phase_transfers(before, after, hosts);
  CHECK(received(both.first_phase, 0) == Transfers{{2, 0, {{4, 6}}}});
  CHECK(received(both.first_phase, 1) == Transfers{{3, 1, {{6, 8}}}});
  CHECK(received(both.from_fetchers, 0) == Transfers{{1, 0, {{6, 8}}}});
  CHECK(received(both.from_fetchers, 1) == Transfers{{0, 1, {{4, 6}}}});
  for (const ExchangeTransfer& t : both.from_sources) CHECK(t.source == t.target);
}
