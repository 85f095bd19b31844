// What is said wrongly of other plans is refused: of random plans, everything that alternatives and audit findings say is made wrong,
// one thing at a time.
#include "verify/other_plans.h"

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "../cost/small_mesh.h"
#include "cost/topology.h"
#include "planner/planner.h"
#include "verify/random_world.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

using nlohmann::json;
using test::Random;

// The text of a plan that lists what other plans there are.
std::optional<json> plan_with_others(Random& random) {
  // So many ranks that zero-filled shards may be summed sooner than gathered.
  const bool many = random.one_in(4);
  MeshTable table;
  table.meshes = {test::mesh_of({2, 96})};
  if (!many) table = test::random_table(random);
  PlanOptions options;
  options.audit = true;
  options.alternatives = 1 + random.below(5);
  const bool by_rules = random.one_in(2);
  options.planner = by_rules ? (random.one_in(2) ? PlannerKind::greedy : PlannerKind::graph) : PlannerKind::optimal;
  options.rules = by_rules ? Rules::dtensor : Rules::native;
  if (!by_rules && random.one_in(3)) options.groups = GroupPolicy::any;
  Request request = test::random_request(random, table, by_rules ? 0 : 2);
  for (int64_t& n : request.tensor.shape) n *= random.one_in(2) ? 64 : 1;
  Topology topology;
  topology.levels = {{"inside", 2, 370'000, 10'000, 500}, {"across", 1'048'576, 45'000, 25'000, 500}};
  if (many) topology = *topology_preset("h100");
  const PlanOutcome outcome = plan_requests(table, topology, {request}, options, "sha256:" + std::string(64, '0'));
  if (!outcome.failures.empty()) return std::nullopt;
  return json::parse(write_plan(outcome.plan));
}

// "right", or why the plan of this text is refused, without its digest.
std::string verdict_of(const json& plan) {
  const auto read = read_plan(plan.dump(), false);
  if (!read) return read.error().message;
  const Status status = verify_plan(*read);
  return status ? "right" : status.error().message;
}

// One thing that is said, made wrong; false where it is not said. `r`: the redistribution, `i`: which of its list.
struct OtherLie {
  std::string name;
  std::string list;
  std::function<bool(json& r, size_t i)> tell;
};

OtherLie alternative_lie(const std::string& name, const std::function<bool(json& r, size_t i)>& tell) {
  return {"alternative: " + name, "alternatives", tell};
}

OtherLie total_lie(const std::string& what, const std::function<int64_t(int64_t)>& lie) {
  return alternative_lie(what, [=](json& r, size_t i) {
    json& total = r["alternatives"][i]["totals"][what];
    const int64_t was = total;
    total = lie(was);
    return total != was;
  });
}

std::vector<OtherLie> alternative_lies() {
  const auto none = [](int64_t) { return 0; };
  const auto more = [](int64_t n) { return n + 1; };
  return {
      alternative_lie("no trace",
                      [](json& r, size_t i) {
                        r["alternatives"][i]["trace"] = "banana";
                        return true;
                      }),
      alternative_lie("a state that is none",
                      [](json& r, size_t i) {
                        std::string trace = r["alternatives"][i]["trace"];
                        trace.insert(trace.rfind("->"), "->banana");
                        r["alternatives"][i]["trace"] = trace;
                        return true;
                      }),
      alternative_lie("another source",
                      [](json& r, size_t i) {
                        const std::string trace = r["alternatives"][i]["trace"];
                        r["alternatives"][i]["trace"] = trace.substr(trace.find("->") + 2);
                        return true;
                      }),
      alternative_lie("another target",
                      [](json& r, size_t i) {
                        const std::string trace = r["alternatives"][i]["trace"];
                        r["alternatives"][i]["trace"] = trace + "->" + trace.substr(0, trace.find("->"));
                        return true;
                      }),
      alternative_lie("the plan itself",
                      [](json& r, size_t i) {
                        r["alternatives"][i]["trace"] = r["trace"];
                        return true;
                      }),
      alternative_lie("twice",
                      [](json& r, size_t i) {
                        r["alternatives"].push_back(r["alternatives"][i]);
                        return true;
                      }),
      alternative_lie("not the best first",
                      [](json& r, size_t i) {
                        json& all = r["alternatives"];
                        if (i == 0 || all[i]["totals"]["predicted_ns"] == all[i - 1]["totals"]["predicted_ns"]) return false;
                        std::swap(all[i], all[i - 1]);
                        return true;
                      }),
      total_lie("peak_bytes", none),
      total_lie("collectives", [](int64_t n) { return n + 100; }),
      alternative_lie("no collectives",
                      [](json& r, size_t i) {
                        json& totals = r["alternatives"][i]["totals"];
                        totals["collectives"] = 0;
                        return totals["predicted_ns"] != 0;
                      }),
      total_lie("wire_bytes", [](int64_t n) { return n > 0 ? -n : 0; }),
      total_lie("lower_bound_bytes", more),
      total_lie("lower_bound_ns", more),
      alternative_lie("cheaper than the plan",
                      [](json& r, size_t i) {
                        const int64_t least = r["totals"]["predicted_ns"].get<int64_t>() - r["proven_gap_ns"].get<int64_t>();
                        r["alternatives"][i]["totals"]["predicted_ns"] = least - 1;
                        return least > 0;
                      }),
  };
}

