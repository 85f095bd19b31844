// Bundles as the planner makes them, followed element by element through their waves: every tensor
// of every member is whole at every rank of its target, each element came from a rank that had it in
// an earlier wave, and bytes, messages and staging are what was counted on the way.
#include "planner/bundles.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

#include "cost/wave_times.h"
#include "planner/small_bundle.h"
#include "transfer/listed_transfers.h"
#include "transfer/piece_transfers.h"

namespace meshplan {
namespace {

// One tensor of a member on its way.
struct Tensor {
  // By step and slot: how often each element came in that step, and in which wave at last.
  std::vector<std::vector<std::map<std::vector<int64_t>, std::pair<int, int64_t>>>> got;
};

class Follower {
 public:
  Follower(const Plan& plan, const PlannedBundle& bundle) : plan_(plan), bundle_(bundle), ranks_(make_rank_table(plan.meshes)) {
    for (const size_t member : bundle.request.members) {
      const PlannedRedistribution& r = plan.redistributions[member];
      held_[member] = held_boxes_of(plan, r, ranks_);
      for (size_t s = 0; s < r.steps.size(); ++s) {
        const auto transfers = make_transfers({&held_[member][s], &held_[member][s + 1], &r.steps[s], &ranks_, &plan.topology, "here"});
        REQUIRE(transfers.ok());
        transfers_[member].push_back(*transfers);
      }
    }
  }

  void follow() {
    const std::vector<int64_t> waves = waves_of(bundle_.rounds);
    for (size_t r = 0; r < bundle_.rounds.size(); ++r) run(bundle_.rounds[r], waves[r]);
    for (const size_t member : bundle_.request.members) check_whole(member);
  }

 private:
  [[nodiscard]] StepTransfers transfers_of(const RoundPart& part) const {
    const auto& all = transfers_.at(part.member);
    const StepTransfers& whole = all[static_cast<size_t>(part.step)];
    if (std::as_const(plan_.redistributions[part.member].steps)[static_cast<size_t>(part.step)].phases == 2) {
      REQUIRE(part.pieces % 2 == 0);
      if (phases_go_in_pieces(plan_.redistributions[part.member], static_cast<size_t>(part.step))) return behind_pieces(part);
      return part_of_phase(whole, 1 + static_cast<int>(part.piece % 2), part.piece / 2, part.pieces / 2);
    }
    if (part.pieces == 1) return whole;
    const PieceCut cut = piece_cut(plan_.redistributions[part.member]);
    if (part.step == 0) return piece_of_first(cut, all[0], part.piece, part.pieces);
    return piece_of_next(got_before(part), all[static_cast<size_t>(part.step)], part.piece, part.pieces);
  }

  [[nodiscard]] GotBoxes got_before(const RoundPart& part) const {
    const auto& all = transfers_.at(part.member);
    GotBoxes got = got_in_first(piece_cut(plan_.redistributions[part.member]), all[0]);
    for (size_t s = 1; s < static_cast<size_t>(part.step); ++s) got = got_in_next(got, all[s]);
    return got;
  }

  [[nodiscard]] StepTransfers behind_pieces(const RoundPart& part) const {
    const StepTransfers& whole = transfers_.at(part.member)[static_cast<size_t>(part.step)];
    const StepTransfers first = phase_as_step(whole, 1);
    if (part.piece % 2 == 0) return piece_of_next(got_before(part), first, part.piece / 2, part.pieces / 2);
    return piece_of_next(got_in_next(got_before(part), first), phase_as_step(whole, 2), part.piece / 2, part.pieces / 2);
  }

