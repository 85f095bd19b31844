// Which redistributions across meshes leave copies of a mesh out, and how that is said.
#include "api/one_copy.h"

#include <doctest/doctest.h>

#include "api/texts.h"

using namespace meshplan;

namespace {

// w is dp 2 x tp 2 on these ranks, row its slice tp.
std::string across(const std::string& redistributions, const std::string& more = {}, const std::string& ranks = "0, 1, 2, 3") {
  return R"~({"schema": "meshplan/spec/1", )~" + more + R"~("meshes": [
      {"name": "w", "world": 4, "ranks": [)~" +
         ranks + R"~(], "dims": [{"name": "dp", "size": 2}, {"name": "tp", "size": 2}]},
      {"name": "row", "of": "w", "slice": ["tp"]}, {"name": "other", "world": 2, "ranks": "8-9"}],
      "redistributions": [)~" +
         redistributions + "]}";
}

std::string moved(const std::string& id, const std::string& src, const std::string& dst) {
  const auto on = [](const std::string& mesh) { return mesh == "w" ? R"~(["S(0)", "R"])~" : R"~(["S(0)"])~"; };
  return R"~({"id": ")~" + id + R"~(", "src_mesh": ")~" + src + R"~(", "dst_mesh": ")~" + dst +
         R"~(", "tensor": {"shape": [8, 8], "dtype": "int8"}, "src": )~" + on(src) + R"~(, "dst": )~" + on(dst) + "}";
}

// The warnings with their places, a line each, and behind them that one is an error.
std::string said(const std::string& text, const WarningPolicy& policy = {}) {
  Diagnostics diagnostics;
  int code = 0;
  const auto planned = plan_spec_text(text, {}, {"spec.json", {}, {}, policy}, diagnostics, code);
  REQUIRE_MESSAGE(planned, diagnostics.sorted().front().message);
  std::string lines;
  for (const Diagnostic& d : diagnostics.sorted()) {
    if (d.code == "W0305") lines += d.place.pointer + " " + d.message + "\n";
  }
  return lines + (planned->warnings_fail ? "fails" : "");
}

const std::string rest = " one copy of 2 of mesh 'row', on ranks ";

}  // namespace

TEST_CASE("what goes to or comes from one copy of several is told once for a mesh, with the ranks that take no part") {
  CHECK(said(across(moved("down", "w", "row"))) == "/redistributions/0/id 'down' goes to" + rest + "0-1: ranks 2-3 get nothing\n");
  CHECK(said(across(moved("up", "row", "w"), "", "5, 3, 0, 1")) ==
        "/redistributions/0/id 'up' comes from" + rest + "3 5: ranks 0-1 send nothing\n");
  CHECK(said(across(moved("out", "other", "w") + ", " + moved("down", "other", "row") + ", " + moved("again", "w", "row"))) ==
        "/redistributions/1/id 2 redistributions (the first 'down') go to" + rest + "0-1: ranks 2-3 get nothing\n");
}

TEST_CASE("whole meshes, one mesh, and recordings leave no copy out") {
  CHECK(said(across(moved("out", "other", "w"))) == "");
  CHECK(said(across(R"~({"id": "in", "mesh": "row", "tensor": {"shape": [8], "dtype": "int8"}, "src": ["S(0)"], "dst": ["R"]})~")) == "");
  CHECK(said(across(moved("down", "w", "row"), R"~("x-recorded": {"by": "meshplan.capture"}, )~")) == "");
}

TEST_CASE("the warning is silenced by its name, by allow and by id, and an error where that is asked for") {
  const std::string both = moved("down", "w", "row") + ", " + moved("on", "other", "row");
  CHECK(said(across(both), {false, {}, {"one-copy"}}) == "");
  CHECK(said(across(both, R"~("allow": [{"code": "W0305", "reason": "meant"}], )~")) == "");
  const std::string all = "/redistributions/0/id 2 redistributions (the first 'down') go to" + rest + "0-1: ranks 2-3 get nothing\n";
  CHECK(said(across(both, R"~("allow": [{"code": "W0305", "id": "down", "reason": "meant"}], )~")) ==
        "/redistributions/1/id 'on' goes to" + rest + "0-1: ranks 2-3 get nothing\n");
  CHECK(said(across(both)) == all);
  CHECK(said(across(both), {false, {"one-copy"}, {}}) == all + "fails");
  CHECK(said(across(both), {true, {}, {}}) == all + "fails");
}