// `told`: whether it was.
OtherLie finding_lie(const std::string& name, const std::function<bool(json& finding, const json& r)>& tell) {
  return {"finding: " + name, "audit", [=](json& r, size_t i) { return tell(r["audit"][i], r); }};
}

// Whether its figures are those of the plan that is there, beside a better one that is not.
bool is_of_the_plan(const json& finding) { return finding["code"] == "A0410" || finding["code"] == "A0411"; }

std::vector<OtherLie> finding_lies() {
  const auto always = [](const std::string& key, const json& value) {
    return finding_lie(key + " " + value.dump(), [=](json& f, const json&) {
      f[key] = value;
      return true;
    });
  };
  // Of A0408, where the better plan is the one in the file.
  const auto one_more = [](const std::string& key) {
    return finding_lie("one more " + key, [=](json& f, const json&) {
      f[key] = f[key].get<int64_t>() + 1;
      return f["code"] == "A0408";
    });
  };
  return {
      always("code", "A9999"),
      always("code", "A0400"),
      always("kind", "foo"),
      finding_lie("another kind",
                  [](json& f, const json&) {
                    f["kind"] = f["code"] == "A0409" ? "torch_moves_more" : "split_saves";
                    return true;
                  }),
      always("step", 77),
      finding_lie("a step of none",
                  [](json& f, const json&) {
                    f["step"] = f["step"] == -1 ? 0 : -1;
                    return true;
                  }),
      always("message", ""),
      always("better_trace", "banana"),
      finding_lie("no better trace",
                  [](json& f, const json&) {
                    f["better_trace"] = "";
                    return f["better_wire_bytes"] != 0;
                  }),
      one_more("better_wire_bytes"),
      one_more("better_predicted_ns"),
      finding_lie("a better plan below the bound",
                  [](json& f, const json& r) {
                    f["better_wire_bytes"] = r["totals"]["lower_bound_bytes"].get<int64_t>() - 1;
                    return f["better_wire_bytes"] >= 0 && !f["better_trace"].get<std::string>().empty();
                  }),
      finding_lie("figures of the plan itself",
                  [](json& f, const json& r) {
                    f["wire_bytes"] = f["wire_bytes"].get<int64_t>() + 1;
                    return r["rules"] == "dtensor" || is_of_the_plan(f);
                  }),
      finding_lie("times of the plan itself",
                  [](json& f, const json& r) {
                    f["predicted_ns"] = f["predicted_ns"].get<int64_t>() + 1;
                    return r["rules"] == "dtensor" || is_of_the_plan(f);
                  }),
      finding_lie("figures that another finding has otherwise",
                  [](json& f, const json& r) {
                    f["wire_bytes"] = f["wire_bytes"].get<int64_t>() + 1;
                    return f["code"] == "A0408" && r["audit"][0]["code"] != "A0408" && r["audit"][0]["code"] != "A0403";
                  }),
      finding_lie("figures that its message has otherwise",
                  [](json& f, const json&) {
                    f["wire_bytes"] = f["wire_bytes"].get<int64_t>() * 2 + 1;
                    return f["code"] == "A0408";
                  }),
      finding_lie("times that its message has otherwise",
                  [](json& f, const json&) {
                    json& told = f[is_of_the_plan(f) ? "better_predicted_ns" : "predicted_ns"];
                    told = told.get<int64_t>() * 2 + 1;
                    return f["code"] == "A0408" || f["code"] == "A0409" || is_of_the_plan(f);
                  }),
      finding_lie("not the better plan",
                  [](json& f, const json&) {
                    f["predicted_ns"] = f["better_predicted_ns"].get<int64_t>() - 1;
                    return (f["code"] == "A0408" || is_of_the_plan(f)) && f["predicted_ns"] > 0;
                  }),
  };
}

