// Bundles on meshes with dims of one rank: a shard on such a dim cuts nothing, and no way to it may end
// with a step that moves nothing.
#include <doctest/doctest.h>

#include "api/texts.h"

using namespace meshplan;

namespace {

// Ranks in units of 3, two meshes on some of them; the second one has two dims of one rank.
std::string spec_of(const std::string& first, const std::string& second, const std::string& redistributions, const std::string& links) {
  return R"~({"schema": "meshplan/spec/1", "meshes": [{"name": "m0", )~" + first +
         R"~(}, {"name": "m1", "dims": [{"name": "a", "size": 1}, {"name": "b", "size": 1}, )~" + second + R"~(}], "redistributions": [)~" +
         redistributions +
         R"~(], "topology": {"levels": [{"name": "in", "ranks": 3, "gb_per_s": 400, "latency_ns": 1000},
      {"name": "out", "ranks": 1048576, )~" +
         links + R"~(}]}, "bundles": [{"id": "all", "redistributions": ["w.*"]}]})~";
}

Plan planned(const std::string& text) {
  Diagnostics diagnostics;
  int code = 0;
  auto planned = plan_spec_text(text, {}, {"spec.json", {}, {}, {}}, diagnostics, code);
  REQUIRE_MESSAGE(planned, diagnostics.sorted().front().message);
  return planned->plan;
}

}  // namespace

TEST_CASE("shards on a mesh dim of one rank: a bundle gathers by rails, and puts nothing in place behind them") {
  const Plan plan = planned(spec_of(
      R"~("world": 3, "ranks": [0, 4, 7], "dims": [{"name": "d", "size": 3}])~",
      R"~({"name": "c", "size": 2}], "world": 2, "ranks": [6, 4])~",
      R"~({"id": "w.0", "tensor": {"shape": [1], "dtype": "uint8"}, "src": ["R", "R", "S(0)"], "dst": ["S(0)"], "src_mesh": "m1", "dst_mesh": "m0"},
        {"id": "w.1", "tensor": {"shape": [1, 1], "dtype": "uint8"}, "src": ["R", "R", "S(1)"], "dst": ["R", "S(1)", "R"], "mesh": "m1"})~",
      R"~("gb_per_s": 1, "latency_ns": 0)~"));
  CHECK(plan.bundles.size() == 1);
  CHECK(plan.redistributions[1].dst == plan.redistributions[1].request.dst);
}

TEST_CASE("the same where another member is empty") {
  const Plan plan = planned(spec_of(
      R"~("world": 4, "dims": [{"name": "d", "size": 4}])~", R"~({"name": "c", "size": 4}], "world": 4, "ranks": [0, 5, 6, 9])~",
      R"~({"id": "w.0", "tensor": {"shape": [1, 1], "dtype": "uint8"}, "src": ["R", "R", "S(1)"], "dst": ["S(0)", "R", "R"], "mesh": "m1"},
        {"id": "w.1", "tensor": {"shape": [0, 1], "dtype": "uint8"}, "src": ["R", "R", "R"], "dst": ["R"], "src_mesh": "m1", "dst_mesh": "m0"})~",
      R"~("gb_per_s": 10, "latency_ns": 1000)~"));
  CHECK(plan.bundles.size() == 1);
}
