// Bundles whose messages are scarce: kinds that share rounds as far as they allow it, and ways.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <regex>

#include "planner/small_bundle.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

BundleRequest with_messages(int64_t most) {
  BundleRequest bundle;
  bundle.max_messages = most;
  return bundle;
}

// Members of each round, each once.
std::vector<size_t> members_in_rounds(const Plan& plan) {
  std::vector<size_t> numbers;
  for (const BundleRound& round : plan.bundles.front().rounds) {
    std::vector<size_t> members;
    for (const RoundPart& part : round.parts) {
      if (std::find(members.begin(), members.end(), part.member) == members.end()) members.push_back(part.member);
    }
    numbers.push_back(members.size());
  }
  return numbers;
}

// A spec of the sizes that people train with, in small: from fsdp x tp to dp x tp.
struct Sync {
  MeshTable table;
  std::vector<Request> requests;
};
Sync sync_of(std::mt19937& random) {
  const auto one_of = [&](const std::vector<int64_t>& values) { return values[random() % values.size()]; };
  const Dims src{{"fsdp", one_of({2, 3, 4, 6, 8})}, {"tp", one_of({1, 2, 4})}};
  const Dims dst{{"dp", one_of({2, 3, 4, 5})}, {"tp", one_of({1, 2, 3})}};
  Sync sync{two_roots(src, dst, random() % 2 == 0 ? 0 : ranks_in(src)), {}};
  const auto add = [&](const char* id, const std::vector<int64_t>& shape, const char* from, const char* to) {
    if (random() % 3 > 0) sync.requests.push_back(request_of(sync.table, id, shape, from, to, one_of({1, 2, 5})));
  };
  add("w1", {44, 32}, "S(0)[0]S(0)[1]", "RS(0)");
  add("w2", {32, 44}, "S(0)S(1)", "RS(1)");
  add("norm", {32}, "S(0)R", "RR");
  add("vocabulary", {157, 32}, "S(0)[0]S(0)[1]", "RS(0)");
  return sync;
}

}  // namespace

TEST_CASE("kinds are in one round as long as a rank has no more messages than allowed") {
  // Every rank sends and receives one message of each kind, to and from other ranks.
  const MeshTable table = two_roots({{"a", 2}, {"b", 3}}, {{"a", 2}, {"b", 3}}, 6);
  const std::vector<Request> requests{request_of(table, "same", {36, 5}, "S(0)[0]S(0)[1]", "S(0)[0]S(0)[1]", 2),
                                      request_of(table, "there", {36, 5}, "S(0)[0]S(0)[1]", "S(0)[1]S(0)[0]", 2),
                                      request_of(table, "back", {36, 5}, "S(0)[1]S(0)[0]", "S(0)[0]S(0)[1]", 2)};
  const auto in_rounds = [&](int64_t messages) {
    const Plan plan = planned(table, uniform_topology(), requests, with_messages(messages));
    CHECK(verify_plan(plan).ok());
    return members_in_rounds(plan);
  };
  CHECK(in_rounds(3) == std::vector<size_t>{3});
  CHECK(in_rounds(2) == std::vector<size_t>{2, 1});
  CHECK(in_rounds(1) == std::vector<size_t>{1, 1, 1});
}

TEST_CASE("exchanges before collectives are in one round as long as messages allow, and take the tensors of a kind together") {
  // Six messages, where all kinds together have more: a round for each tensor of each kind took 837 us, 72 rounds.
  const MeshTable table = two_roots({{"fsdp", 24}, {"tp", 4}}, {{"dp", 16}, {"tp", 6}}, 0);
  const std::vector<Request> requests{request_of(table, "k", {100, 1024}, "S(0)[0]S(0)[1]", "RS(0)", 24),
                                      request_of(table, "w", {1408, 1024}, "S(0)[0]S(0)[1]", "RS(0)", 12)};
  const Plan plan = planned(table, uniform_topology(), requests, with_messages(6));
  CHECK(verify_plan(plan).ok());
  CHECK(plan.bundles.front().rounds.size() <= 14);
  CHECK(plan.bundles.front().totals.predicted_ps < 220'000'000);
}

TEST_CASE("a tensor that is there already takes no messages, and leaves the choice of ways to the others") {
  const MeshTable table = two_roots({{"fsdp", 4}, {"tp", 2}}, {{"dp", 4}, {"tp", 2}}, 0);
  const Request weight = request_of(table, "w", {64, 48}, "S(0)[0]S(0)[1]", "RS(0)", 3);
  const Request norm = request_of(table, "norm", {64}, "RR", "RR", 7);
  for (const int64_t messages : {2, 4, 1024}) {
    const auto of_bundle = [&](const std::vector<Request>& requests) {
      const Plan plan = planned(table, hosts_of(4, 10'000), requests, with_messages(messages));
      CHECK(verify_plan(plan).ok());
      return plan.bundles.front().totals.predicted_ps;
    };
    CHECK(of_bundle({weight, norm}) == of_bundle({weight}));
  }
  BundleRequest bundle = with_messages(1);
  bundle.id = "all";
  bundle.members = {0, 1};
  const PlanOutcome outcome = plan_requests(table, hosts_of(4, 10'000), {weight, norm}, {}, no_spec, {bundle});
  REQUIRE(outcome.failures.size() == 1);
  CHECK(outcome.failures.front().error.message ==
        "bundle 'all' has no rounds within max_messages 1 of those that were tried: some have 2 messages of one rank; raise it to that");
}

TEST_CASE("tensors go in pieces where no number of whole ones has few enough messages") {
  const MeshTable table = two_roots({{"a", 4}}, {{"a", 8}}, 4);
  const Plan plan = planned(table, *topology_preset("h100"), {request_of(table, "w", {33}, "S(0)", "S(0)", 16)}, with_messages(2));
  CHECK(verify_plan(plan).ok());
  CHECK(plan.bundles.front().rounds.size() > 16);
}

TEST_CASE("with as many messages as a refusal says, or more, there is a plan") {
  std::mt19937 random(52);
  const std::regex advice("max_messages [0-9,]+ of those that were tried: some have ([0-9,]+) messages");
  int refused = 0;
  for (int round = 0; round < 150; ++round) {
    CAPTURE(round);
    const Sync sync = sync_of(random);
    if (sync.requests.empty()) continue;
    BundleRequest bundle = with_messages(1 + static_cast<int64_t>(random() % 6));
    bundle.id = "all";
    for (size_t i = 0; i < sync.requests.size(); ++i) bundle.members.push_back(i);
    const PlanOutcome outcome = plan_requests(sync.table, hosts_of(4, 10'000), sync.requests, {}, no_spec, {bundle});
    if (outcome.failures.empty()) {
      CHECK(verify_plan(outcome.plan).ok());
      continue;
    }
    ++refused;
    std::smatch said;
    REQUIRE(std::regex_search(outcome.failures.front().error.message, said, advice));
    const int64_t enough = std::stoll(said[1]);
    CHECK(enough > bundle.max_messages);
    for (const int64_t messages : {enough, enough + 1}) {
      const Plan plan = planned(sync.table, hosts_of(4, 10'000), sync.requests, with_messages(messages));
      CHECK(verify_plan(plan).ok());
    }
  }
  CHECK(refused > 10);
}

}  // namespace meshplan
