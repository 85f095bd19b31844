// Good specs, read into what they say.
#include <doctest/doctest.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "spec/spec_files.h"

#include "base/sha256.h"
#include "diag/render.h"
#include "spec/spec.h"

namespace meshplan {
namespace {

Spec good(std::string_view text, const FileReader& read_file = {}) {
  Diagnostics diagnostics;
  auto spec = read_spec(text, "spec.json", read_file, diagnostics);
  REQUIRE_MESSAGE(spec.has_value(), render(diagnostics, {}));
  CHECK(diagnostics.empty());
  return std::move(*spec);
}

std::string simple(const std::string& redistribution) {
  return R"~({"schema": "meshplan/spec/1", "mesh": {"dims": [{"name": "dp", "size": 2}, {"name": "tp", "size": 4}]},
             "redistributions": [{"id": "a", "tensor": {"shape": [16, 8], "dtype": "bfloat16"}, )~" +
         redistribution + "}]}";
}

std::string bad_redistributions(size_t count) {
  std::string text = R"({"schema": "meshplan/spec/1", "mesh": {"dims": [{"name": "dp", "size": 2}]}, "redistributions": [)";
  for (size_t i = 0; i < count; ++i) text += (i > 0 ? ",\n" : "\n") + ("{\"id\": \"r" + std::to_string(i)) + "\"}";
  return text + "]}";
}

std::string text_of(const Request& request, const State& state, const Spec& spec) {
  return to_text(state, mesh_shape(spec.meshes.meshes[request.src_mesh]));
}

}  // namespace

TEST_CASE("as many wrong names as there are right ones are all counted, with suggestions where they are kept") {
  constexpr size_t names = 20'000;
  std::string requests;
  std::string members;
  std::string budgets;
  for (size_t i = 0; i < names; ++i) {
    const std::string comma = i > 0 ? ",\n" : "";
    const std::string rest = std::to_string(i) + R"~(.attention.weight")~";
    requests +=
        comma + R"~({"id": "layers.)~" + rest + R"~(, "tensor": {"shape": [64], "dtype": "float32"}, "src": ["R"], "dst": ["S(0)"]})~";
    members += comma + R"~("layer.)~" + rest;
    budgets += comma + R"~({"id": "layer.)~" + rest + R"~(, "collectives": 1})~";
  }
  const std::string text = R"~({"schema": "meshplan/spec/1", "mesh": {"dims": [{"name": "dp", "size": 2}]}, "redistributions": [)~" +
                           requests + R"~(], "bundles": [{"id": "b", "redistributions": [)~" + members +
                           R"~(]}], "budgets": {"redistributions": [)~" + budgets + "]}}";
  Diagnostics diagnostics;
  CHECK(!read_spec(text, "spec.json", {}, diagnostics));
  CHECK(diagnostics.count(Severity::error) == 2 * names);
  CHECK(diagnostics.sorted().front().help == "did you mean \"layers.0.attention.weight\"?");
}

TEST_CASE("the captured workloads are read") {
  for (const char* name :
       {"llama3-8b-fsdp8-tp8", "llama3-8b-fsdp8-tp8-flattened", "llama3-8b-hsdp2x8-tp4", "llama3-8b-hsdp2x8-tp4-flattened"}) {
    const std::string text = read_text(std::string(MESHPLAN_TESTDATA) + "/specs/" + name + ".json");
    const Spec spec = good(text);
    CHECK(spec.meshes.meshes.size() == 1);
    CHECK(spec.meshes.flattens.empty() == (std::string(name).find("flattened") == std::string::npos));
    CHECK(spec.requests.size() > 10);
    REQUIRE(spec.request_spans.size() == spec.requests.size());
    const auto [begin, end] = spec.request_spans.front();
    CHECK(text.substr(begin, 8) == "{\"id\": \"");
    CHECK(text[end - 1] == '}');
  }
}

