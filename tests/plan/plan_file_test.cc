// Law: reading a plan file and writing it again gives the same bytes, and any bytes give a plan or an error.
#include <doctest/doctest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "base/sha256.h"
#include "base/utf8.h"
#include "json/parse.h"
#include "json/write.h"
#include "plan/firsts.h"
#include "plan/plan.h"
#include "sample.h"

namespace meshplan {
namespace {

using nlohmann::json;

std::string message_of(const std::string& text, bool check_digest = false) {
  const auto plan = read_plan(text, check_digest);
  return plan.ok() ? "" : plan.error().message;
}

// The sample with one change made to its JSON.
std::string changed(const std::function<void(json&)>& change) {
  json document = json::parse(write_plan(sample_plan()));
  change(document);
  return document.dump();
}

TEST_CASE("a plan that was read is written byte for byte") {
  const std::string text = write_plan(sample_plan());
  const auto plan = read_plan(text);
  REQUIRE_MESSAGE(plan.ok(), message_of(text, true));
  CHECK(write_plan(*plan) == text);
  CHECK(write_plan(Plan{}).size() > 0);
}

TEST_CASE("reading gives back every field") {
  const Plan plan = sample_plan();
  const auto again = read_plan(write_plan(plan));
  REQUIRE(again.ok());
  CHECK(again->spec_digest == plan.spec_digest);
  CHECK(*again->meshes.meshes.front().universe == *plan.meshes.meshes.front().universe);
  CHECK(again->meshes.flattens == plan.meshes.flattens);
  REQUIRE(again->meshes.meshes.size() == 2);
  CHECK(again->meshes.meshes[1].dims == plan.meshes.meshes[1].dims);
  CHECK(again->meshes.meshes[1].group_options == plan.meshes.meshes[1].group_options);
  CHECK(again->topology == plan.topology);
  CHECK(again->groups == plan.groups);
  CHECK(again->totals.collectives == 97);
  REQUIRE(again->redistributions.size() == 3);
  const PlannedRedistribution& r = again->redistributions[0];
  const PlannedRedistribution& wanted = plan.redistributions[0];
  CHECK(r.request.id == wanted.request.id);
  CHECK(r.request.src == wanted.request.src);
  CHECK(r.request.dst == wanted.request.dst);
  CHECK(r.request.any_dst_order);
  CHECK(r.request.direction == Direction::backward);
  CHECK(r.request.reduce_dtype == DType::float32);
  CHECK(r.dst == wanted.dst);
  REQUIRE(r.steps.size() == 2);
  Step first = wanted.steps[0];
  first.predicted_ps = 10'001'000;  // the file holds whole nanoseconds, rounded up
  CHECK(r.steps[0] == first);
  CHECK(r.steps[1].predicted_ps == INT64_MAX);
  CHECK(r.reductions == wanted.reductions);
  CHECK(r.warnings == wanted.warnings);
  CHECK(r.audit == wanted.audit);
  CHECK(r.alternatives == wanted.alternatives);
  CHECK(again->redistributions[1].request.dst_mesh == 1);
  CHECK(again->redistributions[1].steps[0] == plan.redistributions[1].steps[0]);
  CHECK(again->redistributions[2].request.id == "layers.1/wq");
  CHECK(again->redistributions[2].request.count == 5);
  CHECK(repeats(again->redistributions[2], r));
}

TEST_CASE("what repeats an earlier redistribution is written as its name") {
  const json document = json::parse(write_plan(sample_plan()));
  const json& list = document["redistributions"];
  CHECK(list[2] == json{{"id", "layers.1/wq"}, {"count", 5}, {"same_as", list[0]["id"]}});
  CHECK(write_plan(sample_plan()).find("\n    {\"count\": 5, \"id\": \"layers.1/wq\", \"same_as\": ") != std::string::npos);
  // Written out it is the same plan.
  json out = document;
  out["redistributions"][2] = list[0];
  out["redistributions"][2]["id"] = "layers.1/wq";
  out["redistributions"][2]["count"] = 5;
  const auto read = read_plan(out.dump(), false);
  REQUIRE(read.ok());
  CHECK(write_plan(*read) == write_plan(sample_plan()));
  // Its notes are its own, are kept, and are no part of what the plan says.
  json noted = document;
  noted["redistributions"][2]["x-module"] = {{"name", "wq"}};
  const auto with_note = read_plan(noted.dump(), false);
  REQUIRE(with_note.ok());
  const json again = json::parse(write_plan(*with_note));
  CHECK(again["redistributions"][2] == noted["redistributions"][2]);
  CHECK(!again["redistributions"][0].contains("x-module"));
  CHECK(canonical_content(*with_note) == canonical_content(sample_plan()));
  CHECK(canonical_json(*with_note) != canonical_json(sample_plan()));
  const auto checked = read_plan(write_plan(*with_note));
  REQUIRE(checked.ok());
  CHECK(write_plan(*checked) == write_plan(*with_note));
}

TEST_CASE("only what differs in nothing but id and count is a repeat") {
  Plan plan = sample_plan();
  PlannedRedistribution& repeat = plan.redistributions[2];
  const auto is_written_out = [&](const auto& change) {
    const PlannedRedistribution kept = repeat;
    change(repeat);
    const bool written_out = firsts_of(plan.redistributions)[2] == 2;
    CHECK(json::parse(write_plan(plan))["redistributions"][2].contains("steps") == written_out);
    repeat = kept;
    return written_out;
  };
  using R = PlannedRedistribution;
  CHECK(!is_written_out([](R& r) { r.request.id = "another"; }));
  CHECK(!is_written_out([](R& r) { r.request.count = 7; }));
  CHECK(is_written_out([](R& r) { r.request.tensor.shape = {16, 6}; }));
  CHECK(is_written_out([](R& r) { r.request.tensor.dtype = DType::float16; }));
  CHECK(is_written_out([](R& r) { r.request.src.shards[0].clear(); }));
  CHECK(is_written_out([](R& r) { r.request.dst.partial[0].op = ReduceOp::sum; }));
  CHECK(is_written_out([](R& r) { r.request.any_dst_order = false; }));
  CHECK(is_written_out([](R& r) { r.request.direction = Direction::forward; }));
  CHECK(is_written_out([](R& r) { r.request.reduce_dtype.reset(); }));
  CHECK(is_written_out([](R& r) { r.planner = PlannerKind::greedy; }));
  CHECK(is_written_out([](R& r) { r.rules = Rules::native; }));
  CHECK(is_written_out([](R& r) { r.dst.shards[1] = {{0, 1, 2}}; }));
  CHECK(is_written_out([](R& r) { r.trace += " "; }));
  CHECK(is_written_out([](R& r) { r.unmerged_trace += " "; }));
  CHECK(is_written_out([](R& r) { r.steps[1].wire_bytes = 5; }));
  CHECK(is_written_out([](R& r) { r.totals.peak_bytes = 5; }));
  CHECK(is_written_out([](R& r) { r.reductions.clear(); }));
  CHECK(is_written_out([](R& r) { r.warnings[0].operations = 9; }));
  CHECK(is_written_out([](R& r) { r.audit.clear(); }));
  CHECK(is_written_out([](R& r) { r.alternatives.clear(); }));
  CHECK(is_written_out([](R& r) { r.proven_gap_ps = 0; }));
  CHECK(is_written_out([](R& r) { r.shortcuts = {}; }));
  R elsewhere = repeat;
  elsewhere.request.src_mesh = 1;
  CHECK(!repeats(elsewhere, repeat));
  elsewhere.request = repeat.request;
  elsewhere.request.dst_mesh = 1;
  CHECK(!repeats(elsewhere, repeat));
  const R first = plan.redistributions[0];
  const R second = plan.redistributions[1];
  plan.redistributions.insert(plan.redistributions.end(), {second, first});
  CHECK(firsts_of(plan.redistributions) == std::vector<size_t>{0, 1, 0, 1, 0});
}

TEST_CASE("a repeat names an earlier redistribution that is written out") {
  const std::string first = one_line(sample_plan().redistributions[0].request.id);
  const auto refused = [](const std::function<void(json&)>& change) {
    return message_of(changed([&](json& p) { change(p["redistributions"]); }));
  };
  const std::string at = "/redistributions/2/same_as: ";
  CHECK(refused([](json& r) { r[2]["same_as"] = "nowhere"; }) == at + "no redistribution 'nowhere' comes before 'layers.1/wq'");
  CHECK(refused([](json& r) { r[2]["same_as"] = "layers.1/wq"; }) ==
        at + "'layers.1/wq' names itself; name an earlier redistribution, or write its steps");
  CHECK(refused([](json& r) { r[2]["same_as"] = 5; }) == at + "expected a string");
  CHECK(refused([](json& r) { std::swap(r[0], r[2]); }) ==
        "/redistributions/0/same_as: no redistribution '" + first + "' comes before 'layers.1/wq'");
  CHECK(refused([](json& r) {
          r.push_back({{"id", "c"}, {"count", 1}, {"same_as", "layers.1/wq"}});
        }) == "/redistributions/3/same_as: 'layers.1/wq' is itself the same as '" + first + "'; name that one");
  CHECK(refused([](json& r) { r[2].erase("count"); }) == "/redistributions/2: the key \"count\" is missing");
  CHECK(refused([](json& r) { r[2].erase("id"); }) == "/redistributions/2: the key \"id\" is missing");
  CHECK(refused([](json& r) { r[2]["count"] = 0; }) == "/redistributions/2/count: 0 is out of range: expected 1 or more");
  for (const char* key : {"steps", "tensor", "totals", "count2", "X-note"}) {
    INFO(key);
    CHECK(refused([&](json& r) { r[2][key] = json::array(); }) == std::string("/redistributions/2/") + key + ": \"" + key +
                                                                      "\" beside \"same_as\": what repeats '" + first +
                                                                      "' has \"id\", \"count\", \"same_as\" and notes (\"x-...\") only");
  }
  // A name that is given twice names none.
  CHECK(refused([](json& r) { r[1]["id"] = "layers.1/wq"; }) == "/redistributions/2/id: a second redistribution is called 'layers.1/wq'");
}

TEST_CASE("the canonical text has sorted keys and no spaces, and the digest is over it") {
  const Plan plan = sample_plan();
  const std::string compact = canonical_json(plan);
  const json content = json::parse(compact);
  CHECK(content.dump() == compact);  // nlohmann sorts keys
  json written = json::parse(write_plan(plan));
  CHECK(written["digest"] == "sha256:" + sha256_hex(compact));
  written.erase("digest");
  CHECK(written == content);
  written["digest"] = "sha256:" + sha256_hex(compact);
  const std::string text = write_plan(plan);
  CHECK(canonical_text(std::get<JsonDocument>(parse_json(text, {}))) == written.dump());
}

TEST_CASE("a step stands on a line of its own, and no line ends in a blank") {
  const std::string text = write_plan(sample_plan());
  size_t steps = 0;
  for (size_t at = text.find("\n        {\"dst\": "); at != std::string::npos; at = text.find("\n        {\"dst\": ", at + 1)) ++steps;
  CHECK(steps == 3);
  CHECK(text.find(" \n") == std::string::npos);
  CHECK(text.back() == '\n');
}

TEST_CASE("another formatting of the same content is read, unknown keys of a minor version too") {
  const json document = json::parse(write_plan(sample_plan()));
  CHECK(message_of(document.dump(), true).empty());
  CHECK(message_of(document.dump(7), true).empty());
  json newer = document;
  newer["schema"] = "meshplan/plan/1.3";
  newer["novelty"] = {{"a", 1}};
  newer["redistributions"][0]["steps"][0]["novelty"] = true;
  newer.erase("digest");
  newer["digest"] = "sha256:" + sha256_hex([&] {
                      json content = newer;
                      content.erase("digest");
                      return content.dump();
                    }());
  CHECK(message_of(newer.dump(), true).empty());
}

TEST_CASE("unknown keys of this version are refused with their place, notes are not") {
  const auto refused = [](const std::function<void(json&)>& change) { return message_of(changed(change)); };
  const std::string note = "; leave it out, or make it a note: \"x-...\"";
  CHECK(refused([](json& p) { p["novelty"] = {{"a", 1}}; }) == "/novelty: unknown key \"novelty\"" + note);
  CHECK(refused([](json& p) { p["redistributions"][1]["durection"] = "backward"; }) ==
        "/redistributions/1/durection: unknown key \"durection\"; did you mean \"direction\"?");
  CHECK(refused([](json& p) { p["redistributions"][0]["steps"][0]["chunk"] = 2; }) ==
        "/redistributions/0/steps/0/chunk: unknown key \"chunk\"; did you mean \"chunks\"?");
  CHECK(refused([](json& p) { p["x-novelty"] = {{"a", 1}}; }).empty());
  // Every object of the file, one after another: the first of a list stands for all.
  const json document = json::parse(write_plan(sample_plan()));
  const std::function<void(const json&, const std::string&)> each = [&](const json& value, const std::string& at) {
    if (value.is_array() && !value.empty()) each(value[0], at + "/0");
    if (!value.is_object()) return;
    CAPTURE(at);
    json other = document;
    other[json::json_pointer(at)]["quux"] = 1;
    CHECK(message_of(other.dump()) == at + "/quux: unknown key \"quux\"" + note);
    for (const auto& member : value.items()) {
      if (member.key().rfind("x-", 0) != 0) each(member.value(), at + "/" + member.key());
    }
  };
  each(document, "");
}

TEST_CASE("a digest of a spec is a digest") {
  const auto refused = [](const char* text) { return message_of(changed([&](json& p) { p["spec_digest"] = text; })); };
  for (const char* text :
       {"", "sha256:", "sha256:0123", "none", "sha256:555555555555555555555555555555555555555555555555555555555555555G"}) {
    CAPTURE(text);
    CHECK(refused(text) == "/spec_digest: expected a digest: \"sha256:\" and 64 digits of 0-9 a-f");
  }
}

TEST_CASE("keys may stand in any order") {
  const std::string text = write_plan(sample_plan());
  const auto document = nlohmann::ordered_json::parse(text);
  std::vector<std::string> keys;
  for (const auto& member : document.items()) keys.push_back(member.key());
  std::mt19937 random(20261122);
  for (int i = 0; i < 40; ++i) {
    std::shuffle(keys.begin(), keys.end(), random);
    nlohmann::ordered_json other;
    for (const std::string& key : keys) other[key] = document[key];
    const auto plan = read_plan(other.dump());
    REQUIRE_MESSAGE(plan.ok(), message_of(other.dump(), true));
    CHECK(write_plan(*plan) == text);
    // A problem is the same one wherever its key stands, and an element is counted from 0.
    other["redistributions"][1]["count"] = 0;
    CHECK(message_of(other.dump()) == "/redistributions/1/count: 0 is out of range: expected 1 or more");
    other["mesh"]["world"] = 0;
    CHECK(message_of(other.dump()) == "/mesh/world: 0 is out of range: expected 1 or more");
    other["totals"]["wire_bytes"] = other["digest"] = 5;
    other["redistributions"] = 5;
    CHECK(message_of(other.dump()) == "/mesh/world: 0 is out of range: expected 1 or more");
    other["mesh"] = document["mesh"];
    CHECK(message_of(other.dump()) == "/redistributions: expected a list");
  }
}

TEST_CASE("data goes from mesh to mesh once, by an exchange") {
  std::ifstream file(std::string(MESHPLAN_TESTDATA) + "/plans/train-8-serve-8.plan.json");
  const json plan = json::parse(file);
  const auto refused = [&](const std::function<void(json&)>& change) {
    json other = plan;
    change(other["redistributions"][2]["steps"]);
    return message_of(other.dump());
  };
  CHECK(refused([](json& steps) { CHECK(steps.size() == 3); }).empty());
  // Whose mesh dims were taken for those of the other mesh, also where that has fewer.
  CHECK(refused([](json& steps) { steps.erase(1); }) ==
        "/redistributions/2/steps/1: all_gather from mesh \"serve\" to \"train\": only an exchange crosses meshes");
  CHECK(refused([](json& steps) { steps.push_back(steps[0]); }) ==
        "/redistributions/2/steps/3: reduce_scatter from mesh \"train\" to \"serve\": data that has crossed does not go back");
}

TEST_CASE("what a plan cannot be is refused with its place") {
  const auto refused = [](const std::function<void(json&)>& change) { return message_of(changed(change)); };
  CHECK(refused([](json& p) { p["schema"] = "meshplan/plan/2"; }) ==
        "/schema: \"meshplan/plan/2\" needs a meshplan that reads plans of version 2; this one reads version 1");
  CHECK(refused([](json& p) { p["schema"] = "meshplan/spec/1"; }) == "/schema: this is a spec; plan it first: meshplan plan SPEC -o PLAN");
  CHECK(refused([](json& p) { p.erase("groups"); }) == "the whole document: the key \"groups\" is missing");
  CHECK(refused([](json& p) { p["mesh"]["world"] = 0; }) == "/mesh/world: 0 is out of range: expected 1 or more");
  CHECK(refused([](json& p) { p["mesh"]["ranks"][1] = 7; }) == "/mesh/ranks: rank 7 is listed twice");
  CHECK(refused([](json& p) { p["mesh"]["meshes"][0]["dims"][1]["layout"] = "4:3"; }).find("/mesh/meshes/0/dims/1/layout: ") == 0);
  CHECK(refused([](json& p) { p["mesh"]["meshes"][0]["dims"][1]["layout"] = "4:2"; }).find("/mesh/meshes/0/dims: ") == 0);
  CHECK(refused([](json& p) { p["topology"]["levels"][0]["far_mb_per_s"] = 7; }) ==
        "/topology/levels/0/far_mb_per_s: without near_bytes nothing is far");
  CHECK(refused([](json& p) { p["topology"]["levels"][0]["near_bytes"] = 7; }) ==
        "/topology/levels/0: the key \"far_mb_per_s\" is missing");
  CHECK(refused([](json& p) { p["redistributions"][0]["steps"][0]["op"] = "gather"; }) ==
        "/redistributions/0/steps/0/op: unknown operation \"gather\"");
  CHECK(refused([](json& p) {
          p["redistributions"][0]["steps"][1]["mesh_dims"][0] = "pp";
        }).find("/redistributions/0/steps/1/mesh_dims/0: ") == 0);
  CHECK(refused([](json& p) { p["redistributions"][0]["steps"][1]["src"] = "S(2)"; }) ==
        "/redistributions/0/steps/1/src: S(2) of a tensor of 2 dims");
  CHECK(refused([](json& p) { p["redistributions"][0]["steps"][1]["tensor_dim"] = 2; }) ==
        "/redistributions/0/steps/1/tensor_dim: 2 is out of range: expected 0 to 1");
  CHECK(refused([](json& p) { p["redistributions"][0]["steps"][0]["far_64ths"] = 64; }) ==
        "/redistributions/0/steps/0/far_64ths: 64 is out of range: expected 1 to 63");
  CHECK(refused([](json& p) { p["redistributions"][0]["steps"][0]["far_64ths"] = 0; }) ==
        "/redistributions/0/steps/0/far_64ths: 0 is out of range: expected 1 to 63");
  CHECK(refused([](json& p) { p["redistributions"][0]["steps"][0]["far_64ths"] = "29"; }) ==
        "/redistributions/0/steps/0/far_64ths: expected an integer");
  CHECK(refused([](json& p) {
          p["redistributions"][1]["tensor"]["shape"] = {4294967296, 4294967296, 0};
        }) == "/redistributions/1/tensor/shape: the bytes of the tensor do not fit 64 bits");
  // What prices are made of stays where sums and products of it fit.
  CHECK(refused([](json& p) { p["topology"]["levels"][0]["mb_per_s"] = 1'000'000'000'001; }) ==
        "/topology/levels/0/mb_per_s: 1000000000001 is out of range: expected 1 to 1000000000000");
  CHECK(refused([](json& p) { p["topology"]["levels"][0]["latency_ns"] = INT64_MAX; }).find("/topology/levels/0/latency_ns: ") == 0);
  CHECK(refused([](json& p) { p["topology"]["levels"][0]["per_peer_ns"] = INT64_MAX; }).find("/topology/levels/0/per_peer_ns: ") == 0);
  CHECK(refused([](json& p) { p["topology"]["copy_mb_per_s"] = INT64_MAX; }).find("/topology/copy_mb_per_s: ") == 0);
  CHECK(refused([](json& p) { p["redistributions"][0]["steps"][0]["scale"] = "0.125"; }) ==
        "/redistributions/0/steps/0/scale: expected a scale such as \"1/8\", or null");
  CHECK(refused([](json& p) { p["redistributions"][1]["dst_mesh"] = "nowhere"; }) ==
        "/redistributions/1/dst_mesh: there is no mesh \"nowhere\" in this plan");
  CHECK(refused([](json& p) { p["totals"]["wire_bytes"] = 1.5; }).find(": the number 1.5 is not an integer of 64 bits") !=
        std::string::npos);
  CHECK(refused([](json& p) {
          p["totals"]["wire_bytes"] = uint64_t{1} << 63;
        }).find(": the number 9223372036854775808 does not fit 64 bits") != std::string::npos);
}

TEST_CASE("a value changed by hand is named, not the digest that it breaks") {
  const auto read = try_read_plan(changed([](json& p) { p["redistributions"][0]["steps"][0]["op"] = "gather"; }));
  REQUIRE(std::holds_alternative<PlanRefusal>(read));
  CHECK(std::get<PlanRefusal>(read).pointer == "/redistributions/0/steps/0/op");
  CHECK(std::get<PlanRefusal>(read).message == "unknown operation \"gather\"");
  CHECK(!std::get<PlanRefusal>(read).byte);
  const auto broken = try_read_plan("{\"schema\": }");
  REQUIRE(std::holds_alternative<PlanRefusal>(broken));
  CHECK(std::get<PlanRefusal>(broken).byte == size_t{11});
}

TEST_CASE("a digest that does not match the content is refused unless the caller waives it") {
  const std::string text = changed([](json& p) { p["totals"]["wire_bytes"] = 1; });
  CHECK(message_of(text, true).find("/digest: the content has the digest sha256:") == 0);
  CHECK(message_of(text, false).empty());
}

TEST_CASE("text that is no JSON is refused with its line and column") {
  CHECK(message_of("").find("line 1, column 1: ") == 0);
  CHECK(message_of("{\"a\": 1,\n  b}").find("line 2, column 3: ") == 0);
  CHECK(message_of("{\"a\": 1,\n  \"b\": 1.5}") == "line 2, column 8: the number 1.5 is not an integer of 64 bits");
  CHECK(message_of("[\n-1e3]") == "line 2, column 1: the number -1e3 is not an integer of 64 bits");
  CHECK(message_of("1.5") == "line 1, column 1: the number 1.5 is not an integer of 64 bits");
  CHECK(message_of("{\"a\": [9223372036854775808\n]}") == "line 1, column 8: the number 9223372036854775808 does not fit 64 bits");
  CHECK(message_of("{\"a\": 1, \"a\": 2}") == "the whole document: the key \"a\" is given twice in one object");
  CHECK(message_of("[]") == "the whole document: expected an object");
  CHECK(message_of("\"\xff\"").find("line 1, column 2: ") == 0);
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += i % 2 == 0 ? "[" : "{\"a\":";
  CHECK(message_of(deep) == "line 1, column 193: it is nested deeper than 64 levels");
}

// Every value of the document in turn replaced by others: a plan or an error, never a crash; what is read is written and read again.
void each_place(json& root, json& value, const std::function<void(json&)>& visit) {
  visit(root);
  const json kept = value;
  for (const json& other : {json(nullptr), json(-1), json(0), json(INT64_MAX), json(INT64_MIN), json(true), json(""), json("S(9)[4]"),
                            json("2:1"), json("{S(0):2,R:2}"), json("any"), json::array(), json::object(), json::array({json::object()}),
                            json::array({"tp", "dp", "tp"}), json::array({0, INT64_MAX})}) {
    value = other;
    visit(root);
  }
  value = kept;
  if (value.is_object()) {
    for (auto& [key, member] : kept.items()) {
      value.erase(key);
      visit(root);
      value[key] = member;
    }
  }
  if (value.is_structured()) {
    for (auto& member : value) each_place(root, member, visit);
  }
}

TEST_CASE("any value in any place gives a plan or an error") {
  json document = json::parse(write_plan(sample_plan()));
  size_t read = 0;
  size_t refused = 0;
  each_place(document, document, [&](json& root) {
    const auto plan = read_plan(root.dump(), false);
    if (!plan) {
      ++refused;
      CHECK(!plan.error().message.empty());
      return;
    }
    ++read;
    const std::string text = write_plan(*plan);
    const auto again = read_plan(text);
    REQUIRE_MESSAGE(again.ok(), message_of(text));
    CHECK(write_plan(*again) == text);
  });
  CHECK(read > 100);
  CHECK(refused > 1000);
}

TEST_CASE("random damage to the bytes gives a plan or an error") {
  constexpr unsigned seed = 20261121;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const std::string text = write_plan(sample_plan());
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = text;
    const size_t at = random() % damaged.size();
    switch (random() % 4) {
      case 0:
        damaged[at] = static_cast<char>(random() % 256);
        break;
      case 1:
        damaged.erase(at, random() % 40);
        break;
      case 2:
        damaged.insert(at, std::to_string(random()));
        break;
      default:
        damaged.resize(at);
    }
    const auto plan = read_plan(damaged, false);
    if (plan.ok()) CHECK(read_plan(write_plan(*plan)).ok());
  }
}

}  // namespace
}  // namespace meshplan
