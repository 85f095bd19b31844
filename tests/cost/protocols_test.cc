// The model of protocols: NCCL's own table, its laws, and that bounds are taken in no more.
#include "cost/protocols.h"

#include <doctest/doctest.h>

#include <cmath>

#include "cost/step_cost.h"
#include "small_mesh.h"
#include "some_protocols.h"
#include "verify/random_world.h"

using namespace meshplan;

namespace {

// Steps of NCCL 2.27 on H100 (meta-pytorch/autoparallel).
Topology hosts_of_8() {
  Topology t = test::two_levels(8, 500);
  t.protocols = {{"LL", 6'600, false, 0, {{1'000, 1'250}, {2'700, 526}}},
                 {"LL128", 14'000, false, 0, {{1'900, 9'200}, {4'000, 7'600}}},
                 {"Simple", 8'400, true, 25'000, {{3'400, 10'000, 3'400}, {14'000, 10'000, 14'000}}}};
  t.levels[0].switch_mb_per_s = 551'000;
  return t;
}

// ns of one protocol alone, moving nothing.
int64_t latency_of(size_t protocol, int64_t hosts, int64_t gpus, Op op = Op::all_gather) {
  Topology t = hosts_of_8();
  t.protocols = {t.protocols[protocol]};
  const std::vector<int64_t> members{gpus, gpus * hosts};
  return latency_ns(fastest_way(t, members, {op, 0, 0, 0}));
}

double us_of(size_t protocol, int64_t hosts, int64_t gpus) { return static_cast<double>(latency_of(protocol, hosts, gpus)) / 1e3; }

}  // namespace