TEST_CASE("a redistribution is read with all that it says") {
  const Spec spec = good(simple(
      R"~("src": ["P(sum)", "S(0)"], "dst": {"tp": "S(0)", "dp": "S(0)"}, "dst_order": [{"tensor_dim": 0, "mesh_dims": ["tp", "dp"]}],
      "direction": "backward", "reduce_dtype": "float32", "count": 32, "x-note": [1e3, {"deep": null}])~"));
  REQUIRE(spec.requests.size() == 1);
  const Request& request = spec.requests[0];
  CHECK(request.id == "a");
  CHECK(request.tensor == TensorMeta{{16, 8}, DType::bfloat16});
  CHECK(text_of(request, request.src, spec) == "P(sum)S(0)");
  CHECK(text_of(request, request.dst, spec) == "S(0)[1]S(0)[0]");
  CHECK(request.direction == Direction::backward);
  CHECK(request.reduce_dtype == DType::float32);
  CHECK(request.count == 32);
  CHECK_FALSE(request.any_dst_order);
}

TEST_CASE("what a redistribution leaves out has its default") {
  const Spec spec = good(simple(R"~("src": ["S(0)", "S(0)"], "dst": ["R", "R"])~"));
  const Request& request = spec.requests[0];
  CHECK(request.count == 1);
  CHECK(request.direction == Direction::forward);
  CHECK_FALSE(request.reduce_dtype);
  CHECK(request.src_mesh == 0);
  CHECK(request.dst_mesh == 0);
  CHECK(spec.meshes.meshes[0].name == "mesh");
  CHECK_FALSE(spec.topology);
  CHECK_FALSE(spec.options.planner);
}

TEST_CASE("an order left to the planner, and strided shards") {
  CHECK(good(simple(R"~("src": ["R", "R"], "dst": ["S(0)", "S(0)"], "dst_order": "any")~")).requests[0].any_dst_order);
  const Spec spec = good(simple(R"~("src": ["SS(0,4)", "S(0)"], "dst": ["R", "R"])~"));
  CHECK(text_of(spec.requests[0], spec.requests[0].src, spec) == "S(0)[1]S(0)[0]");
}

TEST_CASE("sum may be pending beside avg, and a scalar has no dims") {
  CHECK(good(simple(R"~("src": ["P(sum)", "P(avg)"], "dst": ["R", "R"])~")).requests.size() == 1);
  const Spec spec = good(R"~({"schema": "meshplan/spec/1", "mesh": {"dims": [{"name": "dp", "size": 2}]},
    "redistributions": [{"id": "loss", "tensor": {"shape": [], "dtype": "float32"}, "src": ["P(avg)"], "dst": ["R"]}]})~");
  CHECK(spec.requests[0].tensor.shape.empty());
}

// The last one is refused: testdata/bad-specs/last-rank.json.
TEST_CASE("ranks may be any numbers of 63 bits but the last") {
  const Spec spec = good(R"~({"schema": "meshplan/spec/1", "mesh": {"dims": [{"name": "dp", "size": 4}],
    "ranks": [9223372036854775806, "9223372036854775804-9223372036854775805", 0]}, "redistributions": []})~");
  REQUIRE(spec.meshes.meshes.size() == 1);
  CHECK(spec.meshes.meshes[0].universe->ranks == std::vector<int64_t>{INT64_MAX - 1, INT64_MAX - 3, INT64_MAX - 2, 0});
}

