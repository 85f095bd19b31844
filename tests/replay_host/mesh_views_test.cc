// Plans on every kind of view of one world, replayed: permuted and partial rank maps, slices with copies, concatenated, transposed,
// flattened and unflattened meshes. Whatever the view, every element arrives, under every planner.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "diag/diagnostic.h"
#include "planner/planner.h"
#include "planner/settle_options.h"
#include "replay_host/host.h"
#include "spec/spec.h"

namespace meshplan {
namespace {

std::string message_of(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics.sorted()) text += diagnostic.message + "\n";
  return text;
}

Spec read(const std::string& text) {
  Diagnostics diagnostics;
  const FileReader no_files = [](const std::string& path) -> Result<std::string> { return bad_input(path); };
  auto spec = read_spec(text, "test.json", no_files, diagnostics);
  REQUIRE_MESSAGE(spec.has_value(), message_of(diagnostics));
  return std::move(*spec);
}

Plan plan(const Spec& spec, PlannerKind planner) {
  PlanOptions options;
  options.planner = planner;
  options.rules = rules_of(planner);
  PlanOutcome outcome = plan_requests(spec.meshes, uniform_topology(), spec.requests, options, spec.digest);
  for (const PlanFailure& failure : outcome.failures) FAIL(spec.requests[failure.index].id << ": " << failure.error.message);
  return std::move(outcome.plan);
}

void replay_right(const Plan& plan) {
  ReplayOptions options;
  options.threads = 2;
  options.shrink_above_bytes = int64_t{4} << 20;
  const auto report = replay_on_host(plan, options);
  REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
  CHECK_MESSAGE(all_right(*report), to_text(*report));
  CHECK(checked_elements(*report) > 0);
}

constexpr PlannerKind planners[]{PlannerKind::greedy, PlannerKind::graph, PlannerKind::optimal};

// Redistributions of a mesh of two dims that move something along each, uneven and nested ones among them.
std::string redistributions(const std::string& mesh) {
  const char* moves[][4] = {{"S(0)", "R", "R", "R"},        {"S(0)", "S(1)", "R", "R"},         {"S(0)", "S(1)", "S(1)", "S(0)"},
                            {"P(sum)", "P(sum)", "R", "R"}, {"P(sum)", "S(0)", "S(0)", "S(0)"}, {"R", "R", "S(1)", "S(0)"},
                            {"S(0)", "S(0)", "R", "S(0)"},  {"P(sum)", "R", "S(1)", "R"},       {"S(0)", "S(0)", "S(1)", "S(1)"}};
  std::string text;
  int number = 0;
  for (const auto& [src_a, src_b, dst_a, dst_b] : moves) {
    for (const char* shape : {"[12, 8]", "[7, 5]", "[3, 2]"}) {
      text += text.empty() ? "" : ",\n";
      text += "{\"id\": \"" + mesh + "." + std::to_string(number++) + "\", \"mesh\": \"" + mesh + "\", \"tensor\": {\"shape\": " + shape +
              ", \"dtype\": \"int32\"}, \"src\": [\"" + src_a + "\", \"" + src_b + "\"], \"dst\": [\"" + dst_a + "\", \"" + dst_b + "\"]}";
    }
  }
  return text;
}

std::string spec_text(const std::string& meshes, const std::string& mesh) {
  return R"({"schema": "meshplan/spec/1", "meshes": [)" + meshes + R"(], "redistributions": [)" + redistributions(mesh) + "]}";
}

struct View {
  const char* name;
  const char* meshes;
  const char* mesh;
};

const View views[]{
    {"permuted",
     R"({"name": "m", "world": 8, "ranks": [1, 0, 3, 2, 7, 6, 5, 4], "dims": [{"name": "a", "size": 2}, {"name": "b", "size": 4}]})", "m"},
    {"permuted at random",
     R"({"name": "m", "world": 6, "ranks": [4, 1, 5, 0, 3, 2], "dims": [{"name": "a", "size": 2}, {"name": "b", "size": 3}]})", "m"},
    {"partial: the second half",
     R"({"name": "m", "world": 8, "ranks": [8, 9, 10, 11, 12, 13, 14, 15], "dims": [{"name": "a", "size": 4}, {"name": "b", "size": 2}]})",
     "m"},
    {"partial and permuted, with holes",
     R"({"name": "m", "world": 6, "ranks": [40, 7, 1000, 3, 12, 5], "dims": [{"name": "a", "size": 3}, {"name": "b", "size": 2}]})", "m"},
    {"a slice around a dim, two copies",
     R"({"name": "r", "world": 12, "dims": [{"name": "a", "size": 2}, {"name": "x", "size": 2}, {"name": "b", "size": 3}]},
        {"name": "m", "of": "r", "slice": ["a", "b"]})",
     "m"},
    {"transposed", R"({"name": "r", "world": 6, "dims": [{"name": "a", "size": 2}, {"name": "b", "size": 3}]},
        {"name": "m", "of": "r", "transpose": ["b", "a"]})",
     "m"},
    {"transposed of permuted, with copies",
     R"({"name": "r", "world": 12, "ranks": [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8],
         "dims": [{"name": "a", "size": 3}, {"name": "x", "size": 2}, {"name": "b", "size": 2}]},
        {"name": "m", "of": "r", "transpose": ["b", "a"]})",
     "m"},
    {"concatenated in another order",
     R"({"name": "r", "world": 12, "dims": [{"name": "a", "size": 2}, {"name": "x", "size": 2}, {"name": "b", "size": 3}]},
        {"name": "one", "of": "r", "slice": ["b"]}, {"name": "two", "of": "r", "slice": ["a"]}, {"name": "m", "concatenate": ["one", "two"]})",
     "m"},
    {"concatenated of a flatten and a slice",
     R"({"name": "r", "world": 24, "dims": [{"name": "a", "size": 2}, {"name": "x", "size": 3}, {"name": "b", "size": 2}, {"name": "c", "size": 2}]},
        {"name": "ab", "of": "r", "flatten": ["a", "b"]}, {"name": "c", "of": "r", "slice": ["c"]}, {"name": "m", "concatenate": ["ab", "c"]})",
     "m"},
    {"unflattened from a root of one dim",
     R"({"name": "r", "world": 12}, {"name": "m", "of": "r", "unflatten": "r", "sizes": [3, 4], "dims": ["a", "b"]})", "m"},
    {"flattened across the world, declared by another view",
     R"({"name": "r", "world": 8, "dims": [{"name": "a", "size": 2}, {"name": "b", "size": 2}, {"name": "c", "size": 2}]},
        {"name": "ac", "of": "r", "flatten": ["a", "c"]}, {"name": "m", "of": "r", "slice": ["a", "c"]})",
     "m"},
    {"the sparse view of parallel_dims",
     R"({"parallel_dims": {"world": 16, "dp_shard": 4, "cp": 2, "tp": 2, "ep": 8}}, {"name": "m", "of": "sparse", "slice": ["edp", "ep"]})",
     "m"},
};