TEST_CASE("latencies of rings and of switches are those of NCCL's table") {
  struct Row {
    int64_t hosts, gpus;
    double ll, ll128, simple;
  };
  for (const Row& row : {Row{2, 8, 23.3, 44.6, 70.0}, Row{4, 8, 42.7, 79.2, 145.6}, Row{8, 4, 49.5, 87.6, 188.0},
                         Row{8, 8, 81.5, 148.4, 296.8}, Row{16, 8, 159.1, 286.8, 599.2}, Row{32, 8, 314.3, 563.6, 1204.0}}) {
    CAPTURE(row.hosts);
    CAPTURE(row.gpus);
    CHECK(std::abs(us_of(0, row.hosts, row.gpus) - row.ll) < 0.06);
    CHECK(std::abs(us_of(1, row.hosts, row.gpus) - row.ll128) < 0.06);
    CHECK(std::abs(us_of(2, row.hosts, row.gpus) - row.simple) < 0.06);
  }
  int64_t ns = 53'000;
  for (int64_t hosts = 2; hosts <= 32; hosts *= 2, ns += 28'000) CHECK(latency_of(2, hosts, 8, Op::all_reduce) == ns);
  CHECK(latency_of(2, 1, 8, Op::all_reduce) == 25'000);
}

TEST_CASE("bytes of trees and switches are counted twice, of rings by what a rank receives") {
  const Topology t = hosts_of_8();
  const std::vector<int64_t> inside{8, 8};
  const ProtocolWay way = fastest_way(t, inside, {Op::all_reduce, 1 << 30, 1 << 27, 0});
  CHECK(way.pattern == Pattern::switches);
  CHECK(protocols_ps(t, inside, {Op::all_reduce, 1 << 30, 1 << 27, 0}) == 25'000'000 + transfer_ps(int64_t{2} << 30, 1, 551'000));
  // Two ranks alone: a ring moves half as much as switches do.
  const std::vector<int64_t> two{2, 2};
  CHECK(fastest_way(t, two, {Op::all_reduce, 1 << 30, 1 << 29, 0}).pattern == Pattern::ring);
  const std::vector<int64_t> both{8, 16};
  CHECK(protocols_ps(t, both, {Op::all_gather, 1 << 30, 1 << 26, 0}) ==
        70'000'000 + std::max(transfer_ps((int64_t{1} << 30) * 14, 16, t.levels[0].mb_per_s),
                              transfer_ps(int64_t{1} << 30, 16, t.levels[1].mb_per_s)));
}

TEST_CASE("more bytes and more members never take less, and no step takes less than its bound") {
  test::Random random(5);
  for (int round = 0; round < 3'000; ++round) {
    const Topology t = test::with_random_protocols(random, test::two_levels(8, 500));
    const int64_t gpus = 1 + random.below(8);
    const std::vector<int64_t> members{gpus, gpus * (1 + random.below(40))};
    if (members.back() == 1) continue;
    CollectiveBytes bytes;
    bytes.op = random.one_in(2) ? Op::all_reduce : Op::all_gather;
    bytes.whole = random.below(1 << 24);
    const int64_t ps = protocols_ps(t, members, bytes);
    const Topology bound = bound_topology(t, bytes.op == Op::all_reduce);
    CHECK(traffic_ps(bound, collective_traffic(members, bytes), Peers::none, 0) <= ps);
    CollectiveBytes more = bytes;
    more.whole += random.below(1 << 24);
    CHECK(protocols_ps(t, members, more) >= ps);
    const std::vector<int64_t> fewer{1, members.back() / gpus};  // one rank a host
    if (bytes.op == Op::all_gather && fewer.back() > 1) {
      bytes.whole /= gpus;
      CHECK(protocols_ps(t, fewer, bytes) <= ps);
    }
  }
}

TEST_CASE("bounds are taken at the rate that something reaches over a level, not at that of the level") {
  Topology t = test::two_levels(8, 500);
  t.levels[0].mb_per_s = 1'860'000;
  t.levels[0].exchange_percent = 11;
  t.protocols = {{"small", 6'600, true, 0, {{1'000, 1'250, 1'000, 500}, {2'700, 526, 5'000, 526}}},
                 {"large", 14'000, false, 0, {{1'900, 900}, {4'000, 10'000}}},
                 {"pairs", 5'000, false, 0, {{700, 9'000}, {700, 9'000}}}};
  t.protocols[2].ops = bit_of(Op::all_to_all) | bit_of(Op::exchange);
  const auto inside = [&] { return bound_topology(t, false).levels[0]; };
  CHECK(inside().mb_per_s == 232'500);
  CHECK(inside().exchange_percent == 88);  // of 204,600, rounded up
  CHECK(bound_topology(t, false).levels[1].mb_per_s == 45'000);
  t.levels[0].exchange_percent = 50;
  CHECK(inside().mb_per_s == 930'000);
  CHECK(inside().exchange_percent == 100);
  t.levels[0].exchange_percent = 11;
  t.protocols[0].levels[0].tree_share = 2'000;
  CHECK(inside().mb_per_s == 372'000);
  // Switches and what was measured may be as fast as the level.
  Topology switched = t;
  switched.protocols[0].switch_ns = 9'000;
  CHECK(bound_topology(switched, false).levels[0].mb_per_s == 1'860'000);
  t.tables.emplace_back();
  CHECK(inside().mb_per_s == 1'860'000);
}

TEST_CASE("a group whose units hold different numbers of members goes round the outermost links, or exchanges") {
  // 9 of 64 ranks in a rack of 72, one in the last: by exchange each hears from 63 others.
  Topology t = test::two_levels(72, 14'000);
  t.protocols = {{"LL", 6'600, true, 0, {{1'000, 10'000, 1'000, 10'000}, {2'700, 10'000, 5'000, 10'000}}}};
  GroupShape uneven;
  uneven.uniform = false;
  uneven.members = {9, 64};
  uneven.reach = {8, 63};
  CHECK(members_apart(uneven) == std::vector<int64_t>{1, 64});
  const auto ps = [&](Op op, int64_t whole) { return collective_ps(t, uneven, {op, whole, whole / 64, 0}); };
  CHECK(ps(Op::all_gather, 64) == (6'600 + 63 * 2'700) * 1'000 + transfer_ps(63, 1, 45'000));
  CHECK(ps(Op::all_reduce, 64) == (6'600 + 2 * 6 * 5'000) * 1'000 + transfer_ps(128, 1, 45'000));
  // Of no protocol: by the levels alone.
  CHECK(ps(Op::all_to_all, 64) > 63 * 14'000'000);
  uneven.reach = {8, 0};  // a world of one rack
  CHECK(members_apart(uneven) == std::vector<int64_t>{64, 64});
}

TEST_CASE("what one peer reaches holds an exchange to it") {
  Topology t = test::two_levels(8, 0);
  t.levels[1].peer_mb_per_s = 1'000;
  Traffic traffic;
  traffic.bytes[1] = 1'000'000;
  traffic.peers[1] = 1;
  const int64_t latency = t.levels[1].latency_ns * 1'000;
  CHECK(traffic_ps(t, traffic, Peers::number_and_rate, 0) == latency + 1'000'000'000);
  CHECK(traffic_ps(t, traffic, Peers::number, 0) < latency + 100'000'000);
  traffic.peers[1] = 4;
  CHECK(traffic_ps(t, traffic, Peers::number_and_rate, 0) == latency + 250'000'000);
  t.levels[1].peer_bytes = 100'000;
  CHECK(traffic_ps(t, traffic, Peers::number_and_rate, 0) == latency + 100'000'000);
}

TEST_CASE("the arithmetic of a step names its protocol, hops and bandwidths") {
  const Topology t = hosts_of_8();
  const Mesh mesh = test::mesh_of({2, 8});
  const TensorMeta tensor{{1 << 20, 64}, DType::float32};
  const std::vector<int64_t> sizes{2, 8};
  const State before = parse_state("S(0)[0]S(0)[1]", sizes, 2).value();
  Step step;
  step.op = Op::all_gather;
  step.mesh_dims = {{0, 1, 2}, {1, 1, 8}};
  step.state = parse_state("RR", sizes, 2).value();
  StepQuestion q;
  q.topology = &t;
  q.src_mesh = q.dst_mesh = &mesh;
  q.tensor = &tensor;
  q.before = &before;
  q.step = &step;
  const std::string text = explain_cost(q);
  CAPTURE(text);
  CHECK(text.find("fastest of the protocols: ") != std::string::npos);
  CHECK(text.find(" hops x ") != std::string::npos);
  CHECK(text.find(" MB/s = ") != std::string::npos);
}