TEST_CASE("options, budgets and silenced warnings") {
  const Spec spec = good(R"~({
    "schema": "meshplan/spec/1",
    "mesh": {"dims": [{"name": "dp", "size": 2}], "ranks": [7, 3]},
    "redistributions": [{"id": "a", "tensor": {"shape": [4], "dtype": "float32"}, "src": ["S(0)"], "dst": ["R"]}],
    "options": {"planner": "graph", "rules": "dtensor", "groups": "any", "max_memory_bytes": -1, "one_reduction": true, "world_group": "skip"},
    "budgets": {"total": {"wire_bytes": 10, "collectives": 0}, "redistributions": [{"id": "a", "predicted_ns": 5, "peak_bytes": 6}]},
    "allow": [{"code": "W0301", "reason": "measured"}, {"code": "W0302", "id": "a", "reason": "small"}]})~");
  CHECK(spec.options.planner == PlannerKind::graph);
  CHECK(spec.options.rules == Rules::dtensor);
  CHECK(spec.options.groups == GroupPolicy::any);
  CHECK(spec.options.max_memory_bytes == -1);
  CHECK(spec.options.one_reduction == true);
  CHECK(spec.options.world_group == WorldGroup::skip);
  REQUIRE(spec.budgets.size() == 2);
  CHECK(spec.budgets[0].id.empty());
  CHECK(spec.budgets[0].wire_bytes.value().most == 10);
  CHECK(spec.budgets[0].collectives.value().most == 0);
  CHECK_FALSE(spec.budgets[0].peak_bytes);
  CHECK(spec.budgets[1].id == "a");
  CHECK(spec.budgets[1].predicted_ns.value().most == 5);
  CHECK(spec.budgets[1].peak_bytes.value().most == 6);
  REQUIRE(spec.allow.size() == 2);
  CHECK(spec.allow[1].code == "W0302");
  CHECK(spec.allow[1].id == "a");
  CHECK(spec.allow[1].reason == "small");
  CHECK(materialise(spec.meshes.meshes[0]) == std::vector<int64_t>{7, 3});
}

TEST_CASE("topologies: protocols, and the old spelling of NCCL's") {
  const auto read = [](const std::string& model) {
    Diagnostics diagnostics;
    const auto topology = read_topology_file(
        R"~({"levels": [{"ranks": 8, "gb_per_s": 362, "latency_ns": 1, "peer_gb_per_s": 82, "peer_bytes": 9,
                         "switch_gb_per_s": 551}, {"ranks": 64, "gb_per_s": 48, "latency_ns": 2}], )~" +
            model + "}",
        "t.json", diagnostics);
    REQUIRE(topology.has_value());
    return *topology;
  };
  CHECK(read(R"~("model": "nccl")~").protocols == nccl_protocols(2));
  CHECK(read(R"~("model": "levels")~").protocols.empty());
  const Topology topology = read(R"~("model": "protocols", "protocols": [
      {"name": "a", "base_ns": 5, "hop_ns": [1, 2], "share": [3, 4], "trees": true, "tree_ns": [6, 7]},
      {"name": "b", "base_ns": 8, "hop_ns": [9, 10], "switch_ns": 11}])~");
  CHECK(topology.levels[0].peer_mb_per_s == 82'000);
  CHECK(topology.levels[0].peer_bytes == 9);
  CHECK(topology.levels[0].switch_mb_per_s == 551'000);
  const Topology few = read(R"~("model": "protocols", "protocols": [
      {"name": "a", "base_ns": 5, "hop_ns": [1, 2], "most_bytes": 4096, "ops": ["all_reduce"], "near_bytes": 7, "far_share": [8, 9]},
      {"name": "b", "base_ns": 5, "hop_ns": [1, 2]}, {"name": "c", "base_ns": 5, "hop_ns": [1, 2], "ops": ["exchange", "all_to_all"]}])~");
  CHECK(few.protocols[0].most_bytes == 4096);
  CHECK(few.protocols[0].ops == bit_of(Op::all_reduce));
  CHECK(few.protocols[0].near_bytes == 7);
  CHECK(few.protocols[0].levels[1].far_share == 9);
  CHECK(few.protocols[2].ops == (bit_of(Op::exchange) | bit_of(Op::all_to_all)));
  REQUIRE(topology.protocols.size() == 2);
  CHECK(topology.protocols[0] == Protocol{"a", 5, true, 0, {{1, 3, 6, 3}, {2, 4, 7, 4}}});
  CHECK(topology.protocols[1] == Protocol{"b", 8, false, 11, {{9, 10'000, 9, 10'000}, {10, 10'000, 10, 10'000}}});
}

