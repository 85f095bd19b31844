#include "transfer/exchange_transfers.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tensor/state.h"

using namespace meshplan;

namespace {

std::vector<RankBox> ranks_of(std::string_view text, const std::vector<int64_t>& mesh_shape, const std::vector<int64_t>& shape) {
  auto state = parse_state(text, mesh_shape, shape.size());
  REQUIRE(state.ok());
  int64_t n = 1;
  for (int64_t s : mesh_shape) n *= s;
  std::vector<RankBox> out;
  for (int64_t i = 0; i < n; ++i) out.push_back({i, box_of(*state, shape, mesh_shape, coordinates_of(i, mesh_shape))});
  return out;
}

// Elements of each target covered, counted one by one: every element exactly once.
void check_tiles(const std::vector<RankBox>& targets, const std::vector<ExchangeTransfer>& pieces) {
  for (size_t t = 0; t < targets.size(); ++t) {
    std::map<std::vector<int64_t>, int> covered;
    for (const ExchangeTransfer& p : pieces) {
      if (p.target != static_cast<int32_t>(t)) continue;
      const int64_t n = volume(p.box);
      CHECK(n > 0);
      for (int64_t at = 0; at < n; ++at) {
        std::vector<int64_t> index;
        int64_t rest = at;
        for (size_t d = p.box.size(); d-- > 0;) {
          index.push_back(p.box[d].lo + rest % width(p.box[d]));
          rest /= width(p.box[d]);
        }
        std::reverse(index.begin(), index.end());
        ++covered[index];
      }
    }
    CHECK(static_cast<int64_t>(covered.size()) == volume(targets[t].box));
    for (const auto& [index, times] : covered) CHECK(times == 1);
  }
}

bool holds(const RankBox& rank, const Box& box) { return intersect(rank.box, box) == box; }

}  // namespace

TEST_CASE("near-equal parts are longer by one at the front") {
  const Box box{{0, 3}, {2, 9}};
  CHECK(even_part(box, 3, 0) == Box{{0, 3}, {2, 5}});
  CHECK(even_part(box, 3, 1) == Box{{0, 3}, {5, 7}});
  CHECK(even_part(box, 3, 2) == Box{{0, 3}, {7, 9}});
  // Ties go to the lowest dim; more parts than elements leave empty ones at the end.
  CHECK(even_part({{0, 4}, {0, 4}}, 2, 1) == Box{{2, 4}, {0, 4}});
  CHECK(volume(even_part({{0, 2}}, 3, 2)) == 0);
}

TEST_CASE("holders share a missing piece evenly") {
  // S(0) on a, copies on b: ranks 0 1 hold the first half, 2 3 the second. Everybody wants
  // everything.
  const std::vector<int64_t> mesh{2, 2};
  const auto sources = ranks_of("S(0)R", mesh, {8});
  const auto targets = ranks_of("RR", mesh, {8});
  const std::vector<int64_t> flat{1 << 20};
  const auto even = exchange_transfers(sources, targets, flat, ExchangeCut::even);
  check_tiles(targets, even);
  CHECK(std::count(even.begin(), even.end(), ExchangeTransfer{2, 0, {{4, 6}}}) == 1);
  CHECK(std::count(even.begin(), even.end(), ExchangeTransfer{3, 0, {{6, 8}}}) == 1);
  CHECK(std::count(even.begin(), even.end(), ExchangeTransfer{0, 0, {{0, 4}}}) == 1);  // kept
  // Whole pieces: the k-th rank that misses the shard asks the (k mod 2)-th holder.
  const auto whole = exchange_transfers(sources, targets, flat, ExchangeCut::whole);
  check_tiles(targets, whole);
  CHECK(std::count(whole.begin(), whole.end(), ExchangeTransfer{2, 0, {{4, 8}}}) == 1);
  CHECK(std::count(whole.begin(), whole.end(), ExchangeTransfer{3, 1, {{4, 8}}}) == 1);
}

TEST_CASE("only the nearest holders are asked") {
  // Two hosts of four. S(0) on the inner pair, so each host holds everything twice.
  const std::vector<int64_t> mesh{2, 2, 2};
  const auto sources = ranks_of("RRS(0)", mesh, {8});
  const auto targets = ranks_of("RRR", mesh, {8});
  const std::vector<int64_t> levels{4, 1 << 20};
  for (ExchangeCut cut : {ExchangeCut::even, ExchangeCut::whole}) {
    for (const ExchangeTransfer& p : exchange_transfers(sources, targets, levels, cut)) {
      CHECK(sources[static_cast<size_t>(p.source)].rank / 4 == targets[static_cast<size_t>(p.target)].rank / 4);
    }
  }
}

