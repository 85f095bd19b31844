// Numbers said in words, and what a file's options forbid: of random plans, each made wrong, one at a time.
#include "verify/sentences.h"

#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "cost/topology.h"
#include "planner/planner.h"
#include "verify/random_world.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

using nlohmann::json;
using test::Random;

std::string refusal_of(const json& plan) {
  const auto read = read_plan(plan.dump(), false);
  if (!read) return read.error().message;
  const Status status = verify_plan(*read);
  return status ? "" : status.error().message;
}

// The text with each number in it one more, one after the other.
std::vector<std::string> with_other_numbers(const std::string& text) {
  std::vector<std::string> others;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (end > at) others.push_back(text.substr(0, at) + std::to_string(std::stoll(text.substr(at, end - at)) + 1) + text.substr(end));
    at = end + 1;
  }
  return others;
}

json random_plan_by(Random& random, PlannerKind planner, int64_t max_memory_bytes) {
  const MeshTable table = test::random_table(random);
  PlanOptions options;
  options.planner = planner;
  options.rules = planner == PlannerKind::optimal ? Rules::native : Rules::dtensor;
  options.max_memory_bytes = max_memory_bytes;
  Request request = test::random_request(random, table, planner == PlannerKind::greedy ? 0 : 2);
  request.count = 1'000'000;
  Topology topology;
  topology.levels = {{"inside", 2, 370'000, 10'000, 500}, {"across", 1'048'576, 45'000, 25'000, 500}};
  const PlanOutcome outcome = plan_requests(table, topology, {request}, options, "sha256:" + std::string(64, '0'));
  return outcome.failures.empty() ? json::parse(write_plan(outcome.plan)) : json();
}

TEST_CASE("what may be said is not found inside a longer number") {
  using verification::check_numbers;
  CHECK(!check_numbers("one collective of 4 ranks", {"4 ranks"}));
  CHECK(!check_numbers("no number", {}));
  CHECK(!check_numbers("over dp2 and tp, 4 ranks", {"over dp2 and tp", "4 ranks"}));
  CHECK(check_numbers("one collective of 14 ranks", {"4 ranks"}) ==
        "'one collective of 14 ranks' says 14 at its character 19, which is not a number of what it is about");
  CHECK(check_numbers("tensor dim 12", {"tensor dim 1"}));
  CHECK(check_numbers("4 ranks, 4 steps", {"4 ranks"}));
}

TEST_CASE("every number in a reason, a message and an unmerged trace is checked") {
  Random random(20261128);
  std::map<std::string, int64_t> refused;
  const auto check_all = [&](json& plan, json& text, const std::string& what) {
    const std::string right = text;
    for (const std::string& other : with_other_numbers(right)) {
      text = other;
      CHECK_MESSAGE(!refusal_of(plan).empty(), what << " '" << right << "' said '" << other << "'");
      ++refused[what];
    }
    text = right;
  };
  for (int64_t round = 0; round < 3'000; ++round) {
    const auto planner = static_cast<PlannerKind>(random.below(3));
    json plan = random_plan_by(random, planner, 0);
    if (plan.is_null()) continue;
    REQUIRE(refusal_of(plan).empty());
    json& r = plan["redistributions"][0];
    const std::string by = planner == PlannerKind::optimal ? "searched" : "by rules";
    for (json& step : r["steps"]) check_all(plan, step["why"], by + ", reason");
    for (json& warning : r["warnings"]) check_all(plan, warning["message"], by + ", message");
    check_all(plan, r["unmerged_trace"], by + ", unmerged trace");
  }
  for (const char* what : {"searched, reason", "by rules, reason", "searched, message", "by rules, message", "searched, unmerged trace",
                           "by rules, unmerged trace"}) {
    INFO(std::string(what));
    CHECK(refused[what] > 10);
  }
}

TEST_CASE("under PyTorch's rules the collectives that a warning saves are counted") {
  Random random(20261129);
  int64_t refused = 0;
  int64_t two_runs = 0;
  for (int64_t round = 0; round < 6'000; ++round) {
    json plan = random_plan_by(random, random.one_in(2) ? PlannerKind::greedy : PlannerKind::graph, 0);
    if (plan.is_null()) continue;
    for (json& warning : plan["redistributions"][0]["warnings"]) {
      const int64_t saves = warning["saves_collectives"];
      two_runs += saves > std::ssize(warning["dims"]) - 1 ? 1 : 0;
      for (const int64_t other : {saves - 1, saves + 1}) {
        warning["saves_collectives"] = other;
        // In its message, too.
        json said = warning["message"];
        const std::string text = said;
        const auto words = [](int64_t n) { return " and " + std::to_string(n) + (n == 1 ? " collective" : " collectives"); };
        if (const size_t at = text.find(words(saves)); at != std::string::npos) warning["message"] = text.substr(0, at) + words(other);
        CHECK_MESSAGE(!refusal_of(plan).empty(), warning.dump());
        warning["message"] = said;
        ++refused;
      }
      warning["saves_collectives"] = saves;
      REQUIRE(refusal_of(plan).empty());
    }
  }
  CHECK(refused > 100);
  MESSAGE(refused << " refused, " << two_runs << " warnings of more than one run");
}

TEST_CASE("steps keep to the options that the file says it was planned with") {
  Random random(20261130);
  int64_t merged = 0;
  int64_t large = 0;
  for (int64_t round = 0; round < 3'000; ++round) {
    json plan = random_plan_by(random, round % 2 == 0 ? PlannerKind::greedy : PlannerKind::optimal, -1);
    if (plan.is_null()) continue;
    REQUIRE(refusal_of(plan).empty());
    json other = plan;
    other["options"]["merge"] = false;
    if (const std::string why = refusal_of(other); !why.empty())
      merged += why.find("say not to merge") != std::string::npos ? 1 : 1'000'000;
    other = plan;
    other["options"]["max_memory_bytes"] = 0;
    if (const std::string why = refusal_of(other); !why.empty())
      large += why.find("max_memory_bytes is 0") != std::string::npos ? 1 : 1'000'000;
  }
  CHECK(merged > 20);
  CHECK(large > 20);
  CHECK(merged + large < 1'000'000);
}

}  // namespace
}  // namespace meshplan