TEST_CASE("protocols that leave an op without one, and near bytes without what is far, are refused") {
  const auto message = [](const std::string& protocols, const std::string& level = "") {
    Diagnostics diagnostics;
    const auto topology = read_topology_file(R"~({"levels": [{"ranks": 8, "gb_per_s": 362, "latency_ns": 1)~" + level +
                                                 R"~(}], "model": "protocols", "protocols": )~" + protocols + "}",
                                             "t.json", diagnostics);
    REQUIRE_FALSE(topology.has_value());
    return diagnostics.sorted().front().message;
  };
  const std::string all = R"~({"name": "a", "base_ns": 5, "hop_ns": [1]})~";
  CHECK(message(R"~([{"name": "a", "base_ns": 5, "hop_ns": [1], "most_bytes": 9}])~") == "no protocol serves all_gather of every size");
  CHECK(message(R"~([{"name": "a", "base_ns": 5, "hop_ns": [1], "ops": ["all_gather", "reduce_scatter"]}])~") ==
        "no protocol serves all_reduce of every size");
  CHECK(message("[" + all + R"~(, {"name": "b", "base_ns": 5, "hop_ns": [1], "ops": ["exchange"], "most_bytes": 9}])~") ==
        "no protocol serves exchange of every size");
  CHECK(message(R"~([{"name": "a", "base_ns": 5, "hop_ns": [1], "near_bytes": 9}])~").find("belong together") != std::string::npos);
  CHECK(message("[" + all + "]", R"~(, "near_bytes": 9)~").find("belong together") != std::string::npos);
  CHECK(message("[" + all + "]", R"~(, "far_gb_per_s": 9)~").find("belong together") != std::string::npos);
  CHECK(message(R"~([{"name": "a", "base_ns": 5, "hop_ns": [1], "ops": ["slice"]}])~").find("slice") != std::string::npos);
}

TEST_CASE("a share that comes to less than 1 MB/s is refused: it would be priced as 1") {
  const auto problems = [](const std::string& mb_per_s, const std::string& model) {
    Diagnostics diagnostics;
    const auto topology = read_topology_file(
        R"~({"levels": [{"name": "link", "ranks": 8, "mb_per_s": )~" + mb_per_s + R"~(, "latency_ns": 1}], )~" + model + "}", "t.json",
        diagnostics);
    CHECK(topology.has_value() == diagnostics.empty());
    std::string all;
    for (const Diagnostic& one : diagnostics.sorted()) all += one.code + ": " + one.message + "; " + one.help + "\n";
    return all;
  };
  const auto shares = [](const std::string& more) {
    return R"~("model": "protocols", "protocols": [{"name": "a", "base_ns": 5, "hop_ns": [1], )~" + more + "}]";
  };
  const std::string few = " ten-thousandths of the 300 MB/s of level \"link\" is less than 1 MB/s; a share of at least 34 here\n";
  CHECK(problems("300", shares(R"~("share": [34], "trees": true)~")).empty());
  CHECK(problems("300", shares(R"~("share": [33])~")) == "E0314: a share of 33" + few);
  CHECK(problems("300", shares(R"~("trees": true, "tree_share": [1])~")) == "E0314: a share of 1" + few);
  CHECK(problems("300", shares(R"~("near_bytes": 9, "far_share": [20])~")) == "E0314: a share of 20" + few);
  CHECK(problems("10000", shares(R"~("share": [1])~")).empty());
  // NCCL's LL has half of a bandwidth.
  CHECK(problems("2", R"~("model": "nccl")~").empty());
  CHECK(problems("1", R"~("model": "nccl")~").starts_with("E0314: a share of 5000 ten-thousandths of the 1 MB/s"));
}

