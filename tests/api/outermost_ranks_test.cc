// A warning that reading a spec gives, under -W and "allow".
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "api/texts.h"

using namespace meshplan;

namespace {

std::string levels_to(const std::string& ranks, const std::string& more = {}) {
  return R"~({"schema": "meshplan/spec/1", )~" + more + R"~("mesh": {"dims": [{"name": "dp", "size": 3}, {"name": "tp", "size": 8}]},
      "topology": {"levels": [{"name": "nvlink", "ranks": 8, "gb_per_s": 370, "latency_ns": 10000},
                              {"name": "ib", "ranks": )~" +
         ranks + R"~(, "gb_per_s": 45, "latency_ns": 25000}]},
      "redistributions": [{"id": "a", "tensor": {"shape": [5003, 16], "dtype": "float32"}, "src": ["S(0)", "S(1)"], "dst": ["R", "R"]}]})~";
}

struct Outcome {
  std::string lines;  // "W0307 /topology/levels/1\n"
  bool fails = false;
  int64_t predicted_ps = 0;
};

Outcome outcome_of(const std::string& text, const WarningPolicy& policy = {}) {
  Diagnostics diagnostics;
  int code = 0;
  const auto planned = plan_spec_text(text, {}, {"spec.json", {}, {}, policy}, diagnostics, code);
  REQUIRE(planned);
  Outcome all{{}, planned->warnings_fail, planned->plan.redistributions.front().totals.predicted_ps};
  for (const Diagnostic& d : diagnostics.sorted()) {
    if (d.code != "W0301") all.lines += d.code + (d.severity == Severity::error ? "!" : "") + " " + d.place.pointer + "\n";
  }
  return all;
}

}  // namespace

TEST_CASE("an outermost level that names too few ranks is priced like one that names all, and said") {
  const Outcome all = outcome_of(levels_to("1048576"));
  const Outcome few = outcome_of(levels_to("2"));
  CHECK(all.lines == "");
  CHECK(few.lines == "W0307 /topology/levels/1\n");
  CHECK(!few.fails);
  CHECK(few.predicted_ps == all.predicted_ps);
}

TEST_CASE("-W and \"allow\" decide about a warning of reading as about any other") {
  CHECK(outcome_of(levels_to("2"), {false, {}, {"outermost-ranks"}}).lines == "");
  CHECK(outcome_of(levels_to("2"), {false, {}, {"one-copy"}}).lines == "W0307 /topology/levels/1\n");
  CHECK(outcome_of(levels_to("2", R"~("allow": [{"code": "W0307", "reason": "meant"}], )~")).lines == "");
  CHECK(outcome_of(levels_to("2", R"~("allow": [{"code": "W0305", "reason": "meant"}], )~")).lines == "W0307 /topology/levels/1\n");
  // What one file allows, another of the same run does not.
  Diagnostics both;
  int code = 0;
  const std::string allows = R"~("allow": [{"code": "W0307", "reason": "meant"}], )~";
  for (const std::string& text : {levels_to("2"), levels_to("2", allows)})
    REQUIRE(plan_spec_text(text, {}, {"spec.json", {}, {}, {}}, both, code));
  CHECK(std::count_if(both.kept().begin(), both.kept().end(), [](const Diagnostic& d) { return d.code == "W0307"; }) == 1);
  for (const WarningPolicy& policy : {WarningPolicy{true, {}, {}}, WarningPolicy{false, {"outermost-ranks"}, {}}}) {
    const Outcome error = outcome_of(levels_to("2"), policy);
    CHECK(error.lines.find("W0307! /topology/levels/1\n") != std::string::npos);
    CHECK(error.fails);
  }
}
