// Wrong warnings and names are refused: of random plans, everything that a warning says is made wrong, one thing at a time.
#include "verify/warnings.h"

#include <doctest/doctest.h>

#include <functional>
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

// A random question, asked so often that a flatten that saves anything is worth its communicator.
std::optional<Plan> random_plan(Random& random) {
  MeshTable table = test::random_table(random);
  if (random.one_in(2)) table.flattens.clear();
  PlanOptions options;
  const bool by_rules = random.one_in(2);
  options.planner = by_rules ? PlannerKind::greedy : PlannerKind::optimal;
  options.rules = by_rules ? Rules::dtensor : Rules::native;
  Request request = test::random_request(random, table, by_rules ? 0 : 2);
  request.count = 1'000'000;
  Topology topology;
  topology.levels = {{"inside", 2, 370'000, 10'000, 500}, {"across", 1'048'576, 45'000, 25'000, 500}};
  PlanOutcome outcome = plan_requests(table, topology, {request}, options, "sha256:" + std::string(64, '0'));
  if (!outcome.failures.empty()) return std::nullopt;
  return std::move(outcome.plan);
}

// "right", or why the plan of this text is refused, without its digest.
std::string verdict(const json& plan) {
  const auto read = read_plan(plan.dump(), false);
  if (!read) return read.error().message;
  const Status status = verify_plan(*read);
  return status ? "right" : status.error().message;
}

// One thing that a warning says, made wrong; false where it does not say it.
struct Lie {
  std::string name;
  std::function<bool(json& warning)> tell;
};

std::vector<Lie> lies() {
  const auto has_fix = [](const json& w) { return !w["fix"].is_null(); };
  const auto of_fix = [=](const std::string& name, const std::function<void(json & fix)>& tell) {
    return Lie{"fix: " + name, [=](json& w) {
                 if (has_fix(w)) tell(w["fix"]);
                 return has_fix(w);
               }};
  };
  const auto always = [](const std::string& name, const std::function<void(json & warning)>& tell) {
    return Lie{name, [=](json& w) {
                 tell(w);
                 return true;
               }};
  };
  return {
      of_fix("an unknown dim", [](json& f) { f["dims"][0] = "nowhere"; }),
      of_fix("an empty dim", [](json& f) { f["dims"][1] = ""; }),
      of_fix("a dim less", [](json& f) { f["dims"].erase(0); }),
      of_fix("a dim more", [](json& f) { f["dims"].push_back(f["dims"][0]); }),
      of_fix("an empty name", [](json& f) { f["name"] = ""; }),
      of_fix("another name", [](json& f) { f["name"] = "x" + f["name"].get<std::string>(); }),
      of_fix("another call", [](json& f) { f["torch"] = f["torch"].get<std::string>() + ")"; }),
      Lie{"no fix",
          [=](json& w) {
            const bool had = has_fix(w);
            w["fix"] = nullptr;
            return had;
          }},
      always("more saved collectives than there are", [](json& w) { w["saves_collectives"] = 1'000'000; }),
      always("a plan of endless collectives", [](json& w) { w["saves_collectives"] = -1'000'000; }),
      always("INT64_MIN collectives", [](json& w) { w["saves_collectives"] = INT64_MIN; }),
      always("more time than there is", [](json& w) { w["saves_ns"] = 1'000'000'000'000; }),
      always("more steps than there are", [](json& w) { w["operations"] = 1'000; }),
      always("no steps", [](json& w) { w["operations"] = 0; }),
      always("a local step", [](json& w) { w["collective"] = "slice"; }),
      always("an unknown dim", [](json& w) { w["dims"][0] = "nowhere"; }),
      always("a dim less", [](json& w) { w["dims"].erase(0); }),
      always("another mesh", [](json& w) { w["mesh"] = "nowhere"; }),
      always("an empty message", [](json& w) { w["message"] = ""; }),
  };
}

TEST_CASE("whatever a warning says wrongly is refused") {
  Random random(20260611);
  std::map<std::string, int64_t> refused;
  std::map<std::string, int64_t> kinds;
  for (int64_t round = 0; round < 20'000; ++round) {
    const auto plan = random_plan(random);
    if (!plan || plan->redistributions[0].warnings.empty()) continue;
    const json right = json::parse(write_plan(*plan));
    REQUIRE(verdict(right) == "right");
    const json& warnings = right["redistributions"][0]["warnings"];
    for (size_t i = 0; i < warnings.size(); ++i) {
      ++kinds[warnings[i]["code"].get<std::string>() + " " + right["redistributions"][0]["rules"].get<std::string>()];
      for (const Lie& lie : lies()) {
        json broken = right;
        if (!lie.tell(broken["redistributions"][0]["warnings"][i])) continue;
        CHECK_MESSAGE(verdict(broken) != "right", "round " << round << ": " << lie.name << " of " << warnings[i].dump());
        ++refused[lie.name];
      }
    }
  }
  for (const auto& [kind, count] : kinds) MESSAGE(kind << ": " << count);
  CHECK(kinds.size() == 4);  // the three of PyTorch's rules and the native one
  for (const Lie& lie : lies()) {
    INFO(lie.name);
    CHECK(refused[lie.name] > 100);
  }
}

TEST_CASE("empty ids are refused") {
  Random random(20260612);
  std::optional<Plan> plan;
  while (!plan || plan->redistributions[0].steps.empty()) plan = random_plan(random);
  json broken = json::parse(write_plan(*plan));
  REQUIRE(verdict(broken) == "right");
  broken["redistributions"][0]["id"] = "";
  CHECK(verdict(broken) == "a redistribution has an empty id");

  const MeshTable table = test::random_table(random);
  std::vector<Request> requests{test::random_request(random, table, 0)};
  const PlanOutcome outcome = plan_requests(table, uniform_topology(), requests, {}, "sha256:" + std::string(64, '0'), {{"sync", {0}}});
  REQUIRE(outcome.failures.empty());
  broken = json::parse(write_plan(outcome.plan));
  REQUIRE(verdict(broken) == "right");
  broken["bundles"][0]["id"] = "";
  CHECK(verdict(broken) == "a bundle has an empty id");
}

}  // namespace
}  // namespace meshplan
