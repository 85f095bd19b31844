// Bundles whose copies gather what each fetched a part of, and those whose ranks meet few others.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "planner/small_bundle.h"
#include "verify/verify.h"

namespace meshplan {

TEST_CASE("copies on many hosts gather what they fetched a part of, bucket by bucket") {
  // Exchanges reach 4/5 of the NICs, an all_gather all of them: of 8 copies each fetches an eighth.
  Topology slower = hosts_of(8, 1);
  slower.levels[1].exchange_percent = 80;
  const MeshTable table = two_roots({{"fsdp", 8}, {"tp", 8}}, {{"dp", 8}, {"tp", 8}}, 64);
  const std::vector<Request> requests{request_of(table, "w", {4096, 4096}, "S(0)[0]S(0)[1]", "RS(0)", 12),
                                      request_of(table, "v", {8192, 1024}, "S(0)S(1)", "RS(1)", 3),
                                      request_of(table, "norm", {4096}, "S(0)[0]S(0)[1]", "RR", 20)};
  const auto fetched_before_all_was = [](const PlannedBundle& bundle) {
    int64_t exchanges = 0;
    for (size_t r = 0; r + 1 < bundle.rounds.size(); ++r) {
      const bool behind = bundle.rounds[r].op == Op::all_gather;
      exchanges += behind && bundle.rounds[r + 1].op == Op::exchange ? 1 : 0;
    }
    return exchanges;
  };
  const Plan plan = planned(table, slower, requests, {});
  CHECK(above_bound(plan) < 1.05);  // exchanges alone would take 1.25 times the bound
  CHECK(fetched_before_all_was(plan.bundles.front()) == 0);
  // Less staging than one bucket takes: fetched and shared a bucket after the other.
  BundleRequest bundle;
  bundle.max_staging_bytes = plan.bundles.front().totals.staging_bytes / 2;
  const Plan in_buckets = planned(table, slower, requests, bundle);
  CHECK(in_buckets.bundles.front().totals.staging_bytes <= bundle.max_staging_bytes);
  CHECK(above_bound(in_buckets) < 1.05);
  CHECK(fetched_before_all_was(in_buckets.bundles.front()) > 0);
}

TEST_CASE("copies gather inside hosts beside the exchange of the next bucket") {
  // Exchanges inside of hosts reach a tenth of the links.
  Topology slower = hosts_of(4, 1000);
  slower.levels[0].mb_per_s = 90'000;
  slower.levels[0].exchange_percent = 10;
  const MeshTable table = two_roots({{"dp", 2}}, {{"dp", 2}, {"tp", 2}}, 4);
  const std::vector<Request> requests{request_of(table, "w", {4096, 4096}, "S(0)", "RS(0)", 12),
                                      request_of(table, "v", {8192, 1024}, "S(0)", "RS(1)", 3),
                                      request_of(table, "norm", {4096}, "S(0)", "RR", 20)};
  const Plan plan = planned(table, slower, requests, {});
  CHECK(above_bound(plan) < 1.04);  // behind all exchanges they would take 1.25 times the bound
  const std::vector<BundleRound>& rounds = plan.bundles.front().rounds;
  const std::vector<int64_t> waves = waves_of(rounds);
  std::map<int64_t, std::set<Op>> ops;
  for (size_t r = 0; r < rounds.size(); ++r) ops[waves[r]].insert(rounds[r].op);
  CHECK(std::any_of(ops.begin(), ops.end(), [](const auto& wave) { return wave.second == std::set<Op>{Op::exchange, Op::all_gather}; }));
}

TEST_CASE("on the same ranks each rank gathers its part over the NICs beside exchanges inside hosts") {
  // To an eighth of the NICs' traffic exchanges between hosts would add what they bring twice, and
  // every one pays its peers.
  Topology slower = hosts_of(8, 1000);
  slower.levels[1].exchange_percent = 80;
  slower.levels[1].per_peer_ns = 10'000;
  const MeshTable table = two_roots({{"fsdp", 4}, {"tp", 8}}, {{"dp", 8}, {"tp", 4}}, 0);
  const std::vector<Request> requests{
      request_of(table, "w", {4096, 4096}, "S(0)[0]S(0)[1]", "RS(0)", 24), request_of(table, "v", {4096, 4096}, "S(0)S(1)", "RS(1)", 24),
      request_of(table, "norm", {64}, "S(0)R", "RR", 48), request_of(table, "embed", {16384, 4096}, "S(0)[0]S(0)[1]", "RS(0)", 1),
      request_of(table, "head", {16384, 4080}, "S(0)[0]S(0)[1]", "RS(0)", 1)};
  const Plan plan = planned(table, slower, requests, {});
  CHECK(above_bound(plan) < 1.1);
  const auto ops_of = [&](size_t member) {
    std::vector<Op> ops;
    for (const Step& step : std::as_const(plan.redistributions[member].steps)) ops.push_back(step.op);
    return ops;
  };
  CHECK(ops_of(0) == std::vector<Op>{Op::exchange, Op::all_gather, Op::exchange});
  CHECK(ops_of(1) == std::vector<Op>{Op::all_gather, Op::exchange});
  // One launch gathers both; the first exchanges of others run beside it.
  const std::vector<BundleRound>& rounds = plan.bundles.front().rounds;
  const std::vector<int64_t> waves = waves_of(rounds);
  std::map<int64_t, std::vector<Op>> ops;
  bool together = false;
  std::set<int64_t> with_norms;
  for (size_t r = 0; r < rounds.size(); ++r) {
    ops[waves[r]].push_back(rounds[r].op);
    std::set<size_t> members;
    for (const RoundPart& part : rounds[r].parts) members.insert(part.member);
    // Large ones go whole, each through a bucket of its own.
    CHECK(members.count(3) + members.count(4) < 2);
    for (const RoundPart& part : rounds[r].parts) CHECK(part.pieces == 1);
    if (members.count(2) > 0) with_norms.insert(waves[r]);
    together = together || (rounds[r].op == Op::all_gather && members.count(0) + members.count(1) == 2);
  }
  CHECK(together);
  CHECK(std::any_of(ops.begin(), ops.end(), [](const auto& wave) {
    return std::count(wave.second.begin(), wave.second.end(), Op::exchange) == 2 &&
           std::count(wave.second.begin(), wave.second.end(), Op::all_gather) == 1;
  }));
  // What hardly moves anything is in few rounds.
  CHECK(with_norms.size() <= 3);
}

TEST_CASE("ranks that have their shards but for a mesh dim of one rank exchange nothing before they gather") {
  const MeshTable table = one_root({{"x", 3}, {"y", 1}}, {0, 8, 6});
  const Plan plan = planned(table, hosts_of(4, 0), {request_of(table, "w", {0, 24, 16}, "S(0)S(2)", "RR", 4)}, {});
  CHECK(plan.redistributions.front().steps.size() == 1);
}

TEST_CASE("whole matrices to ranks and back: what crosses hosts is one round a bucket, whatever is before") {
  MeshTable table;
  REQUIRE(add_root(table, "mesh", 96, {}, {{"fsdp", 12}, {"tp", 8}}).ok());
  const std::string whole = "S(0)[0]S(0)[1]";
  const std::string by_rows = "S(1)[0]S(1)[1]";
  for (const bool back : {false, true}) {
    std::vector<Request> requests;
    for (const std::string& cut : {by_rows, std::string("S(1)S(2)")})
      requests.push_back(request_of(table, cut, {36, 14336, 4096}, back ? whole : cut, back ? cut : whole, 1));
    const Plan plan = planned(table, *topology_preset("h100"), requests, {});
    // Exchanges alone reach 94 % of the NICs, and pay 11 peers a round.
    CHECK(above_bound(plan) < 1.5);
    // Of the three steps of the first the second crosses, of the two of the other the first, or last.
    const auto crosses = [&](const RoundPart& part) { return part.step == (part.member == 0 || back ? 1 : 0); };
    for (const BundleRound& round : plan.bundles.front().rounds) {
      const auto across = std::count_if(round.parts.begin(), round.parts.end(), crosses);
      CHECK((across == 0 || across == static_cast<int64_t>(round.parts.size())));
    }
  }
}

TEST_CASE("an exchange brings what many buckets gather: it pays its peers once, as far as the staging holds it") {
  // 6 of 8 ranks of a host, and rows that no 6 ranks share evenly: what is gathered is staged, a few tensors at a time. With an
  // exchange in each bucket the bundle took 1.48 of its bound.
  const MeshTable table = two_roots({{"fsdp", 75}, {"tp", 8}}, {{"dp", 25}, {"tp", 6}}, 600);
  const std::vector<Request> requests{request_of(table, "w", {4096, 4096}, "S(0)[0]S(0)[1]", "RS(0)", 60),
                                      request_of(table, "v", {1024, 4096}, "S(0)[0]S(0)[1]", "RS(0)", 120)};
  Topology far = hosts_of(8, 5'000);
  far.levels[1].per_peer_ns = 14'000;
  BundleRequest bundle;
  for (const int64_t staging : {100'000'000, 60'000'000}) {
    bundle.max_staging_bytes = staging;
    const Plan plan = planned(table, far, requests, bundle);
    const std::vector<BundleRound>& rounds = plan.bundles.front().rounds;
    const auto exchanges = std::count_if(rounds.begin(), rounds.end(), [](const BundleRound& round) { return round.op == Op::exchange; });
    CHECK(exchanges * 3 < std::ssize(rounds));
    CHECK(above_bound(plan) < 1.45);
    CHECK(plan.bundles.front().totals.staging_bytes <= staging);
    CHECK(verify_plan(plan).ok());
  }
}

TEST_CASE("what collectives share with exchanges is not taken twice") {
  // All NICs gather for as long as the bound says: a rank of serve exchanges before or behind that,
  // not meanwhile, so that what it fetches comes on top.
  Topology slower = hosts_of(1, 1);
  slower.levels[1].exchange_percent = 80;
  const MeshTable table = two_roots({{"dp", 2}}, {{"dp", 8}}, 2);
  const std::vector<Request> requests{request_of(table, "w", {4096, 4096}, "S(0)", "R", 12)};
  const Plan plan = planned(table, slower, requests, {});
  const int64_t bytes = int64_t{12} * 4096 * 4096 * 2;
  const int64_t gathered_ps = bytes / 8 * 7 * 1'000'000 / 45'000;
  const int64_t fetched_ps = bytes / 8 * 1'000'000 / 36'000;
  CHECK(plan.bundles.front().totals.predicted_ps >= gathered_ps + fetched_ps);
}

TEST_CASE("copies are bounded by one of them fetched at the rate of exchanges, and all others") {
  // Two hosts want all of it. Exchanges bring it once at least, at 9/10 of the 16 NICs of 45 GB/s;
  // the other host may have it from an all_gather at most.
  Topology slower = hosts_of(8, 0);
  slower.levels[1].exchange_percent = 90;
  const MeshTable table = two_roots({{"dp", 16}}, {{"dp", 16}}, 16);
  const auto bound_of = [&](const std::string& dst, const Topology& topology) {
    const std::vector<Request> requests{request_of(table, "w", {640, 960}, "S(0)", dst, 1)};
    return planned(table, topology, requests, {}).bundles.front().totals.lower_bound_ps;
  };
  const int64_t once = int64_t{640} * 960 * 2 * 1'000'000 / 16 / 45'000;
  const int64_t copied = bound_of("R", slower);
  CHECK(copied >= once + once / 9 * 10);
  CHECK(copied <= once + once / 9 * 10 + 20);
  CHECK(bound_of("R", hosts_of(8, 0)) <= 2 * once + 20);
}

TEST_CASE("where peers cost most a rank meets one rank of each other host, behind its own host") {
  // Rows of every matrix to whole matrices: 12 hosts of 8 cut 4,096 rows unevenly, so that a part
  // of the rows that a rank of another host wants lies on two or three of its ranks.
  const Topology h100 = *topology_preset("h100");
  MeshTable table;
  REQUIRE(add_root(table, "mesh", 96, {}, {{"fsdp", 12}, {"tp", 8}}).ok());
  std::vector<Request> requests;
  for (const int64_t rows : {4096, 1024, 14336}) {
    requests.push_back(request_of(table, "w" + std::to_string(rows), {36, rows, 4096}, "S(1)[0]S(1)[1]", "S(0)[0]S(0)[1]", 2));
    requests.push_back(request_of(table, "v" + std::to_string(rows), {36, 4096, rows}, "S(1)S(2)", "S(0)[0]S(0)[1]", 1));
  }
  const Plan plan = planned(table, h100, requests, {});
  // Sends and receives of 11 other hosts, and of 7 ranks of the own one.
  for (const BundleRound& round : plan.bundles.front().rounds) CHECK(round.messages <= 2 * (11 + 7));
}

}  // namespace meshplan