// Hosts of 4.
void check_two_phases(const std::vector<RankBox>& sources, const std::vector<RankBox>& targets, const std::vector<int64_t>& levels,
                      Fetchers fetchers) {
  const TwoPhaseTransfers two = two_phase_transfers(sources, targets, levels, fetchers);
  std::vector<ExchangeTransfer> all = two.from_sources;
  all.insert(all.end(), two.from_fetchers.begin(), two.from_fetchers.end());
  check_tiles(targets, all);
  for (const ExchangeTransfer& p : two.from_sources) {
    CHECK(holds(sources[static_cast<size_t>(p.source)], p.box));
    CHECK(sources[static_cast<size_t>(p.source)].rank / 4 == targets[static_cast<size_t>(p.target)].rank / 4);
  }
  // A host fetches nothing twice, and what a member passes on it has fetched.
  std::map<std::pair<int64_t, std::vector<int64_t>>, int> fetched;
  for (const ExchangeTransfer& p : two.first_phase) {
    CHECK(holds(sources[static_cast<size_t>(p.source)], p.box));
    CHECK(sources[static_cast<size_t>(p.source)].rank / 4 != targets[static_cast<size_t>(p.target)].rank / 4);
    std::vector<int64_t> corner;
    for (const Interval& i : p.box) corner.push_back(i.lo);
    CHECK(++fetched[{targets[static_cast<size_t>(p.target)].rank / 4, corner}] == 1);
  }
  for (const ExchangeTransfer& p : two.from_fetchers) {
    const bool has = std::any_of(two.first_phase.begin(), two.first_phase.end(),
                                 [&](const ExchangeTransfer& f) { return f.target == p.source && f.box == p.box; });
    CHECK(has);
  }
  if (!all_fetch(fetchers)) return;
  // In each lap no member of a host fetches a slice more than the even share; a slice has 9 elements at most.
  const int64_t laps = laps_of(fetchers);
  std::map<int64_t, std::map<int64_t, int64_t>> fetched_by;
  std::map<int64_t, int64_t> all_of;
  for (const ExchangeTransfer& p : two.first_phase) {
    const int64_t rank = targets[static_cast<size_t>(p.target)].rank;
    fetched_by[rank / 4][rank] += volume(p.box);
    all_of[rank / 4] += volume(p.box);
  }
  for (const auto& [host, members] : fetched_by) {
    for (const auto& [rank, elements] : members) CHECK(elements <= (all_of[host] + 3) / 4 + 8 * laps);
  }
}

TEST_CASE("pieces tile every target and come from holders, for random states, uneven shapes and permuted ranks") {
  constexpr unsigned seed = 77;
  std::mt19937 random(seed);
  CAPTURE(seed);
  const std::vector<std::string> texts{"RRR",
                                       "S(0)RR",
                                       "RS(1)R",
                                       "S(0)S(1)R",
                                       "S(1)S(0)S(0)",
                                       "S(0)[1]RS(0)[0]",
                                       "S(0)[2]S(0)[1]S(0)[0]",
                                       "S(0)[0]S(0)[1]S(0)[2]",
                                       "RS(1)[1]S(1)[0]",
                                       "R{S(0):2,R:2}R",
                                       "S(0)[0]{S(0)[1]:2,S(1):2}R"};
  const std::vector<int64_t> mesh{2, 4, 2};
  for (int round = 0; round < 60; ++round) {
    const std::vector<int64_t> shape{static_cast<int64_t>(random() % 20), static_cast<int64_t>(1 + random() % 9)};
    const std::string& a = texts[random() % texts.size()];
    const std::string& b = texts[random() % texts.size()];
    auto fixed = [](const std::string& text) {  // a lone shard carries no order
      return text == "S(1)S(0)S(0)" ? std::string("S(1)S(0)[0]S(0)[1]") : text;
    };
    auto sources = ranks_of(fixed(a), mesh, shape);
    auto targets = ranks_of(fixed(b), mesh, shape);
    std::vector<int64_t> ids(16);
    for (size_t i = 0; i < 16; ++i) ids[i] = static_cast<int64_t>(i);
    std::shuffle(ids.begin(), ids.end(), random);
    for (size_t i = 0; i < 16; ++i) sources[i].rank = targets[i].rank = ids[i];
    CAPTURE(a);
    CAPTURE(b);
    CAPTURE(shape);
    const std::vector<int64_t> levels{4, 1 << 20};
    for (ExchangeCut cut : {ExchangeCut::even, ExchangeCut::whole}) {
      const auto pieces = exchange_transfers(sources, targets, levels, cut);
      check_tiles(targets, pieces);
      for (const ExchangeTransfer& p : pieces) CHECK(holds(sources[static_cast<size_t>(p.source)], p.box));
    }
    for (const int64_t far_64ths : {1, 21, 63}) {
      const auto pieces = exchange_transfers(sources, targets, levels, ExchangeCut::even, far_64ths);
      check_tiles(targets, pieces);
      for (const ExchangeTransfer& p : pieces) CHECK(holds(sources[static_cast<size_t>(p.source)], p.box));
    }
    for (const Fetchers fetchers : {Fetchers::wanting, Fetchers::all, Fetchers::all_in_laps, Fetchers::wanting_in_laps})
      check_two_phases(sources, targets, levels, fetchers);
  }
}

TEST_CASE("senders are balanced where every holder is equally near") {
  const std::vector<int64_t> mesh{2, 4};
  const auto sources = ranks_of("S(0)R", mesh, {64});
  const auto targets = ranks_of("RS(0)", mesh, {64});
  std::map<int32_t, int64_t> sent;
  for (const ExchangeTransfer& p : exchange_transfers(sources, targets, std::vector<int64_t>{1 << 20}, ExchangeCut::even)) {
    if (sources[static_cast<size_t>(p.source)].rank != targets[static_cast<size_t>(p.target)].rank) sent[p.source] += volume(p.box);
  }
  // Each shard is missed by four ranks, 16 elements each... of which two ask this half: every
  // holder sends the same.
  REQUIRE(sent.size() == 8);
  for (const auto& [rank, elements] : sent) CHECK(elements == sent.begin()->second);
}