TEST_CASE("whatever is said wrongly of other plans is refused") {
  Random random(20261123);
  std::vector<OtherLie> all = alternative_lies();
  for (OtherLie& lie : finding_lies()) all.push_back(std::move(lie));
  std::map<std::string, int64_t> refused;
  std::map<std::string, int64_t> codes;
  for (int64_t round = 0; round < 3'000; ++round) {
    const auto right = plan_with_others(random);
    if (!right) continue;
    const json& r = (*right)["redistributions"][0];
    REQUIRE_MESSAGE(verdict_of(*right) == "right", "round " << round);
    for (const json& finding : r["audit"]) ++codes[finding["code"].get<std::string>()];
    for (const OtherLie& lie : all) {
      for (size_t i = 0; i < r[lie.list].size(); ++i) {
        json broken = *right;
        if (!lie.tell(broken["redistributions"][0], i)) continue;
        CHECK_MESSAGE(verdict_of(broken) != "right", "round " << round << ": " << lie.name << " of " << r[lie.list][i].dump());
        ++refused[lie.name];
      }
    }
  }
  for (const auto& [code, count] : codes) MESSAGE(code << ": " << count);
  CHECK(codes.size() >= 7);
  CHECK(codes["A0411"] > 20);
  for (const OtherLie& lie : all) {
    INFO(lie.name);
    CHECK(refused[lie.name] > 20);
  }
}

TEST_CASE("what is wrong is named with both numbers") {
  Random random(20261124);
  std::optional<json> plan;
  const auto has_all = [](const json& r) {
    return r["alternatives"].size() > 1 && !r["audit"].empty() && r["audit"].back()["code"] == "A0408" &&
           r["alternatives"][0]["totals"]["predicted_ns"] != r["alternatives"][1]["totals"]["predicted_ns"];
  };
  while (!plan || !has_all((*plan)["redistributions"][0])) plan = plan_with_others(random);
  const json& r = (*plan)["redistributions"][0];
  const std::string place = "redistribution '" + r["id"].get<std::string>() + "': its ";

  json broken = *plan;
  broken["redistributions"][0]["audit"].back()["better_predicted_ns"] = 99;
  CHECK(verdict_of(broken) == place + "audit finding 'A0408': better_predicted_ns is 99, the plan has " +
                                  std::to_string(r["totals"]["predicted_ns"].get<int64_t>()));
  broken = *plan;
  broken["redistributions"][0]["audit"].back()["step"] = 77;
  CHECK(verdict_of(broken) == place + "audit finding 'A0408': step is 77, as it is of no step of the plan it should be -1");
  broken = *plan;
  json& all = broken["redistributions"][0]["alternatives"];
  std::swap(all[0], all[1]);
  CHECK(verdict_of(broken) == place + "alternative '" + all[1]["trace"].get<std::string>() + "': predicted_ns is " +
                                  std::to_string(all[1]["totals"]["predicted_ns"].get<int64_t>()) +
                                  ", the best is the first, the one before it takes " +
                                  std::to_string(all[0]["totals"]["predicted_ns"].get<int64_t>()));
}

}  // namespace
}  // namespace meshplan
