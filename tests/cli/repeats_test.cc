// A redistribution that repeats an earlier one through every command: its name stands for its
// steps.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "base/sha256.h"
#include "fake_system.h"
#include "replay/report.h"

namespace meshplan {
namespace {

using namespace test;
using nlohmann::json;

const std::string repeating = R"~({
  "schema": "meshplan/spec/1",
  "mesh": {"dims": [{"name": "dp", "size": 2}, {"name": "tp", "size": 2}]},
  "redistributions": [
    {"id": "wq", "tensor": {"shape": [8, 8], "dtype": "float32"}, "src": ["S(0)", "S(1)"], "dst": ["R", "S(1)"]},
    {"id": "loss", "tensor": {"shape": [], "dtype": "float32"}, "src": ["P(sum)", "P(sum)"], "dst": ["R", "R"], "count": 5},
    {"id": "wk", "tensor": {"shape": [8, 8], "dtype": "float32"}, "src": ["S(0)", "S(1)"], "dst": ["R", "S(1)"], "count": 3}
  ]
})~";

std::string with_digest(json plan) {
  plan.erase("digest");
  plan["digest"] = "sha256:" + sha256_hex(plan.dump());
  return plan.dump();
}

// The plan of `repeating`, and the same with every redistribution written out.
struct Plans {
  FakeSystem system;
  json named;
  json written_out;

  Plans() {
    system.files["spec.json"] = repeating;
    const Answer planned = run(system, {"plan", "spec.json", "-o", "named.json", "-q", "-W", "no-missing-flatten"});
    REQUIRE(planned.code == 0);
    named = json::parse(system.files["named.json"]);
    written_out = named;
    json& list = written_out["redistributions"];
    list[2] = list[0];
    list[2]["id"] = "wk";
    list[2]["count"] = 3;
    system.files["out.json"] = with_digest(written_out);
  }
  Answer with(const json& plan, const std::vector<std::string>& words) {
    system.files["other.json"] = with_digest(plan);
    return run(system, words);
  }
};

TEST_CASE("the plan holds equal questions once") {
  Plans plans;
  CHECK(plans.named["redistributions"][2] == json{{"id", "wk"}, {"count", 3}, {"same_as", "wq"}});
  CHECK(plans.named["totals"]["collectives"] == 1 + 3 + 5);
}

TEST_CASE("every command takes a repeat and the same written out alike") {
  Plans plans;
  const std::vector<std::vector<std::string>> commands{{"show", "FILE", "--detail", "full"},
                                                       {"show", "FILE", "--format", "json"},
                                                       {"show", "FILE", "--format", "html"},
                                                       {"show", "FILE", "--format", "perfetto"},
                                                       {"show", "FILE", "--format", "torch"},
                                                       {"explain", "FILE"},
                                                       {"explain", "FILE", "wk"},
                                                       {"run", "FILE", "--backend", "host"}};
  for (std::vector<std::string> words : commands) {
    INFO(words[0] << " " << words.back());
    words[1] = "named.json";
    const Answer named = run(plans.system, words);
    words[1] = "out.json";
    const Answer written_out = run(plans.system, words);
    CHECK(named.code == 0);
    const auto lines = [](std::string text) {
      const size_t digest = text.find("sha256:");  // which tells the two files apart
      return digest == std::string::npos ? text : text.erase(digest, 71);
    };
    CHECK(lines(named.out) == lines(written_out.out));
    CHECK(named.out.find("wk") != std::string::npos);
  }
  const Answer verified = run(plans.system, {"verify", "named.json"});
  CHECK(verified.code == 0);
  CHECK(verified.err.find("3 redistributions") != std::string::npos);
  CHECK(run(plans.system, {"verify", "out.json"}).code == 0);
  CHECK(run(plans.system, {"diff", "named.json", "out.json"}).code == 0);
  CHECK(run(plans.system, {"check", "spec.json", "out.json", "-W", "no-missing-flatten"}).code == 0);
}

TEST_CASE("steps are shown once, under the first that has them") {
  Plans plans;
  const std::string shown = run(plans.system, {"show", "named.json"}).out;
  CHECK(shown.find("\nwk x3  the same as wq\n") != std::string::npos);
  // The most expensive first: there wq comes second.
  const std::string top = run(plans.system, {"show", "named.json", "--top", "3"}).out;
  CHECK(top.find("\nwq  the same as wk\n") != std::string::npos);
  CHECK(run(plans.system, {"show", "named.json", "--id", "wk"}).out.find("all_gather") != std::string::npos);
  CHECK(run(plans.system, {"explain", "named.json"}).out.find("\nwk (3 times): the same as wq\n") != std::string::npos);
  CHECK(run(plans.system, {"explain", "named.json", "wk"}).out.find("step 0: all_gather") != std::string::npos);
}