TEST_CASE("topologies: a preset, levels, a file") {
  const auto with = [](const std::string& topology) {
    return R"~({"schema": "meshplan/spec/1", "mesh": {"dims": [{"name": "dp", "size": 2}]}, "topology": )~" + topology + "}";
  };
  CHECK(good(with("\"h100\"")).topology->name == "h100");
  const std::string own = R"~({"copy_gb_per_s": 1500, "levels": [
      {"name": "nvlink", "ranks": 8, "gb_per_s": 370.125, "latency_ns": 10000, "per_peer_ns": 500, "exchange_percent": 80},
      {"name": "ib", "ranks": 1048576, "gb_per_s": 45, "latency_ns": 25000}]})~";
  const Topology topology = *good(with(own)).topology;
  REQUIRE(topology.levels.size() == 2);
  CHECK(topology.copy_mb_per_s == 1500000);
  CHECK(topology.levels[0] == TopologyLevel{"nvlink", 8, 370125, 10000, 500, 80});
  CHECK(topology.levels[1] == TopologyLevel{"ib", 1048576, 45000, 25000, 0, 100});
  const auto files = [&](const std::string& path) -> Result<std::string> {
    if (path == "own.json") return own;
    return bad_input("no such file");
  };
  CHECK(*good(with(R"~({"file": "own.json"})~"), files).topology == topology);
  Diagnostics diagnostics;
  CHECK(*read_topology_file(own, "own.json", diagnostics) == topology);
  CHECK(*read_topology_file(write_topology(topology), "own.json", diagnostics) == topology);
  CHECK(diagnostics.empty());
}

TEST_CASE("the outermost level holds every rank, whatever its ranks says; fewer than one unit inside it is warned of") {
  const auto levels = [](const std::string& ranks) {
    return R"~({"levels": [{"name": "nvlink", "ranks": 8, "gb_per_s": 370, "latency_ns": 10000},
        {"name": "ib", "ranks": )~" +
           ranks + R"~(, "gb_per_s": 45, "latency_ns": 25000}]})~";
  };
  Diagnostics diagnostics;
  for (const std::string ranks : {"8", "12", "1048576"})
    CHECK(read_topology_file(levels(ranks), "t.json", diagnostics)->levels[1].ranks == std::stoi(ranks));
  CHECK(diagnostics.empty());
  // As many as are inside it is the least that readers of plans take.
  CHECK(read_topology_file(levels("1"), "t.json", diagnostics) == read_topology_file(levels("8"), "t.json", diagnostics));
  REQUIRE(diagnostics.kept().size() == 1);
  const Diagnostic& warning = diagnostics.kept().front();
  CHECK(warning.code == "W0307");
  CHECK(warning.severity == Severity::warning);
  CHECK(warning.place.pointer == "/levels/1");
  CHECK(warning.message ==
        "the outermost level \"ib\" names 1 rank, fewer than the 8 of the level inside it; it holds every rank all the same");
}

