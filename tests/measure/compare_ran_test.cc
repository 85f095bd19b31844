// What ran beside what was planned, on dumps written after PyTorch's formats.
#include "measure/compare_ran.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cost/topology.h"
#include "plan/plan.h"

namespace meshplan {
namespace {

using nlohmann::json;

Step step_of(Op op, std::vector<SubAxis> dims, const std::string& group, const State& state) {
  Step step;
  step.op = op;
  step.mesh_dims = std::move(dims);
  step.group = group;
  step.state = state;
  if (row_of(op).reduces) step.reduce_op = ReduceOp::sum;
  step.predicted_ps = 1'500'000;
  return step;
}

// dp 2 x tp 2, two weights [8, 4] gathered over tp, a gradient [8, 4] reduced and scattered over
// dp, a loss reduced over dp.
Plan plan_of() {
  Plan plan;
  MESHPLAN_CHECK(add_root(plan.meshes, "mesh", 4, {}, {{"dp", 2}, {"tp", 2}}).ok(), "the mesh is valid");
  plan.topology = uniform_topology();
  const std::vector<int64_t> shape = {2, 2};
  const auto add = [&](const std::string& id, int64_t count, std::vector<int64_t> tensor, const char* src, const char* dst, Op op,
                       int32_t dim) {
    PlannedRedistribution r;
    r.request.id = id;
    r.request.count = count;
    r.request.tensor = {std::move(tensor), DType::float32};
    const size_t rank = r.request.tensor.shape.size();
    r.request.src = *parse_state(src, shape, rank);
    r.request.dst = *parse_state(dst, shape, rank);
    r.steps.push_back(step_of(op, {{dim, 1, 2}}, dim == 0 ? "dp" : "tp", r.request.dst));
    plan.redistributions.push_back(std::move(r));
  };
  add("wq", 2, {8, 4}, "RS(0)", "RR", Op::all_gather, 1);
  add("grad", 1, {8, 4}, "P(sum)R", "S(0)R", Op::reduce_scatter, 0);
  add("loss", 1, {}, "P(sum)R", "RR", Op::all_reduce, 0);
  add("reshard", 1, {8, 4}, "RS(0)", "RS(1)", Op::all_to_all, 1);
  return plan;
}

json entry(int64_t record, const std::string& name, const std::string& group, std::vector<int64_t> in, std::vector<int64_t> out) {
  // clang-format off
  return {{"record_id", record}, {"profiling_name", name}, {"process_group", {group, "desc"}}, {"collective_seq_id", record + 1},
          {"input_sizes", {in}}, {"input_dtypes", {"Float"}}, {"output_sizes", {out}}, {"output_dtypes", {"Float"}},
          {"duration_ms", 0.002}, {"state", "completed"}, {"is_p2p", false}};
  // clang-format on
}

// What rank 1 ran: everything as planned.
json dump_of(const std::string& version = "2.9") {
  // clang-format off
  return {{"version", version},
          {"pg_config", {{"0", {{"name", "0"}, {"desc", "default_pg"}, {"ranks", "[0, 1, 2, 3]"}}},
                         {"1", {{"name", "1"}, {"desc", "mesh_dp"}, {"ranks", "[1, 3]"}}},
                         {"2", {{"name", "2"}, {"desc", "mesh_tp"}, {"ranks", "[0, 1]"}}}}},
          {"entries", {entry(0, "nccl:_all_gather_base", "2", {4, 4}, {8, 4}), entry(1, "nccl:_reduce_scatter_base", "1", {8, 4}, {4, 4}),
                       entry(2, "nccl:all_reduce", "1", {}, {}), entry(3, "nccl:_all_gather_base", "2", {4, 4}, {8, 4}),
                       entry(4, "nccl:all_to_all", "2", {4, 4}, {8, 2})}}};
  // clang-format on
}

RanComparison compared(const json& dump, int64_t times = 1) {
  auto read = read_ran_dump(dump.dump(), "rank1.json");
  REQUIRE(read.ok());
  return compare_ran(plan_of(), *std::move(read), times);
}

bool says(const RanComparison& comparison, const std::string& words) { return to_text(comparison).find(words) != std::string::npos; }

TEST_CASE("as many repetitions as a number holds are missing, not fewer than none") {
  CHECK(says(compared(dump_of(), INT64_MAX), "5 as planned, 9,223,372,036,854,775,807 missing, 0 extra"));
}

TEST_CASE("what ran as planned is said with its times, for every version of the recorder") {
  for (const char* version : {"2.4", "2.9", "2.10", "2.15"}) {
    const RanComparison comparison = compared(dump_of(version));
    CHECK(as_planned(comparison));
    CHECK(says(comparison, std::string("rank1.json (flight recorder ") + version + ")\n"));
    CHECK(says(comparison, "  all_gather on tp, 64 B in: 2 as planned; took 2.00 us, predicted 1.50 us  [wq]\n"));
    CHECK(says(comparison, "5 as planned, 0 missing, 0 extra, 0 with another size, 0 in another order\n"));
  }
  json lists = dump_of();  // ranks as a list, the group as a name
  lists["pg_config"]["2"]["ranks"] = {0, 1};
  lists["entries"][0]["process_group"] = "2";
  CHECK(as_planned(compared(lists)));
}

TEST_CASE("each difference is named by its kind") {
  json missing = dump_of();
  missing["entries"].erase(3);
  CHECK(says(compared(missing), "! all_gather on tp, 64 B in: 1 as planned, 1 missing"));

  json extra = dump_of();
  extra["entries"].push_back(entry(5, "nccl:_all_gather_base", "2", {4, 4}, {8, 4}));
  extra["entries"].push_back(entry(6, "nccl:all_reduce", "0", {16}, {16}));
  CHECK(says(compared(extra), "! all_gather on tp, 64 B in: 2 as planned, 1 extra"));
  CHECK(says(compared(extra), "! all_reduce on ranks 0 1 2 3, 64 B in: 1 extra"));

  json larger = dump_of();
  larger["entries"][3]["input_sizes"] = {{8, 4}};
  CHECK(says(compared(larger), "! all_gather on tp, 64 B in: 1 as planned, 1 with another size: 128 B"));
  larger = dump_of();
  larger["entries"][2]["input_dtypes"] = {"Double"};
  CHECK(says(compared(larger), "! all_reduce on dp, 4 B in: 1 with another size: 8 B"));

  json swapped = dump_of();
  std::swap(swapped["entries"][1]["record_id"], swapped["entries"][2]["record_id"]);
  CHECK(says(compared(swapped), "! all_reduce on dp, 4 B in: 1 as planned") == false);
  CHECK(says(compared(swapped), "! reduce_scatter on dp, 128 B in: 1 as planned, in another order"));

  json other_op = dump_of();
  other_op["entries"][2]["profiling_name"] = "nccl:_reduce_scatter_base";
  CHECK(says(compared(other_op), "! all_reduce on dp, 4 B in: 1 missing"));
  CHECK(says(compared(other_op), "! reduce_scatter on dp, 4 B in: 1 extra"));
  CHECK(!as_planned(compared(dump_of(), 2)));
  CHECK(says(compared(dump_of(), 2), "5 as planned, 5 missing"));
}

TEST_CASE("what no plan has is listed and compared with nothing, and a full buffer is said") {
  json dump = dump_of();
  dump["entries"].push_back(entry(5, "nccl:barrier", "0", {1}, {1}));
  CHECK(as_planned(compared(dump)));
  CHECK(says(compared(dump), "not compared: nccl:barrier, 1 times"));
  for (json& each : dump["entries"]) each["record_id"] = each["record_id"].get<int64_t>() + 7;
  CHECK(says(compared(dump), "7 earlier collectives are lost"));
}

TEST_CASE("gloo's all_to_all of shards is an all_gather of what the rank has") {
  json dump = dump_of();
  for (json& each : dump["entries"]) {
    std::string name = each["profiling_name"];
    each["profiling_name"] = "gloo:" + name.substr(5);
  }
  dump["entries"][4] = entry(4, "gloo:all_gather", "2", {4, 4}, {8, 4});
  const RanComparison comparison = compared(dump);
  CHECK(as_planned(comparison));
  CHECK(says(comparison, "all_to_all on tp, 64 B in: 1 as planned, 1 of them gathered whole by gloo"));
  dump["entries"][4]["profiling_name"] = "nccl:all_gather";
  CHECK(!as_planned(compared(dump)));
}

// As PyTorch 2.15 writes a run on gloo: groups by name only, a reduce_scatter as an all_reduce of
// all, no times.
TEST_CASE("gloo's groups are known by name, and its reduce_scatter is an all_reduce") {
  json dump = dump_of("2.10");
  dump["pg_config"] = {{"", {{"name", ""}, {"desc", ""}, {"ranks", "[0, 1]"}}}};
  const std::vector<std::tuple<const char*, const char*, std::vector<int64_t>>> ran = {
      {"gloo:all_gather", "mesh_tp", {4, 4}}, {"gloo:all_reduce", "mesh_dp", {8, 4}}, {"gloo:all_reduce", "mesh_dp", {}},
      {"gloo:all_gather", "mesh_tp", {4, 4}}, {"gloo:all_gather", "mesh_tp", {4, 4}}, {"gloo:barrier", "default_pg", {1}}};
  dump["entries"] = json::array();
  for (const auto& [name, group, in] : ran) {
    dump["entries"].push_back(entry(static_cast<int64_t>(dump["entries"].size()), name, "3", in, in));
    dump["entries"].back()["process_group"] = {"3", group};
    dump["entries"].back().erase("duration_ms");
  }
  const RanComparison comparison = compared(dump);
  CHECK(as_planned(comparison));
  CHECK(says(comparison, "  reduce_scatter on dp, 128 B in: 1 as planned, 1 of them reduced whole by gloo  [grad]\n"));
  CHECK(says(comparison, "5 as planned, 0 missing, 0 extra"));
  dump["entries"][0]["process_group"] = {"9", "mesh_pp"};
  CHECK(says(compared(dump), "! all_gather on mesh_pp, 64 B in: 1 extra"));
  dump["entries"][1]["profiling_name"] = "nccl:all_reduce";
  CHECK(says(compared(dump), "! reduce_scatter on dp, 128 B in: 1 missing"));
}

json kineto_event(const std::string& category, double at, const std::string& name, const std::string& ranks, int64_t in) {
  // clang-format off
  return {{"ph", "X"}, {"cat", category}, {"name", "record_param_comms"}, {"ts", at}, {"dur", 3.5},
          {"args", {{"Collective name", name}, {"In msg nelems", in}, {"Out msg nelems", in}, {"dtype", "Float"}, {"Group size", 2},
                    {"Process Group Ranks", ranks}}}};
  // clang-format on
}

TEST_CASE("the profiler's trace has the same facts; kernels have the times") {
  // clang-format off
  const std::vector<std::tuple<std::string, std::string, int64_t>> ran = {
      {"_allgather_base", "[0, 1]", 16}, {"_reduce_scatter_base", "[1, 3]", 32}, {"allreduce", "[1, 3]", 1},
      {"_allgather_base", "[0, 1]", 16}, {"all_to_all", "[0, 1]", 16}};
  // clang-format on
  for (const bool kernels : {false, true}) {
    json trace = {{"traceEvents", json::array({{{"ph", "M"}, {"name", "process_name"}, {"args", {{"name", "python"}}}}})}};
    double at = 1000;
    for (const auto& [name, ranks, in] : ran) {
      trace["traceEvents"].push_back(kineto_event("cpu_op", at++, name, ranks, in));
      if (kernels) trace["traceEvents"].push_back(kineto_event("kernel", at++, name, ranks, in));
    }
    const RanComparison comparison = compared(trace);
    CHECK(as_planned(comparison));
    CHECK(says(comparison, "took 3.50 us") == kernels);
  }
  // Ranks that the profiler has cut short: the only group of that size.
  json cut = {{"traceEvents", {kineto_event("cpu_op", 1, "allreduce", "[0, 1, ...]", 1)}}};
  CHECK(says(compared(cut), "all_reduce on of 2 ranks, 4 B in: 1 extra"));
}

TEST_CASE("an execution trace in Chakra's form has the same facts") {
  json nodes = json::array();
  const auto node = [&](const std::string& name, int64_t start, int64_t stride, int64_t in) {
    json attributes = json::array();
    // clang-format off
    const std::vector<std::pair<std::string, json>> pairs = {
        {"collective_name", name}, {"dtype", "Float"}, {"in_msg_nelems", in}, {"out_msg_nelems", in}, {"pg_size", 2},
        {"global_rank_start", start}, {"global_rank_stride", stride}};
    // clang-format on
    for (const auto& [key, value] : pairs)
      attributes.push_back({{"name", key}, {"type", value.is_string() ? "string" : "uint64"}, {"value", value}});
    nodes.push_back({{"id", nodes.size()}, {"name", "record_param_comms"}, {"attrs", attributes}});
  };
  node("_allgather_base", 0, 1, 16);
  node("_reduce_scatter_base", 1, 2, 32);
  node("allreduce", 1, 2, 1);
  node("_allgather_base", 0, 1, 16);
  node("all_to_all", 0, 1, 16);
  const RanComparison comparison = compared({{"schema", "1.1.1-chakra.0.0.4"}, {"nodes", nodes}});
  CHECK(as_planned(comparison));
  CHECK(says(comparison, "(Chakra 1.1.1-chakra.0.0.4)"));
}

TEST_CASE("a dump that is none says what is read") {
  const auto refused = [](const std::string& text) {
    const auto read = read_ran_dump(text, "x");
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().fault == Fault::bad_input);
    return read.error().message;
  };
  CHECK(refused("\x80\x04\x95").find("this is a pickle; write JSON") == 0);
  CHECK(refused("{\"a\": }").find("invalid JSON at line 1, column 7") == 0);
  CHECK(refused("{\"a\": 1}").find("expected a dump of PyTorch's flight recorder") == 0);
  CHECK(refused(R"({"traceEvents": [{"ph": "X", "name": "gloo:all_reduce", "args": {}}]})")
            .find("the trace has no collective with its group") == 0);
  CHECK(refused(R"({"schema": "1.1.1-chakra.0.0.4", "nodes": []})").find("the trace has no collective with its group") == 0);
  CHECK(refused("[]").find("expected a dump") == 0);
  CHECK(refused(R"({"entries": [{"record_id": "x"}]})").find("/entries/0/record_id") == 0);
}

}  // namespace
}  // namespace meshplan