TEST_CASE("what repeats another is replayed with it, and the report names every redistribution") {
  Plans plans;
  const auto replayed = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"run", "named.json", "--backend", "host", "--report", "report.json"};
    words.insert(words.end(), more.begin(), more.end());
    return run(plans.system, words);
  };
  const Answer answer = replayed({});
  REQUIRE(answer.code == 0);
  CHECK(
      answer.out ==
      "right  wq: 1 step, 4 ranks, 128 elements\nright  loss: 1 step, 4 ranks, 4 elements\n"
      "right  wk: the same as wq\nhost: 3 redistributions on 4 ranks, 132 elements checked, 0 wrong; 1 repeats another, replayed with it\n");
  const json report = json::parse(plans.system.files["report.json"]);
  std::vector<std::string> ids;
  for (const json& r : report["redistributions"]) ids.push_back(r["id"]);
  CHECK(ids == std::vector<std::string>{"wq", "loss", "wk"});
  json wk = report["redistributions"][2];
  CHECK(wk["same_as"] == "wq");
  CHECK(wk["count"] == 3);
  CHECK(wk["steps"].empty());
  json wq = report["redistributions"][0];
  CHECK(!wq.contains("same_as"));
  CHECK(wq["steps"].size() == 1);
  for (const char* key : {"checked", "wrong", "dtype", "shape", "replay_shape", "shrunk", "ranks", "predicted_ns", "differences"})
    CHECK(wk[key] == wq[key]);
  // One by itself, and those beside a fault, which strikes one alone.
  CHECK(replayed({"--id", "wk"}).out.find("right  wk: 1 step, 4 ranks, 128 elements\n") == 0);
  const std::string struck = replayed({"--inject", "0:0:flip"}).out;
  CHECK(struck.find("WRONG  wq: 1 step") == 0);
  CHECK(struck.find("\nright  wk: 1 step, 4 ranks, 128 elements\n") != std::string::npos);
  CHECK(struck.find("host: 3 redistributions on 4 ranks, 260 elements checked, ") != std::string::npos);
  // Of data that is measured each is timed.
  CHECK(replayed({"--measure", "--repeat", "1"}).code == 0);
  CHECK(json::parse(plans.system.files["report.json"])["redistributions"][2]["steps"].size() == 1);
}

TEST_CASE("what repeats a wrong one is wrong with it") {
  // A step that was altered in a file would not be verified: the report of the replay is asked.
  ReplayReport report;
  report.backend = "host";
  report.ranks = 4;
  RedistributionReport wq;
  wq.id = "wq";
  wq.steps = 1;
  wq.ranks = 4;
  wq.checked = 128;
  wq.wrong = 3;
  wq.overruns.push_back({1, 0});
  report.redistributions = {wq, wq};
  report.redistributions[1].id = "wk";
  report.redistributions[1].same_as = "wq";
  CHECK(wrong_elements(report) == 3);
  CHECK(checked_elements(report) == 128);
  CHECK(!all_right(report));
  CHECK(what_is_wrong(report) == "3 of 128 elements are wrong; 1 buffer is written past its end");
  const std::string text = to_text(report);
  CHECK(text.find("\nWRONG  wk: the same as wq\n") != std::string::npos);
  CHECK(text.find("written past") == text.rfind("written past"));
}

TEST_CASE("a wrong reference is bad input, a wrong figure behind a right one is wrong data") {
  Plans plans;
  const auto verified = [&](const auto& change) {
    json plan = plans.named;
    change(plan["redistributions"]);
    return plans.with(plan, {"verify", "other.json"});
  };
  const Answer forward = verified([](json& r) { std::swap(r[0], r[2]); });
  CHECK(forward.code == 2);
  CHECK(forward.err.find("no redistribution 'wq' comes before 'wk'") != std::string::npos);
  CHECK(verified([](json& r) { r[2]["same_as"] = "wk"; }).code == 2);
  CHECK(verified([](json& r) { r[2]["steps"] = r[0]["steps"]; }).code == 2);
  CHECK(verified([](json& r) { r[1]["id"] = "wq"; }).code == 2);
  // It counts and is summed as what it repeats.
  CHECK(verified([](json& r) { r[2]["same_as"] = "loss"; }).code == 4);
  CHECK(verified([](json& r) { r[2]["count"] = 4; }).code == 4);
  CHECK(verified([](json& r) { r.erase(2); }).code == 4);
  const Answer figure = verified([](json& r) { r[0]["steps"][0]["wire_bytes"] = 1; });
  CHECK(figure.code == 4);
  CHECK(figure.err.find("redistribution 'wq'") != std::string::npos);
}

}  // namespace
}  // namespace meshplan