  void run(const BundleRound& round, int64_t wave) {
    std::map<std::pair<int32_t, int32_t>, int64_t> messages;
    for (const RoundPart& part : round.parts) {
      const StepTransfers transfers = transfers_of(part);
      const auto s = static_cast<size_t>(part.step);
      const HeldBoxes& before = held_.at(part.member)[s];
      const HeldBoxes& after = held_.at(part.member)[s + 1];
      const int64_t width = element_bytes(DType::bfloat16);
      for (int64_t i = part.from; i < part.to; ++i) {
        Tensor& tensor = tensors_[{part.member, i}];
        tensor.got.resize(plan_.redistributions[part.member].steps.size());
        tensor.got[s].resize(after.ranks.size());
        for (size_t slot = 0; slot < transfers.slots.size(); ++slot) {
          for (const Transfer& t : transfers.slots[slot].transfers) {
            const int32_t from = sender_rank(t, before, after);
            if (from != after.ranks[slot]) messages[{from, after.ranks[slot]}] += volume(t.box) * width;
            bring(tensor, s, slot, t, wave);
          }
        }
      }
    }
    check_figures(round, messages);
  }

  void bring(Tensor& tensor, size_t s, size_t slot, const Transfer& t, int64_t wave) {
    for (int64_t at = 0; at < volume(t.box); ++at) {
      const std::vector<int64_t> index = index_at(t.box, at);
      if (s > 0 || t.fetched) {
        const auto& had = tensor.got[t.fetched ? s : s - 1][static_cast<size_t>(t.from)];
        const auto found = had.find(index);
        REQUIRE_MESSAGE(found != had.end(), "step " << s << " sends what it has not");
        REQUIRE(found->second.second < wave);
      }
      auto& [times, last] = tensor.got[s][slot][index];
      ++times;
      last = std::max(last, wave);
    }
  }

  void check_figures(const BundleRound& round, const std::map<std::pair<int32_t, int32_t>, int64_t>& messages) const {
    std::map<int32_t, std::array<int64_t, 3>> ranks;  // received, staged, messages
    for (const auto& [pair, bytes] : messages) {
      ranks[pair.second][0] += bytes;
      for (const int32_t rank : {pair.first, pair.second}) {
        ranks[rank][1] += bytes;
        ++ranks[rank][2];
      }
    }
    std::array<int64_t, 3> most{};
    for (const auto& [rank, figures] : ranks) {
      for (size_t f = 0; f < 3; ++f) most[f] = std::max(most[f], figures[f]);
    }
    CHECK(round.wire_bytes == most[0]);
    CHECK(round.staging_bytes == most[1]);
    CHECK(round.messages == most[2]);
    CHECK(round.messages <= bundle_.request.max_messages);
    CHECK((bundle_.request.max_staging_bytes == 0 || round.staging_bytes <= bundle_.request.max_staging_bytes));
  }

  void check_whole(size_t member) const {
    const PlannedRedistribution& r = plan_.redistributions[member];
    if (r.steps.empty()) return;
    const HeldBoxes& target = held_.at(member).back();
    for (int64_t i = 0; i < r.request.count; ++i) {
      const auto found = tensors_.find({member, i});
      REQUIRE(found != tensors_.end());
      for (size_t slot = 0; slot < target.ranks.size(); ++slot) {
        const Box& box = box_of_slot(target, static_cast<int64_t>(slot));
        const auto& got = found->second.got.back()[slot];
        REQUIRE(static_cast<int64_t>(got.size()) == volume(box));
        for (const auto& [index, came] : got) REQUIRE(came.first == 1);
      }
    }
  }