TEST_CASE("an innermost level of one rank joins none and is left out, with its part of protocols and tables") {
  const auto topology = [](const std::string& first, const std::string& inner, const std::string& level, const std::string& share) {
    Diagnostics diagnostics;
    const auto read =
        read_topology_file(R"~({"levels": [)~" + first + R"~({"name": "nvlink", "ranks": 8, "gb_per_s": 370, "latency_ns": 10000},
        {"name": "ib", "ranks": 1024, "gb_per_s": 45, "latency_ns": 25000}],
        "model": "protocols", "protocols": [{"name": "LL", "base_ns": 7000, "hop_ns": [)~" +
                               inner + R"~(2500, 9000], "share": [)~" + share +
                               R"~(4000, 3000]}],
        "tables": [{"op": "all_gather", "level": )~" +
                               level + R"~(, "ranks": 16, "points": [[1024, 30000]]}]})~",
                           "t.json", diagnostics);
    REQUIRE(diagnostics.empty());
    REQUIRE(read);
    return *read;
  };
  const Topology without = topology("", "", "1", "");
  CHECK(without.levels.size() == 2);
  const std::string alone = R"~({"name": "board", "ranks": 1, "gb_per_s": 3, "latency_ns": 99999}, )~";
  CHECK(topology(alone, "1, ", "2", "77, ") == without);
  CHECK(topology(alone + alone, "1, 2, ", "3", "77, 78, ") == without);
  // The outermost holds every rank.
  Diagnostics diagnostics;
  CHECK(read_topology_file(R"~({"levels": [{"name": "ib", "ranks": 1, "gb_per_s": 45, "latency_ns": 25000}]})~", "t.json", diagnostics)
            ->levels.size() == 1);
}

TEST_CASE("the topology that a plan holds is a topology file and a spec's topology") {
  std::vector<Topology> topologies;
  for (const std::string& name : topology_preset_names()) topologies.push_back(*topology_preset(name));
  topologies.push_back(uniform_topology());
  topologies.back().copy_mb_per_s = 1'500'125;
  topologies.back().protocols = nccl_protocols(1);
  topologies.back().levels[0].peer_mb_per_s = 25'000;
  topologies.back().levels[0].peer_bytes = 64;
  topologies.back().levels[0].switch_mb_per_s = 400'000;
  topologies.push_back(topologies.back());
  topologies.back().protocols.back() = {"Simple", 1, true, 2, {{3, 4, 5, 6, 7}}, 8};
  topologies.back().protocols.push_back({"few", 1, false, 0, {{3, 4}}, 0, 9, bit_of(Op::all_reduce)});
  topologies.back().levels[0].near_bytes = 7;
  topologies.back().levels[0].far_mb_per_s = 8;
  topologies.back().tables = {{Op::all_gather, 0, 4, {{1024, 900}, {4096, 900}}}};
  for (const Topology& topology : topologies) {
    CAPTURE(topology.name);
    Plan plan;
    plan.topology = topology;
    const std::string written = nlohmann::json::parse(write_plan(plan)).at("topology").dump();
    Diagnostics diagnostics;
    CHECK(read_topology_file(written, "t.json", diagnostics) == topology);
    CHECK(diagnostics.empty());
    CHECK(good(R"~({"schema": "meshplan/spec/1", "mesh": {"dims": [{"name": "dp", "size": 2}]}, "topology": )~" + written + "}").topology ==
          topology);
  }
}

TEST_CASE("a topology file that the parser had to mend is refused, whatever was reported before") {
  const std::string comma = R"~({"levels": [{"ranks": 8 "gb_per_s": 1, "latency_ns": 1}]})~";
  Diagnostics diagnostics;
  CHECK(!read_topology_file(comma, "t.json", diagnostics));
  CHECK(diagnostics.count(Severity::error) == 1);
  CHECK(!read_topology_file(comma, "t.json", diagnostics));
  CHECK(diagnostics.count(Severity::error) == 1);
}

TEST_CASE("mesh operations") {
  const Spec spec = good(R"~({"schema": "meshplan/spec/1", "meshes": [
      {"name": "root", "world": 16, "dims": [{"name": "dp", "size": 2}, {"name": "cp", "size": 2}, {"name": "tp", "size": 4}]},
      {"name": "outer", "of": "root", "slice": ["dp", "cp"], "group_options": {"priority": 1}},
      {"of": "root", "flatten": ["dp", "cp"]},
      {"name": "split", "of": "root", "unflatten": "tp", "sizes": [2, 2], "dims": ["tp_o", "tp_i"]},
      {"name": "tp_only", "of": "root", "slice": ["tp"]},
      {"name": "joined", "concatenate": ["dp_cp", "tp_only"]},
      {"name": "turned", "of": "root", "transpose": ["cp", "dp", "tp"]}],
    "redistributions": [
      {"id": "a", "mesh": "joined", "tensor": {"shape": [64], "dtype": "float32"}, "src": ["S(0)", "R"], "dst": ["R", "R"]},
      {"id": "b", "src_mesh": "outer", "dst_mesh": "tp_only", "tensor": {"shape": [64], "dtype": "float32"}, "src": ["S(0)", "R"], "dst": ["S(0)"]}]})~");
  std::vector<std::string> names;
  for (const Mesh& mesh : spec.meshes.meshes) names.push_back(mesh.name + ": " + to_text(mesh));
  CHECK(names == std::vector<std::string>{"root: dp 2 x cp 2 x tp 4", "outer: dp 2 x cp 2", "dp_cp: dp_cp 4",
                                          "split: dp 2 x cp 2 x tp_o 2 x tp_i 2", "tp_only: tp 4", "joined: dp_cp 4 x tp 4",
                                          "turned: cp 2 x dp 2 x tp 4"});
  CHECK(spec.meshes.meshes[1].group_options == "{\"priority\":1}");
  CHECK(spec.meshes.flattens.size() == 1);
  CHECK(spec.requests[1].src_mesh == 1);
  CHECK(spec.requests[1].dst_mesh == 4);
  const Spec torchtitan = good(
      R"~({"schema": "meshplan/spec/1", "meshes": [{"parallel_dims": {"world": 64, "dp_replicate": 2, "cp": 2, "tp": 8, "ep": 8}}]})~");
  CHECK(find_mesh(torchtitan.meshes, "sparse").has_value());
  CHECK(find_mesh(torchtitan.meshes, "loss").has_value());
}