Spec read_testdata(const char* name) {
  std::ifstream file(MESHPLAN_TESTDATA + std::string("/specs/") + name);
  REQUIRE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  return read(text.str());
}

}  // namespace

TEST_CASE("every view of a world replays right") {
  for (const View& view : views) {
    const Spec spec = read(spec_text(view.meshes, view.mesh));
    for (const PlannerKind planner : planners) {
      CAPTURE(view.name);
      CAPTURE(to_text(planner));
      replay_right(plan(spec, planner));
    }
  }
}

TEST_CASE("views of the same layouts plan alike, whatever their rank map") {
  const char* dims = R"("dims": [{"name": "a", "size": 2}, {"name": "b", "size": 4}])";
  const std::string plain = R"({"name": "m", "world": 8, )" + std::string(dims) + "}";
  const std::string turned = R"({"name": "m", "world": 8, "ranks": [7, 6, 5, 4, 3, 2, 1, 0], )" + std::string(dims) + "}";
  for (const PlannerKind planner : planners) {
    const Plan one = plan(read(spec_text(plain, "m")), planner);
    const Plan two = plan(read(spec_text(turned, "m")), planner);
    REQUIRE(one.redistributions.size() == two.redistributions.size());
    for (size_t i = 0; i < one.redistributions.size(); ++i) {
      std::vector<Step> turned_steps = std::as_const(two.redistributions[i].steps).list();
      const std::vector<Step>& plain_steps = std::as_const(one.redistributions[i].steps).list();
      REQUIRE(turned_steps.size() == plain_steps.size());
      for (size_t s = 0; s < plain_steps.size(); ++s) {
        // But for what is packed where communicators number ranks in another order than coordinates do.
        if (plain_steps[s].op == Op::reduce_scatter && turned_steps[s].peak_bytes > plain_steps[s].peak_bytes)
          turned_steps[s].peak_bytes = plain_steps[s].peak_bytes;
      }
      CHECK(turned_steps == plain_steps);
    }
  }
}

TEST_CASE("a mixture-of-experts job on 512 ranks plans under every planner and replays at a shrunken shape") {
  const Spec spec = read_testdata("deepseek-v3-512.json");
  CHECK(rank_count(spec.meshes) == 512);
  for (const PlannerKind planner : planners) {
    const Plan whole = plan(spec, planner);
    REQUIRE(whole.redistributions.size() == spec.requests.size());
    if (planner == PlannerKind::optimal) replay_right(whole);
  }
}

TEST_CASE("a dense job on 16,384 ranks plans under every planner; a reduction over three dims and one across stages replay") {
  const Spec spec = read_testdata("llama3-405b-16384.json");
  CHECK(rank_count(spec.meshes) == 16'384);
  for (const PlannerKind planner : planners) {
    const Plan whole = plan(spec, planner);
    REQUIRE(whole.redistributions.size() == spec.requests.size());
    if (planner != PlannerKind::optimal) continue;
    ReplayOptions options;
    options.shrink = true;
    options.only_ids = {"reduce.norm", "grad_norm.total"};
    const auto report = replay_on_host(whole, options);
    REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
    CHECK_MESSAGE(all_right(*report), to_text(*report));
    CHECK(report->redistributions.size() == 2);
  }
}

}  // namespace meshplan
