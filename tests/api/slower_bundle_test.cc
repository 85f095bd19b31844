// Bundles that take longer than their members one by one are told, and no others.
#include <doctest/doctest.h>

#include "api/texts.h"
#include "api/warnings.h"

using namespace meshplan;

namespace {

// Forty tensors on dp 2 x tp 4, within so many bytes of staging.
std::string forty_tensors(int64_t staging, const std::string& more = {}) {
  return R"~({"schema": "meshplan/spec/1", )~" + more + R"~("mesh": {"dims": [{"name": "dp", "size": 2}, {"name": "tp", "size": 4}]},
      "redistributions": [{"id": "w", "count": 40, "tensor": {"shape": [64, 64], "dtype": "float32"}, "src": ["S(0)", "R"], "dst": ["S(1)", "R"]}],
      "bundles": [{"id": "all", "redistributions": ["w"], "max_staging_bytes": )~" +
         std::to_string(staging) + "}]}";
}

struct OfBundles {
  std::string lines;  // the warnings with their places
  bool fails = false;
  Plan plan;
};

OfBundles of_bundles(const std::string& text, const WarningPolicy& policy = {}) {
  Diagnostics diagnostics;
  int code = 0;
  const auto planned = plan_spec_text(text, {}, {"spec.json", {}, {}, policy}, diagnostics, code);
  REQUIRE_MESSAGE(planned, diagnostics.sorted().front().message);
  OfBundles all{{}, planned->warnings_fail, planned->plan};
  for (const Diagnostic& d : diagnostics.sorted()) {
    if (d.code == "W0306") all.lines += d.place.pointer + " " + d.message + "\n";
  }
  return all;
}

}  // namespace

TEST_CASE("a bundle is said to take longer exactly where its plan says so") {
  int slower = 0;
  int sooner = 0;
  for (int64_t staging = 2048; staging < 1 << 20; staging *= 2) {
    const OfBundles of = of_bundles(forty_tensors(staging));
    const PlannedBundle& bundle = of.plan.bundles.front();
    const bool is_slower = bundle.totals.predicted_ps / 1000 > bundle.alone_ps / 1000;
    CAPTURE(staging);
    CHECK(of.lines.empty() != is_slower);
    CHECK_FALSE(of.fails);
    ++(is_slower ? slower : sooner);
  }
  CHECK(slower > 0);
  CHECK(sooner > 0);
}

TEST_CASE("the warning has both times and the rounds, is silenced by its name and by allow, and an error where that is asked for") {
  const std::string line = "/bundles/0/id bundle 'all' takes 2.04 ms, its members one by one 422 us: by its limits it is 194 rounds\n";
  CHECK(of_bundles(forty_tensors(4096)).lines == line);
  CHECK(of_bundles(forty_tensors(4096), {false, {}, {"slower-bundle"}}).lines.empty());
  CHECK(of_bundles(forty_tensors(4096, R"~("allow": [{"code": "W0306", "reason": "memory is short"}], )~")).lines.empty());
  const OfBundles error = of_bundles(forty_tensors(4096), {false, {"slower-bundle"}, {}});
  CHECK(error.lines == line);
  CHECK(error.fails);
}

TEST_CASE("where limits leave room, it is not they that are said to make a bundle slower") {
  const auto text = [](const std::string& limits) {
    return R"~({"schema": "meshplan/spec/1", "topology": "h100", "meshes": [{"name": "A", "world": 16, "dims": [{"name": "a", "size": 16}]},
        {"name": "B", "world": 8, "ranks": "0-7", "dims": [{"name": "b", "size": 8}]}], "redistributions": [{"id": "w", "src_mesh": "A",
        "dst_mesh": "B", "tensor": {"shape": [8192, 8192], "dtype": "bfloat16"}, "src": ["S(0)"], "dst": ["S(0)"]}],
        "bundles": [{"id": "b", "redistributions": ["w"])~" +
           limits + "}]}";
  };
  for (const std::string limits : {"", R"(, "max_staging_bytes": 0)"}) {
    const OfBundles of = of_bundles(text(limits));
    CHECK(of.plan.bundles.front().totals.predicted_ps > of.plan.bundles.front().alone_ps);
    CHECK(of.lines.find(": by themselves they go in ways that rounds do not run") != std::string::npos);
    CHECK(of.lines.find("limits") == std::string::npos);
  }
  CHECK(of_bundles(text(R"(, "max_staging_bytes": 4194304)")).lines.find(": by its limits it is ") != std::string::npos);
}