TEST_CASE("the digest is over the meaning of the text, not over its form") {
  const std::string compact =
      R"~({"mesh":{"dims":[{"name":"dp","size":2}]},"redistributions":[],"schema":"meshplan/spec/1","x-a":[1.5,100.0,1e+22,-0.001,0,"\u0001é\"\\/"],"x-b":{}})~";
  CHECK(good(compact).digest == "sha256:" + sha256_hex(compact));
  CHECK(good(R"~(// a comment
    { "x-b": {}, "schema": "meshplan/spec/1", /* another */ "redistributions": [],
      "x-a": [15e-1, 1e2, 1E22, -0.00100, -0, "\u0001\u00e9\"\\\/"],
      "mesh": {"dims": [{"size": 2, "name": "\u0064p"}]} } // the end)~")
            .digest == good(compact).digest);
}

TEST_CASE("a file with more mistakes than are kept is read to its end and counted") {
  Diagnostics diagnostics;
  CHECK_FALSE(read_spec(bad_redistributions(5000), "a.json", {}, diagnostics));
  CHECK(diagnostics.count(Severity::error) == 5000);
  CHECK(diagnostics.kept().size() == Diagnostics::default_cap);
  CHECK(diagnostics.left_out(Severity::error) == 5000 - Diagnostics::default_cap);
}

TEST_CASE("100,000 redistributions are read in far less than ten seconds on any machine") {
  std::string text =
      R"({"schema": "meshplan/spec/1", "mesh": {"dims": [{"name": "dp", "size": 2}, {"name": "tp", "size": 8}]}, "redistributions": [)";
  for (int i = 0; i < 100'000; ++i) {
    text +=
        (i > 0 ? ",\n" : "\n") + ("{\"id\": \"r" + std::to_string(i)) +
        R"~(", "tensor": {"shape": [4096, 4096], "dtype": "bfloat16"}, "src": ["P(sum)", "S(0)"], "dst": ["S(0)", "S(0)"], "count": 32})~";
  }
  text += "]}";
  Diagnostics diagnostics;
  const std::clock_t begin = std::clock();
  const auto spec = read_spec(text, "a.json", {}, diagnostics);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  REQUIRE(spec);
  CHECK(spec->requests.size() == 100'000);
  MESSAGE("100,000 redistributions in " << seconds << " s of processor time");
  CHECK(seconds < 10);
}

TEST_CASE("a mesh with dims and no operation is told to say how many ranks it has, a view what it may be") {
  const auto help = [](const std::string& entry) {
    Diagnostics diagnostics;
    (void)read_spec(R"~({"schema": "meshplan/spec/1", "meshes": [)~" + entry + "], \"redistributions\": []}", "s.json", {}, diagnostics);
    REQUIRE(!diagnostics.empty());
    return diagnostics.sorted().front().help;
  };
  CHECK(help(R"~({"name": "a", "dims": [{"name": "dp", "size": 4}]})~") ==
        "a mesh that is no view says how many ranks it has: {\"name\": ..., \"world\": 8, ...}");
  CHECK(help(R"~({"name": "a", "of": "b", "dims": ["dp"]})~").starts_with("expected one of world, slice, "));
}

}  // namespace meshplan
