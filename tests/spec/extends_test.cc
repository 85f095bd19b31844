// "extends": what an overlay adds to a recorded spec, and what it takes the place of.
#include <doctest/doctest.h>

#include <map>

#include "spec/spec.h"

namespace meshplan {
namespace {

using Files = std::map<std::string, std::string>;

const std::string recorded = R"~({
  "schema": "meshplan/spec/1",
  "mesh": {"dims": [{"name": "dp", "size": 4}, {"name": "tp", "size": 3}]},
  "options": {"planner": "graph", "one_reduction": true},
  "redistributions": [
    {"id": "gather", "tensor": {"shape": [16, 50257], "dtype": "bfloat16"}, "src": ["S(0)", "S(1)"], "dst": ["R", "S(1)"]},
    {"id": "grad", "tensor": {"shape": [16, 50257], "dtype": "bfloat16"}, "src": ["P(sum)", "R"], "dst": ["S(0)", "R"]},
    {"id": "loss", "tensor": {"shape": [], "dtype": "float32"}, "src": ["P(sum)", "R"], "dst": ["R", "R"]}
  ],
  "budgets": {"total": {"wire_bytes": 7, "collectives": 9}, "redistributions": [{"id": "loss", "wire_bytes": 8}]},
  "bundles": [{"id": "step", "redistributions": ["gather", "grad"], "x-recorded": true}, {"id": "end", "redistributions": ["loss"]}]
})~";

std::string overlay(const std::string& extends, const std::string& more) {
  return R"~({"schema": "meshplan/spec/1", "extends": ")~" + extends + "\"" + more + "}";
}

struct Read {
  std::optional<Spec> spec;
  Diagnostics diagnostics;
};

Read read(const Files& files, const std::string& name, const SpecText* again = nullptr) {
  Read result;
  const size_t slash = name.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : name.substr(0, slash + 1);
  const FileReader reader = [&](const std::string& path) -> Result<std::string> {
    const auto found = files.find(folder + path);
    if (found == files.end()) return bad_input("cannot read " + folder + path);
    return found->second;
  };
  result.spec = read_spec(files.at(name), name, reader, result.diagnostics, again);
  CHECK(result.spec.has_value() == !result.diagnostics.has_errors());
  return result;
}

std::string problems(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& d : diagnostics.sorted()) {
    text += d.place.file + ":" + std::to_string(d.place.line) + ": " + d.code + ": " + d.message;
    text += "\n";
  }
  return text;
}

const Budget& budget(const Spec& spec, const std::string& id, bool bundle = false) {
  for (const Budget& each : spec.budgets) {
    if (each.id == id && each.bundle == bundle) return each;
  }
  FAIL("no budget for " << id);
  return spec.budgets.front();
}

}  // namespace

TEST_CASE("an overlay has the meshes and redistributions of the spec that it extends") {
  const Files files = {{"d/recorded.json", recorded}, {"d/step.json", overlay("recorded.json", R"~(, "topology": "h100")~")}};
  const auto alone = read(files, "d/recorded.json").spec;
  const auto spec = read(files, "d/step.json").spec;
  REQUIRE(alone);
  REQUIRE(spec);
  REQUIRE(spec->requests.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(spec->requests[i].id == alone->requests[i].id);
    CHECK(spec->requests[i].src == alone->requests[i].src);
  }
  CHECK(spec->meshes.meshes.size() == alone->meshes.meshes.size());
  CHECK(spec->bundles.size() == 2);
  REQUIRE(spec->topology);
  CHECK(*spec->topology == *topology_preset("h100"));
  CHECK(!alone->topology);
  CHECK(!alone->extended);
  REQUIRE(spec->extended);
  CHECK(spec->extended->file == "d/recorded.json");
  CHECK(*spec->extended->text == recorded);
}

