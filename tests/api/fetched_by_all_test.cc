// Exchanges that all ranks of hosts fetch, on meshes that hosts cut unevenly: a plan on one mesh takes no longer than the same question from
// that mesh to another view of it, but where that goes in shifts, or in laps of all, which one mesh does not have (search/moves.h).
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "api/texts.h"

using namespace meshplan;

namespace {

struct World {
  std::vector<int64_t> sizes;
  std::string topology;
};

std::string names_of(const std::vector<std::string>& placements, bool turned) {
  std::string list;
  for (size_t i = 0; i < placements.size(); ++i)
    list += (i == 0 ? "\"" : ", \"") + placements[turned ? placements.size() - 1 - i : i] + "\"";
  return "[" + list + "]";
}

// The time of the question on mesh m, or from m to t, which has the dims of m the other way round; -1: it is not proven, or goes in a way
// that one mesh does not have.
int64_t planned_ps(const World& w, const std::string& shape, const std::vector<std::string>& src, const std::vector<std::string>& dst,
                   bool across) {
  std::string dims;
  std::string turned;
  for (size_t i = 0; i < w.sizes.size(); ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    dims += (i == 0 ? "" : ", ") + ("{\"name\": \"" + name + "\", \"size\": " + std::to_string(w.sizes[i]) + "}");
    turned = "\"" + name + "\"" + (i == 0 ? "" : ", ") + turned;
  }
  int64_t ranks = 1;
  for (const int64_t size : w.sizes) ranks *= size;
  const std::string text = R"~({"schema": "meshplan/spec/1", "topology": ")~" + w.topology +
                           R"~(", "options": {"groups": "any", "max_memory_bytes": -1},
      "meshes": [{"name": "m", "world": )~" +
                           std::to_string(ranks) + R"~(, "dims": [)~" + dims + R"~(]}, {"name": "t", "of": "m", "transpose": [)~" + turned +
                           R"~(]}], "redistributions": [{"id": "a", )~" +
                           (across ? R"~("src_mesh": "m", "dst_mesh": "t")~" : R"~("mesh": "m")~") + R"~(, "tensor": {"shape": )~" + shape +
                           R"~(, "dtype": "bfloat16"}, "src": )~" + names_of(src, false) + R"~(, "dst": )~" + names_of(dst, across) + "}]}";
  Diagnostics diagnostics;
  int code = 0;
  const auto planned = plan_spec_text(text, {}, {"spec.json", {}, {}, {}}, diagnostics, code);
  REQUIRE_MESSAGE(planned, text);
  const PlannedRedistribution& r = planned->plan.redistributions.front();
  const bool only_across = std::any_of(r.steps.begin(), r.steps.end(), [](const Step& s) { return s.laps > 1 || s.at_once > 0; });
  return (across ? only_across : r.proven_gap_ps > 0) ? -1 : r.totals.predicted_ps;
}

}  // namespace

TEST_CASE("on hosts that cut a mesh unevenly all ranks fetch where that is faster") {
  const std::vector<std::string> s0r{"S(0)", "R"};
  CHECK(planned_ps({{8, 5}, "h100"}, "[8192, 4096]", s0r, {"S(1)", "R"}, false) < 194'000'000);
  CHECK(planned_ps({{16, 5}, "b200"}, "[4096, 16384]", s0r, {"S(1)", "R"}, false) < 231'000'000);
  CHECK(planned_ps({{8, 5}, "mi300x"}, "[156, 256, 1024]", {"S(1)", "R"}, s0r, false) < 236'000'000);
  CHECK(planned_ps({{20}, "mi300x"}, "[8192, 64]", {"S(1)"}, {"R"}, false) < 141'000'000);
}

TEST_CASE("a proven plan on one mesh takes no longer than one to another view of it") {
  const std::vector<World> worlds = {{{8, 5}, "h100"},   {{16, 3}, "b200"}, {{12, 3}, "a100"},
                                     {{5, 8}, "mi300x"}, {{20}, "h200"},    {{3, 12}, "h100"}};
  const std::vector<std::string> placements{"R", "S(0)", "S(1)"};
  std::mt19937_64 random(50);
  int compared = 0;
  for (int k = 0; k < 120; ++k) {
    const World& w = worlds[static_cast<size_t>(k) % worlds.size()];
    const std::string shape = std::vector<std::string>{"[8192, 4096]", "[1000, 5003]", "[768, 96]", "[16384, 8192]"}[random() % 4];
    std::vector<std::string> src;
    std::vector<std::string> dst;
    for (size_t i = 0; i < w.sizes.size(); ++i) {
      src.push_back(placements[random() % 3]);
      dst.push_back(placements[random() % 3]);
    }
    if (src == dst) continue;
    // The order of shards is that of mesh dims, which the view turns round: there each dim has one at most.
    if (src.size() > 1 && ((src[0] == src[1] && src[0] != "R") || (dst[0] == dst[1] && dst[0] != "R"))) continue;
    const int64_t within = planned_ps(w, shape, src, dst, false);
    const int64_t across = planned_ps(w, shape, src, dst, true);
    if (within < 0 || across < 0) continue;
    ++compared;
    CAPTURE(w.topology);
    CAPTURE(w.sizes.front());
    CAPTURE(shape);
    CAPTURE(names_of(src, false));
    CAPTURE(names_of(dst, false));
    CHECK(within <= across);
  }
  CHECK(compared > 50);
}
