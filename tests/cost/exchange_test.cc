// What an exchange is said to take at least, where its price is of no use above some limit.
#include "cost/exchange.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "../verify/random_world.h"
#include "some_protocols.h"

namespace meshplan {
namespace {

// Units that may cut the mesh unevenly, latencies that may not grow outwards.
Topology random_levels(test::Random& random) {
  Topology topology;
  int64_t unit = 1;
  for (int64_t level = random.below(3); level > 0; --level) {
    unit *= random.pick(std::vector<int64_t>{2, 3, 4, 6, 8});
    topology.levels.push_back({"in", unit, 1 + random.below(400'000), random.below(20'000), random.below(2) * 500, 50 + random.below(51)});
  }
  topology.levels.push_back(
      {"out", 1'048'576, 1 + random.below(50'000), random.below(40'000), random.below(2) * 500, 50 + random.below(51)});
  if (!random.one_in(4)) {
    std::sort(topology.levels.begin(), topology.levels.end(), [](const auto& a, const auto& b) { return a.ranks < b.ranks; });
    for (size_t l = 1; l < topology.levels.size(); ++l) topology.levels[l].latency_ns += topology.levels[l - 1].latency_ns;
  }
  if (random.one_in(3)) topology.copy_mb_per_s = 1 + random.below(400'000);
  return random.one_in(2) ? test::with_random_protocols(random, topology) : topology;
}

// A limit about as large as the price.
int64_t random_limit(test::Random& random, int64_t ps) {
  switch (random.below(4)) {
    case 0:
      return ps;
    case 1:
      return std::max<int64_t>(0, ps - 1);
    case 2:
      return ps * random.below(100) / 100;
    default:
      return ps + ps * random.below(100) / 100;
  }
}

struct Seen {
  int64_t prices = 0;
  int64_t at_least = 0;
};

// Whoever asks with a limit gets the price where it is not above, else no more than the price.
void check_limited(const ExchangeCost& limited, const ExchangeCost& full, int64_t most_ps, Seen& seen) {
  CAPTURE(most_ps);
  CAPTURE(full.predicted_ps);
  if (!limited.at_least) {
    REQUIRE((full.predicted_ps > most_ps || limited.predicted_ps == full.predicted_ps));
    ++seen.prices;
    return;
  }
  REQUIRE(limited.predicted_ps > most_ps);
  REQUIRE(limited.predicted_ps <= full.predicted_ps);
  ++seen.at_least;
}

}  // namespace

TEST_CASE("a price that is of no use above a limit is never told too high") {
  test::Random random(23);
  test::WorldOptions worlds{{1, 2, 2, 3, 4, 5, 6, 8, 12}, 4, 64, true};
  Seen listed;
  Seen digits;
  for (int64_t tried = 0; tried < 20'000; ++tried) {
    const MeshTable table = test::random_table(random, worlds);
    const Mesh& mesh = table.meshes.front();
    const Topology topology = random_levels(random);
    const LevelMap levels(mesh, topology);
    Request request = test::random_request(random, table, 2);
    for (int64_t& extent : request.tensor.shape) extent *= 1 + random.below(40);
    if (random.one_in(2)) request.dst.partial = request.src.partial = {};
    if (!request.dst.partial.empty()) continue;
    CAPTURE(tried);
    ExchangeQuestion q;
    q.levels = &levels;
    q.shape = request.tensor.shape;
    q.element_bytes = 2;
    q.src = &request.src;
    q.dst = &request.dst;
    q.phases = request.src.partial.empty() && random.one_in(2) ? 2 : 1;
    const ExchangeCost full = price_exchange(q);
    REQUIRE(full.exact);
    for (int again = 0; again < 3; ++again) {
      const LevelMap afresh(mesh, topology);  // remembers no listing
      ExchangeQuestion limited = q;
      limited.levels = &afresh;
      limited.most_ps = random_limit(random, full.predicted_ps);
      check_limited(price_exchange(limited), full, limited.most_ps, listed);
    }
    // The same of other ways, and of a listing that goes on from where it ended before.
    ExchangeQuestion other = q;
    if (q.phases == 1) {
      other.far_too = random.one_in(2);
    } else if (random.one_in(2)) {
      other.fetchers = Fetchers::all;
    } else {
      other.in_laps_too = random.one_in(2);
    }
    const ExchangeCost whole = price_exchange(other);
    const LevelMap remembering(mesh, topology);
    other.levels = &remembering;
    for (int again = 0; again < 3; ++again) {
      other.most_ps = random_limit(random, whole.predicted_ps);
      check_limited(price_exchange(other), whole, other.most_ps, listed);
    }
    other.most_ps = INT64_MAX;
    REQUIRE(price_exchange(other).predicted_ps == whole.predicted_ps);
    if (!levels.regular()) continue;
    const auto problem = align_digits(levels, q.shape, q.element_bytes, request.src, request.dst);
    if (!problem) continue;
    TurnTable turns;
    DigitQuestion bare{&levels, &problem->world, &problem->change, q.phases, std::nullopt, &turns};
    bare.most_ps = random_limit(random, full.predicted_ps);
    if (const auto cost = price_digits(bare)) check_limited(*cost, full, bare.most_ps, digits);
  }
  CHECK(listed.prices > 1000);
  CHECK(listed.at_least > 100);
  CHECK(digits.prices > 100);
  CHECK(digits.at_least > 5);
}

TEST_CASE("where slices are few, laps may pass on to fewer members than what is fetched at once") {
  const Mesh mesh =
      test::mesh_of({4, 7}, {14, 27, 31, 23, 13, 22, 5, 20, 15, 29, 25, 17, 24, 28, 18, 8, 19, 9, 11, 4, 30, 26, 16, 12, 21, 7, 10, 6});
  Topology topology = test::with_protocols(test::two_levels(12, 14'000));
  topology.levels.front().per_peer_ns = 14'000;
  State src;
  State dst;
  src.shards = {{}, {{1, 1, 7}}};
  dst.shards = {{}, {{0, 1, 4}}};
  const std::vector<int64_t> shape{3, 4};
  const auto priced = [&](int64_t most_ps) {
    const LevelMap levels(mesh, topology);
    ExchangeQuestion q;
    q.levels = &levels;
    q.shape = shape;
    q.element_bytes = 2;
    q.src = &src;
    q.dst = &dst;
    q.phases = 2;
    q.in_laps_too = true;
    q.most_ps = most_ps;
    return price_exchange(q);
  };
  const ExchangeCost cost = priced(INT64_MAX);
  CHECK(cost.fetchers == Fetchers::wanting_in_laps);
  CHECK(cost.traffic.phase[1].peers[0] == 4);  // 5 where all is fetched at once
  for (const int64_t most_ps : {cost.predicted_ps / 2, cost.predicted_ps - 1, cost.predicted_ps, cost.predicted_ps + 1'000'000}) {
    Seen seen;
    check_limited(priced(most_ps), cost, most_ps, seen);
  }
}

// Meshes on some of the same ranks, in order or not, extents of many slices.
TEST_CASE("the far share that is found takes least of all") {
  constexpr uint64_t seed = 31;
  CAPTURE(seed);
  test::Random random(seed);
  int64_t helped = 0;
  for (int64_t round = 0; round < 400; ++round) {
    CAPTURE(round);
    std::vector<int64_t> ids;
    for (int64_t id = 0; id < 30; ++id) ids.push_back(id);
    const auto mesh_of = [&](int64_t a, int64_t b) {
      if (random.one_in(3)) random.shuffle(ids);
      MeshTable table;
      REQUIRE(add_root(table, "mesh", a * b, {ids.begin(), ids.begin() + a * b}, {{"a", a}, {"b", b}}).ok());
      return table.meshes.front();
    };
    const Mesh from = mesh_of(1 + random.below(6), 1 + random.below(4));
    const Mesh to = mesh_of(1 + random.below(4), 1 + random.below(3));
    Topology topology = random_levels(random);
    topology.protocols.clear();
    if (topology.levels.size() == 1) continue;
    const std::vector<int64_t> shape{1260 * (1 + random.below(20)), 1260};
    State src = test::random_state(random, mesh_shape(from), 2, 0, 2);
    State dst = test::random_state(random, mesh_shape(to), 2, 0, 2);
    src.partial.clear();
    dst.partial.clear();
    const LevelMap levels(from, topology);
    ExchangeQuestion q;
    q.levels = &levels;
    q.dst_mesh = &to;
    q.shape = shape;
    q.element_bytes = 4;
    q.src = &src;
    q.dst = &dst;
    q.whole_pieces = false;
    const ExchangeCost near = price_exchange(q);
    int64_t least_ps = INT64_MAX;
    for (int64_t far = 1; far <= 63; ++far) {
      q.far_64ths = far;
      const ExchangeCost cost = price_exchange(q);
      CHECK(cost.far_64ths == far);
      CHECK(cost.wire_bytes == near.wire_bytes);
      least_ps = std::min(least_ps, cost.predicted_ps);
    }
    CHECK(std::min(near.least_far_ps, near.predicted_ps) <= least_ps);
    if (near.least_far_ps >= near.predicted_ps) continue;
    q.far_64ths = std::nullopt;
    const ExchangeCost found = price_exchange(q);
    CHECK(found.predicted_ps == least_ps);
    helped += found.predicted_ps < near.predicted_ps;
  }
  MESSAGE(helped << " take less with a far share");
  CHECK(helped > 20);
}

// The same where the nearest alone may do: on one mesh, by closed forms and by listings, told soon or to the end.
TEST_CASE("on one mesh a far share is taken where it takes less than the nearest holders") {
  constexpr uint64_t seed = 32;
  CAPTURE(seed);
  test::Random random(seed);
  int64_t helped = 0;
  int64_t told = 0;
  int64_t in_closed_form = 0;
  for (int64_t round = 0; round < 2'000; ++round) {
    CAPTURE(round);
    const bool even = random.one_in(2);
    const std::vector<int64_t> sizes{1 + random.below(even ? 2 : 6) * (even ? 3 : 1), 2 + random.below(3) * (even ? 2 : 1)};
    std::vector<int64_t> ids;
    if (random.one_in(4)) {
      for (int64_t id = 0; id < 40; ++id) ids.push_back(id);
      random.shuffle(ids);
      ids.resize(static_cast<size_t>(sizes[0] * sizes[1]));
    }
    MeshTable table;
    REQUIRE(add_root(table, "mesh", sizes[0] * sizes[1], ids, {{"a", sizes[0]}, {"b", sizes[1]}}).ok());
    Topology topology = random_levels(random);
    topology.protocols.clear();
    if (topology.levels.size() == 1) continue;
    const std::vector<int64_t> shape{even ? 2520 * (1 + random.below(20)) : 1 + random.below(9'000), 1260};
    State src = test::random_state(random, sizes, 2, 0, 2);
    State dst = test::random_state(random, sizes, 2, 0, 2);
    src.partial.clear();
    dst.partial.clear();
    const LevelMap levels(table.meshes.front(), topology);
    ExchangeQuestion q;
    q.levels = &levels;
    q.shape = shape;
    q.element_bytes = 4;
    q.src = &src;
    q.dst = &dst;
    const ExchangeCost near = price_exchange(q);
    int64_t least_ps = INT64_MAX;
    for (int64_t far = 1; far <= 63; ++far) {
      q.far_64ths = far;
      least_ps = std::min(least_ps, price_exchange(q).predicted_ps);
    }
    // Not where links outside take longest: whatever such levels make of more peers there.
    if (near.least_far_ps == INT64_MAX) least_ps = INT64_MAX;
    CHECK(std::min(near.least_far_ps, near.predicted_ps) <= least_ps);
    q.far_64ths = 0;
    q.far_too = true;
    const ExchangeCost found = price_exchange(q);
    CHECK(found.exact);
    CHECK(found.predicted_ps == std::min(near.predicted_ps, least_ps));
    CHECK((found.far_64ths > 0) == (least_ps < near.predicted_ps));
    helped += found.far_64ths > 0;
    in_closed_form += found.far_64ths > 0 && near.traffic.work == 0;
    q.most_ps = random.below(found.predicted_ps + found.predicted_ps / 2 + 1);
    const ExchangeCost soon = price_exchange(q);
    if (found.predicted_ps <= q.most_ps) {
      CHECK(soon.predicted_ps == found.predicted_ps);
      CHECK(!soon.at_least);
    } else {
      CHECK(soon.predicted_ps > q.most_ps);
      CHECK((soon.at_least ? soon.predicted_ps <= found.predicted_ps : soon.predicted_ps == found.predicted_ps));
      told += soon.at_least;
    }
  }
  MESSAGE(helped << " take less with a far share, " << in_closed_form << " of them have closed forms without, " << told << " told soon");
  CHECK(helped > 40);
  CHECK(in_closed_form > 10);
  CHECK(told > 10);
}

}  // namespace meshplan