TEST_CASE("single options and limits of an overlay take the place of others; the rest stays") {
  const Files files = {{"recorded.json", recorded}, {"step.json", overlay("recorded.json", R"~(,
    "options": {"planner": "optimal", "groups": "any"},
    "budgets": {"total": {"wire_bytes": 70, "peak_bytes": 71},
                "redistributions": [{"id": "loss", "collectives": 1}, {"id": "grad", "wire_bytes": 2}],
                "bundles": [{"id": "step", "collectives": 3}]},
    "allow": [{"code": "W0301", "id": "loss", "reason": "a scalar"}])~")}};
  const auto spec = read(files, "step.json").spec;
  REQUIRE(spec);
  CHECK(spec->options.planner == PlannerKind::optimal);
  CHECK(spec->options.groups == GroupPolicy::any);
  CHECK(spec->options.one_reduction == true);
  CHECK(spec->budgets.size() == 4);
  CHECK(budget(*spec, "").wire_bytes.value().most == 70);
  CHECK(budget(*spec, "").collectives.value().most == 9);
  CHECK(budget(*spec, "").peak_bytes.value().most == 71);
  CHECK(budget(*spec, "loss").wire_bytes.value().most == 8);
  CHECK(budget(*spec, "loss").collectives.value().most == 1);
  CHECK(budget(*spec, "grad").wire_bytes.value().most == 2);
  CHECK(budget(*spec, "step", true).collectives.value().most == 3);
  // Each is where its file gives it.
  CHECK(budget(*spec, "").collectives->place.file == "recorded.json");
  CHECK(budget(*spec, "").wire_bytes->place.file == "step.json");
  CHECK(budget(*spec, "loss").collectives->place.pointer == "/budgets/redistributions/0/collectives");
  REQUIRE(spec->allow.size() == 1);
  CHECK(spec->allow[0].id == "loss");
}

TEST_CASE("a bundle of an overlay takes the place of one with its id, and no member of another") {
  Files files = {{"recorded.json", recorded}, {"step.json", overlay("recorded.json", R"~(,
    "bundles": [{"id": "step", "redistributions": ["gather"], "max_staging_bytes": 99},
                {"id": "more", "redistributions": ["grad"]}])~")}};
  const auto spec = read(files, "step.json").spec;
  REQUIRE(spec);
  REQUIRE(spec->bundles.size() == 3);
  CHECK(spec->bundles[0].id == "step");
  CHECK(spec->bundles[0].members == std::vector<size_t>{0});
  CHECK(spec->bundles[0].max_staging_bytes == 99);
  CHECK(spec->bundles[1].id == "end");
  CHECK(spec->bundles[2].members == std::vector<size_t>{1});
  files["step.json"] = overlay("recorded.json", ", \n\"bundles\": [{\"id\": \"more\", \"redistributions\": [\"grad\"]}]");
  CHECK(problems(read(files, "step.json").diagnostics) ==
        "step.json:2: E0413: redistribution \"grad\" is in bundle \"step\" of recorded.json already\n");
  // Of several files that extend one another it is the one that gave the bundle last.
  files["team.json"] = overlay("recorded.json", R"~(, "bundles": [{"id": "step", "redistributions": ["gather"]},
    {"id": "more", "redistributions": ["grad"]}])~");
  files["step.json"] = overlay("team.json", ", \n\"bundles\": [{\"id\": \"mine\", \"redistributions\": [\"grad\", \"gather\"]}]");
  CHECK(problems(read(files, "step.json").diagnostics) ==
        "step.json:2: E0413: redistribution \"grad\" is in bundle \"more\" of team.json already\n"
        "step.json:2: E0413: redistribution \"gather\" is in bundle \"step\" of team.json already\n");
}

TEST_CASE("files extend one another, each relative to its own folder; names are found through all") {
  const std::string level = R"~("levels": [{"name": "l", "ranks": 12, "gb_per_s": 3, "latency_ns": 5}])~";
  const Files files = {
      {"a/r/recorded.json", recorded},
      {"a/team.json", overlay("r/recorded.json", R"~(, "topology": {"file": "net/t.json"}, "options": {"groups": "any"})~")},
      {"a/net/t.json", "{" + level + "}"},
      {"b/step.json", overlay("../a/team.json", R"~(, "budgets": {"redistributions": [{"id": "loss", "wire_bytes": 1}]})~")}};
  Files found = files;
  found["b/../a/team.json"] = files.at("a/team.json");
  found["b/../a/r/recorded.json"] = recorded;
  found["b/../a/net/t.json"] = files.at("a/net/t.json");
  const auto spec = read(found, "b/step.json").spec;
  REQUIRE(spec);
  CHECK(spec->options.groups == GroupPolicy::any);
  CHECK(spec->options.planner == PlannerKind::graph);
  REQUIRE(spec->topology);
  CHECK(spec->topology->levels[0].latency_ns == 5);
  CHECK(budget(*spec, "loss").wire_bytes.value().most == 1);
  CHECK(spec->extended->file == "b/../a/r/recorded.json");
}

TEST_CASE("the digest changes with either file, and only then") {
  Files files = {{"recorded.json", recorded}, {"step.json", overlay("recorded.json", "")}};
  const std::string digest = read(files, "step.json").spec->digest;
  files["step.json"] = "// a comment\n" + overlay("recorded.json", "");
  CHECK(read(files, "step.json").spec->digest == digest);
  files["step.json"] = overlay("recorded.json", R"~(, "topology": "h100")~");
  CHECK(read(files, "step.json").spec->digest != digest);
  files["step.json"] = overlay("recorded.json", "");
  files["recorded.json"].replace(recorded.find("50257"), 5, "50304");
  CHECK(read(files, "step.json").spec->digest != digest);
}

TEST_CASE("a text that is in no folder extends nothing but by an absolute path") {
  const Files files = {{"-", overlay("recorded.json", "")}, {"recorded.json", recorded}};
  CHECK(problems(read(files, "-").diagnostics) ==
        "-:1: E0213: \"extends\" is relative to the folder of its file, and this text is not in a file\n");
  const Files absolute = {{"-", overlay("/d/recorded.json", "")}, {"/d/recorded.json", recorded}};
  CHECK(read(absolute, "-").spec);
}

// What `check --record` reads: the hand-written parts of the committed file over a new recording.
TEST_CASE("a recording takes the place of meshes, redistributions and recorded bundles") {
  std::string fresh = R"~({"schema": "meshplan/spec/1",
  "mesh": {"dims": [{"name": "dp", "size": 6}, {"name": "tp", "size": 2}]},
  "redistributions": [
    {"id": "loss", "tensor": {"shape": [], "dtype": "float32"}, "src": ["P(sum)", "R"], "dst": ["R", "R"], "count": 4}]})~";
  SpecText again{"recorded.json (recorded again)", std::make_shared<const std::string>(fresh)};
  const Files files = {{"recorded.json", recorded},
                       {"step.json", overlay("recorded.json",
                                             ",\n\"budgets\": {\"redistributions\": [{\"id\": \"loss\", "
                                             "\"collectives\": 1}]}")},
                       {"gone.json", overlay("recorded.json",
                                             ",\n\"budgets\": {\"redistributions\": [{\"id\": \"grad\", "
                                             "\"collectives\": 1}]}")}};
  for (const char* name : {"recorded.json", "step.json"}) {
    const auto spec = read(files, name, &again).spec;
    REQUIRE(spec);
    REQUIRE(spec->requests.size() == 1);
    CHECK(spec->requests[0].count == 4);
    CHECK(spec->options.planner == PlannerKind::graph);
    CHECK(budget(*spec, "loss").wire_bytes.value().most == 8);
    REQUIRE(spec->bundles.size() == 1);
    CHECK(spec->bundles[0].id == "end");
    CHECK(spec->bundles[0].members == std::vector<size_t>{0});
    CHECK(spec->extended->file == again.file);
  }
  CHECK(problems(read(files, "gone.json", &again).diagnostics) ==
        "gone.json:2: E0411: there is no redistribution \"grad\" in recorded.json (recorded again)\n");
  again.text = std::make_shared<const std::string>("{\"schema\": \"meshplan/spec/1\",\n\"mesh\": 1}");
  CHECK(problems(read(files, "step.json", &again).diagnostics).find("recorded.json (recorded again):2: E0201") == 0);
}

}  // namespace meshplan