  const Plan& plan_;
  const PlannedBundle& bundle_;
  RankTable ranks_;
  std::map<size_t, std::vector<HeldBoxes>> held_;
  std::map<size_t, std::vector<StepTransfers>> transfers_;
  std::map<std::pair<size_t, int64_t>, Tensor> tensors_;
};

bool only_exchanges(const Plan& plan) {
  return std::all_of(plan.redistributions.begin(), plan.redistributions.end(), [](const auto& r) {
    return std::all_of(r.steps.begin(), r.steps.end(), [](const Step& step) { return step.op == Op::exchange; });
  });
}

// Those with collectives or local steps are replayed elsewhere (tests/replay_host).
void check(const Plan& plan) {
  REQUIRE(plan.bundles.size() == 1);
  const PlannedBundle& bundle = plan.bundles.front();
  CHECK(bundle.totals.lower_bound_ps <= bundle.totals.predicted_ps);
  CHECK(bundle.proven_gap_ps == 1000 * (ns_of_ps(bundle.totals.predicted_ps) - ns_of_ps(bundle.totals.lower_bound_ps)));
  if (bundle.request.max_staging_bytes > 0) CHECK(bundle.totals.staging_bytes <= bundle.request.max_staging_bytes);
  const auto waves = wave_times_ps(plan, bundle);
  REQUIRE(waves.ok());
  CHECK(std::accumulate(waves->begin(), waves->end(), int64_t{0}) == bundle.totals.predicted_ps);
  if (only_exchanges(plan)) Follower(plan, bundle).follow();
  const auto read = read_plan(write_plan(plan));
  REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : read.error().message));
  CHECK(write_plan(*read) == write_plan(plan));
}

}  // namespace

TEST_CASE("a weight sync is one round of all its tensors where the staging allows") {
  const MeshTable table = two_roots({{"dp", 2}, {"tp", 4}}, {{"dp", 1}, {"tp", 4}}, 8);
  const std::vector<Request> requests{request_of(table, "wq", {96, 64}, "RS(0)", "RS(0)", 3),
                                      request_of(table, "wo", {64, 96}, "RS(1)", "RS(1)", 3),
                                      request_of(table, "norm", {64}, "RR", "RR", 7)};
  const Plan plan = planned(table, uniform_topology(), requests, {});
  check(plan);
  CHECK(plan.bundles.front().rounds.size() == 1);
  CHECK(plan.bundles.front().tensors == 13);
  // One latency in place of thirteen.
  CHECK(plan.bundles.front().totals.predicted_ps < plan.bundles.front().alone_ps / 4);
}

TEST_CASE("staging cuts tensors and rounds, and every rank keeps within it") {
  const MeshTable table = two_roots({{"dp", 4}, {"tp", 3}}, {{"dp", 2}, {"tp", 4}}, 12);
  const std::vector<Request> requests{request_of(table, "w", {50, 36}, "S(0)S(1)", "RS(0)", 2),
                                      request_of(table, "v", {7, 11}, "S(0)R", "RR", 5)};
  for (const int64_t staging : {0, 4000, 1500, 1000}) {
    CAPTURE(staging);
    BundleRequest bundle;
    bundle.max_staging_bytes = staging;
    const Plan plan = planned(table, hosts_of(4, 0), requests, bundle);
    check(plan);
    if (staging == 1500) CHECK(plan.bundles.front().rounds.size() > 2);
  }
}

TEST_CASE("messages beyond the limit need whole pieces or smaller meshes, and say so") {
  const MeshTable table = two_roots({{"dp", 6}}, {{"dp", 6}}, 6);
  const std::vector<Request> requests{request_of(table, "w", {36, 5}, "S(0)", "S(0)", 2)};
  BundleRequest bundle;
  bundle.max_messages = 1;
  check(planned(table, uniform_topology(), requests, bundle));
  bundle.id = "all";
  bundle.members = {0};
  const std::vector<Request> all_to_all{request_of(table, "w", {36, 6}, "S(0)", "S(1)", 2)};
  const PlanOutcome outcome = plan_requests(table, uniform_topology(), all_to_all, {}, "", {bundle});
  REQUIRE(outcome.failures.size() == 1);
  CHECK(outcome.failures[0].error.message ==
        "bundle 'all' has no rounds within max_messages 1 of those that were tried: some have 6 messages of one rank; raise it to that");
}

TEST_CASE("ranks of a host that want nothing fetch for those that do, but in no bundle") {
  const MeshTable table = two_roots({{"dp", 2}, {"tp", 4}}, {{"dp", 8}}, 8);
  const std::vector<Request> requests{request_of(table, "w", {2, 4096}, "S(0)S(1)", "S(0)", 2)};
  const auto by_all = [](const Plan& plan) {
    const auto& steps = std::as_const(plan.redistributions[0].steps);
    return std::any_of(steps.begin(), steps.end(), [](const Step& step) { return step.fetched_by_all; });
  };
  const PlanOutcome alone = plan_requests(table, hosts_of(4, 0), requests, {}, "");
  REQUIRE(alone.failures.empty());
  CHECK(by_all(alone.plan));
  CHECK(std::as_const(alone.plan.redistributions[0].steps).back().phases == 2);
  PlanOptions tight;  // for what members hold that others want
  tight.max_memory_bytes = alone.plan.redistributions[0].totals.peak_bytes - 1;
  const PlanOutcome less = plan_requests(table, hosts_of(4, 0), requests, tight, "");
  REQUIRE(less.failures.empty());
  CHECK(less.plan.redistributions[0].totals.peak_bytes < alone.plan.redistributions[0].totals.peak_bytes);
  const Plan plan = planned(table, hosts_of(4, 0), requests, {});
  check(plan);
  CHECK(!by_all(plan));
}

namespace {

// Whether the first redistribution asks holders in other hosts, though some are in a rank's own.
bool asks_far_holders(const Plan& plan) {
  const auto& steps = std::as_const(plan.redistributions[0].steps);
  return std::any_of(steps.begin(), steps.end(), [](const Step& step) { return step.far_64ths > 0; });
}

}  // namespace

TEST_CASE("ranks ask holders in other hosts too where one in theirs has much to send, but in no bundle") {
  const MeshTable table = two_roots({{"dp", 3}, {"tp", 4}}, {{"dp", 4}}, 0);
  const std::vector<Request> requests{request_of(table, "w", {96, 96}, "RS(0)", "S(1)", 2)};
  const PlanOutcome alone = plan_requests(table, hosts_of(4, 0), requests, {}, "");
  REQUIRE(alone.failures.empty());
  CHECK(asks_far_holders(alone.plan));
  const Plan plan = planned(table, hosts_of(4, 0), requests, {});
  check(plan);
  CHECK(!asks_far_holders(plan));
}

TEST_CASE("ranks of one mesh ask holders in other hosts too, but in no bundle") {
  MeshTable table;
  REQUIRE(add_root(table, "mesh", 12, {}, {{"dp", 3}, {"tp", 4}}).ok());
  const std::vector<Request> requests{request_of(table, "w", {96, 96}, "RS(0)", "S(1)R", 2)};
  Topology near_as_fast = hosts_of(4, 0);
  for (TopologyLevel& level : near_as_fast.levels) level.mb_per_s = 100'000;
  const PlanOutcome alone = plan_requests(table, near_as_fast, requests, {}, "");
  REQUIRE(alone.failures.empty());
  CHECK(asks_far_holders(alone.plan));
  const Plan plan = planned(table, near_as_fast, requests, {});
  check(plan);
  CHECK(!asks_far_holders(plan));
}

TEST_CASE("more rounds than anyone could read are refused, not planned for minutes") {
  MeshTable table;
  REQUIRE(add_root(table, "mesh", 4, {}, {{"dp", 4}}).ok());
  const std::vector<Request> requests{request_of(table, "w", {64, 64}, "P(sum)", "R", 1'000'000'000)};
  const auto outcome = [&](PlannerKind planner, int64_t staging) {
    PlanOptions options;
    options.planner = planner;
    return plan_requests(table, hosts_of(4, 0), requests, options, "", {{"all", {0}, 1, staging, 1024}});
  };
  // Of collectives alone; exchanges need staging.
  const PlanOutcome collectives = outcome(PlannerKind::greedy, int64_t{1} << 31);
  REQUIRE(collectives.failures.size() == 1);
  CHECK(collectives.failures[0].error.message ==
        "bundle 'all' needs 1,953,125 rounds of collectives, at most 100,000 are planned; raise "
        "max_messages (1,024) or split its counts");
  const PlanOutcome exchanges = outcome(PlannerKind::optimal, int64_t{1} << 31);
  REQUIRE(exchanges.failures.size() == 1);
  CHECK(
      exchanges.failures[0].error.message ==
      "bundle 'all' has no rounds within max_staging_bytes 2147483648 of those that were tried: some take 7000010752 bytes of staging per rank; "
      "raise it to that");
  CHECK(outcome(PlannerKind::optimal, 7'000'010'752).failures.empty());
}

TEST_CASE("replicas on many hosts share what one of them fetched: within 5 % of the bound") {
  for (const int64_t latency : {0, 1}) {
    const MeshTable table = two_roots({{"dp", 2}, {"tp", 2}}, {{"dp", 12}, {"tp", 2}}, 96);
    const std::vector<Request> requests{request_of(table, "w", {960, 384}, "RS(0)", "RS(0)", 1)};
    const Plan plan = planned(table, hosts_of(8, latency), requests, {});
    CHECK(above_bound(plan) < 1.05);
    CHECK(plan.redistributions[0].steps.size() > 1);
  }
}

TEST_CASE("buckets fall where sharing inside the host takes less than fetching") {
  const MeshTable table = two_roots({{"dp", 2}, {"tp", 8}}, {{"dp", 8}}, 16);
  const std::vector<Request> requests{request_of(table, "w", {1536, 6}, "RS(0)", "R", 1)};
  Topology topology = hosts_of(8, 1);
  topology.levels[0].mb_per_s = 900'000;
  const Plan plan = planned(table, topology, requests, {});
  check(plan);
  std::vector<int64_t> fetched;
  for (const BundleRound& round : plan.bundles.front().rounds) {
    if (round.stream == 0) fetched.push_back(round.wire_bytes);
  }
  REQUIRE(fetched.size() > 1);
  for (size_t i = 1; i < fetched.size(); ++i) CHECK(fetched[i] < fetched[i - 1]);
  // Even shares take 1.20 times the bound at best.
  CHECK(above_bound(plan) < 1.15);
}

TEST_CASE("sources that share no host with a target are bounded by their outer links alone") {
  // One host of 8 sends to 8 hosts: 64 ranks want all of it, over NICs that carry it once.
  const MeshTable table = two_roots({{"dp", 8}}, {{"dp", 64}}, 8);
  const std::vector<Request> requests{request_of(table, "w", {640, 384}, "R", "R", 1)};
  const Plan plan = planned(table, hosts_of(8, 0), requests, {});
  const int64_t bytes = 640 * 384 * 2;
  CHECK(plan.bundles.front().totals.lower_bound_ps >= bytes / 8 * 1'000'000 / 45'000);
  CHECK(above_bound(plan) < 1.05);
}

TEST_CASE("links that no collective crosses are bounded by the rate that exchanges reach") {
  // Between two meshes exchanges alone run, at 9/10 of the NICs; inside one mesh a gather may take
  // all of them.
  Topology slower = hosts_of(8, 0);
  slower.levels[1].exchange_percent = 90;
  const auto bound_of = [&](const Dims& src, const Dims& dst, int64_t first_of_dst, const Topology& topology) {
    const MeshTable table = two_roots(src, dst, first_of_dst);
    const std::vector<Request> requests{request_of(table, "w", {640, 960}, "S(0)", "S(1)", 1)};
    return planned(table, topology, requests, {}).bundles.front().totals.lower_bound_ps;
  };
  const int64_t apart = bound_of({{"dp", 16}}, {{"dp", 16}}, 16, hosts_of(8, 0));
  const int64_t apart_slower = bound_of({{"dp", 16}}, {{"dp", 16}}, 16, slower);
  CHECK(apart_slower >= apart / 9 * 10);
  CHECK(apart_slower <= apart / 9 * 10 + 10);
  // The same ranks: half of what a host wants lies in the other, whichever step brings it.
  const int64_t same = bound_of({{"dp", 16}}, {{"dp", 16}}, 0, hosts_of(8, 0));
  CHECK(bound_of({{"dp", 16}}, {{"dp", 16}}, 0, slower) == same);
}

TEST_CASE("a tensor that has much between its steps goes by itself, behind the others") {
  // Half of `embed` between two steps is 4/5 of the staging; of each `w` it is a hundredth.
  // One level, on which nothing goes in two phases: those would have nothing between.
  const MeshTable table = two_roots({{"tp", 1}}, {{"dp", 2}}, 96);
  const std::vector<Request> requests{request_of(table, "embed", {800, 10}, "R", "R", 2), request_of(table, "w", {10, 10}, "R", "R", 80)};
  BundleRequest bundle;
  bundle.max_staging_bytes = 10'000;
  Topology one_level;
  one_level.levels = {{"net", 1'048'576, 100'000, 0, 0}};
  const Plan plan = planned(table, one_level, requests, bundle);
  check(plan);
  CHECK(above_bound(plan) < 1.1);
  CHECK(plan.redistributions[0].steps.size() == 2);
  // Nothing of the first is on the way when the second begins.
  const std::vector<BundleRound>& rounds = plan.bundles.front().rounds;
  const std::vector<int64_t> waves = waves_of(rounds);
  int64_t first_done = -1;
  int64_t second_begins = INT64_MAX;
  for (size_t r = 0; r < rounds.size(); ++r) {
    for (const RoundPart& part : rounds[r].parts) {
      if (part.member != 0) continue;
      if (part.from == 0) first_done = std::max(first_done, waves[r]);
      if (part.to == 2) second_begins = std::min(second_begins, waves[r]);
    }
  }
  CHECK(first_done >= 0);
  CHECK(first_done < second_begins);
}

TEST_CASE("on the same ranks every rank of a host fetches the same share of what the host lacks") {
  // FSDP over 4 hosts and TP inside of them, to TP 4 twice a host: at once, ranks whose quarter
  // lies in their own host fetch little, and the others more.
  MeshTable table;
  REQUIRE(add_root(table, "train", 32, {}, {{"fsdp", 4}, {"tp", 8}}).ok());
  REQUIRE(add_root(table, "serve", 32, {}, {{"dp", 8}, {"tp", 4}}).ok());
  const std::vector<Request> requests{request_of(table, "w", {160, 240}, "S(0)[0]S(0)[1]", "RS(0)", 4)};
  const Plan plan = planned(table, hosts_of(8, 0), requests, {});
  check(plan);
  CHECK(above_bound(plan) < 1.05);
}

TEST_CASE("collectives of a plan overlap as exchanges or beside them: whole matrices to ranks and back") {
  MeshTable table;
  REQUIRE(add_root(table, "mesh", 24, {}, {{"fsdp", 3}, {"tp", 8}}).ok());
  for (const auto& [src, dst] : {std::pair{"S(1)[0]S(1)[1]", "S(0)[0]S(0)[1]"}, std::pair{"S(0)[0]S(0)[1]", "S(1)S(2)"}}) {
    const std::vector<Request> requests{request_of(table, "w", {9, 96, 128}, src, dst, 3),
                                        request_of(table, "v", {9, 48, 96}, src, dst, 2)};
    const Plan plan = planned(table, hosts_of(8, 0), requests, {});
    check(plan);
    // Exchanges alone take 1.176 times the bound back.
    CHECK(above_bound(plan) < 1.17);
    CHECK(std::any_of(plan.bundles.front().rounds.begin(), plan.bundles.front().rounds.end(),
                      [](const BundleRound& round) { return round.stream > 0; }));
  }
}

TEST_CASE("a bundle on more ranks than are listed is refused before anything is planned") {
  MeshTable table;
  REQUIRE(add_root(table, "mesh", 131'072, {}, {{"dp", 16'384}, {"tp", 8}}).ok());
  std::vector<Request> requests;
  for (const char* id : {"a", "b", "c"}) {
    requests.push_back(request_of(table, id, {1 << 20, 4'096}, "S(0)S(1)", "RS(0)", 1));
  }
  const auto outcome = plan_requests(table, uniform_topology(), requests, {}, "", {{"sync", {1, 2}}});
  REQUIRE(outcome.failures.size() == 1);
  CHECK(outcome.failures[0].index == 1);
  CHECK(outcome.failures[0].error == no_plan("bundle 'sync' is in a file of 131,072 ranks; bundles are planned on at most 65,536: "
                                             "put it into a file of its own meshes"));
  CHECK(outcome.work == 0);
  CHECK(outcome.plan.redistributions.empty());
}

TEST_CASE("random bundles: followed element by element") {
  std::mt19937 random(20261123);
  const auto pick = [&](const auto& list) { return list[random() % list.size()]; };
  const std::vector<Dims> meshes{{{"a", 2}}, {{"a", 3}, {"b", 2}}, {{"a", 2}, {"b", 2}}, {{"a", 4}}, {{"a", 6}}, {{"a", 1}, {"b", 5}}};
  const std::vector<std::vector<std::string>> states{{"R", "S(0)", "S(1)"},
                                                     {"RR", "S(0)R", "RS(1)", "S(0)S(1)", "S(0)[1]S(0)[0]", "S(1)S(0)", "RS(0)"}};
  const std::vector<std::vector<int64_t>> shapes{{8, 6}, {5, 7}, {1, 16}, {12, 3}};
  int followed = 0;
  for (int world = 0; world < 150; ++world) {
    const Dims src = pick(meshes);
    const Dims dst = pick(meshes);
    const std::vector<int64_t> starts{0, 3, ranks_in(src)};
    const MeshTable table = two_roots(src, dst, pick(starts));
    std::vector<Request> requests;
    const size_t members = 1 + random() % 4;
    for (size_t m = 0; m < members; ++m) {
      requests.push_back(request_of(table, "m" + std::to_string(m), pick(shapes), pick(states[src.size() - 1]),
                                    pick(states[dst.size() - 1]), 1 + static_cast<int64_t>(random() % 3)));
    }
    BundleRequest bundle;
    bundle.max_staging_bytes = pick(std::vector<int64_t>{0, 600, 1500});
    CAPTURE(world);
    const int64_t latency = pick(std::vector<int64_t>{0, 1, 10'000});
    const Plan plan = planned(table, hosts_of(4, latency), requests, bundle);
    check(plan);
    followed += only_exchanges(plan) ? 1 : 0;
  }
  CHECK(followed > 100);
}

TEST_CASE("one tensor by itself, in two phases behind its first step: followed element by element") {
  Topology topology = hosts_of(2, 0);
  topology.levels[0] = {"inside", 2, 37, 10'000, 0};
  topology.levels[1] = {"across", 1'048'576, 5, 25'000, 0};
  int in_two_phases = 0;
  for (const int64_t host : {2, 3, 4}) {
    topology.levels[0].ranks = host;
    for (const int64_t givers : {2, 3, 4}) {
      for (const Dims& dst : {Dims{{"dp", 2 * host}}, Dims{{"dp", 3 * host}}, Dims{{"tp", 2}, {"dp", 2 * host}}}) {
        for (const std::vector<int64_t>& shape : {std::vector<int64_t>{48, 48}, {37, 50}}) {
          const MeshTable table = two_roots({{"dp", givers}}, dst, 12);
          const Plan plan = planned(table, topology, {request_of(table, "w", shape, "R", dst.size() == 1 ? "R" : "S(0)R", 1)}, {});
          INFO(givers, " -> ", ranks_in(dst), " in hosts of ", host, ", ", shape[0], " x ", shape[1]);
          check(plan);
          const auto& steps = std::as_const(plan.redistributions[0].steps);
          in_two_phases += steps.size() == 2 && steps[1].phases == 2 ? 1 : 0;
        }
      }
    }
  }
  CHECK(in_two_phases >= 4);
}

}  // namespace meshplan
