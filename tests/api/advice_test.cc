// Advice that keeps its word, on every spec of testdata/specs: what the warnings of a file promise, tried by planning the file again with the
// sets declared, each alone, all together, and all but one.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "api/texts.h"
#include "cost/worth.h"
#include "planner/planner.h"
#include "planner/rank_flattens.h"
#include "verify/verify.h"

using namespace meshplan;
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

Result<std::string> beside_specs(const std::string& name) {
  std::ifstream in(fs::path(MESHPLAN_TESTDATA) / "specs" / name, std::ios::binary);
  if (!in.good()) return bad_input("no " + name);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<fs::path> shipped_specs() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(fs::path(MESHPLAN_TESTDATA) / "specs")) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Topology topology_of(const std::string& name) {
  if (name.find('/') == std::string::npos) return *topology_preset(name);
  Diagnostics diagnostics(10);
  return *read_topology_file(text_of(fs::path(MESHPLAN_TESTDATA) / name), name, diagnostics);
}

// What the redistributions of a plan take by themselves, those of bundles left out, weighted by count.
int64_t apart_ns(const Plan& plan) {
  const std::vector<bool> bundled = run_by_bundles(plan);
  int64_t sum = 0;
  for (size_t i = 0; i < plan.redistributions.size(); ++i) {
    const PlannedRedistribution& r = plan.redistributions[i];
    if (!bundled[i]) sum += r.request.count * ns_of_ps(r.totals.predicted_ps);
  }
  return sum;
}

// The same of the file with these sets declared.
int64_t planned_ns(const PlannedSpec& planned, const std::vector<MergedWarning>& declared) {
  MeshTable meshes = planned.plan.meshes;
  for (const MergedWarning& w : declared) REQUIRE(declare_flatten(meshes, w.warning.mesh, w.warning.dims, w.warning.fix_name).ok());
  PlanOptions options = planned.plan.options;
  options.advice = false;
  const PlanOutcome outcome = plan_requests(meshes, planned.plan.topology, planned.spec.requests, options, "", planned.spec.bundles);
  REQUIRE(outcome.failures.empty());
  return apart_ns(outcome.plan);
}

int64_t ranks_of(const PlannedSpec& planned, const Warning& warning) {
  const Mesh& mesh = planned.plan.meshes.meshes[*find_mesh(planned.plan.meshes, warning.mesh)];
  int64_t ranks = 1;
  for (const std::string& dim : warning.dims) ranks *= mesh.dims[*find_dim(mesh, dim)].size;
  return ranks;
}

// The number of sets advised.
size_t try_advice(const PlannedSpec& planned) {
  const std::vector<MergedWarning> advice = merge_warnings(planned.plan, {});
  if (advice.empty()) return 0;
  const int64_t now = apart_ns(planned.plan);
  int64_t promised = 0;
  for (const MergedWarning& w : advice) promised += w.warning.saves_ns;
  CHECK(now - planned_ns(planned, advice) == promised);
  int64_t most_alone = 0;
  for (size_t i = 0; i < advice.size(); ++i) {
    const Warning& warning = advice[i].warning;
    CAPTURE(warning.fix_name);
    const int64_t alone = now - planned_ns(planned, {advice[i]});
    CHECK(alone >= warning.saves_ns);
    most_alone = std::max(most_alone, warning.saves_ns == alone ? alone : 0);
    std::vector<MergedWarning> others = advice;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const int64_t beside_all = planned_ns(planned, others) - (now - promised);
    CHECK(beside_all * 1000 * most_runs >= communicator_start_ps(ranks_of(planned, warning)));
  }
  // The first that was priced keeps its word alone.
  CHECK(most_alone > 0);
  return advice.size();
}

bool proven(const Plan& plan) {
  return std::all_of(plan.redistributions.begin(), plan.redistributions.end(),
                     [](const PlannedRedistribution& r) { return r.proven_gap_ps == 0; });
}

}  // namespace

TEST_CASE("on every shipped spec all that is advised saves what is promised in sum, and nothing advised is needless") {
  for (const std::string name : {"", "h100", "gb200-nvl72"}) {
    size_t advised = 0;
    for (const fs::path& path : shipped_specs()) {
      CAPTURE(name);
      CAPTURE(path);
      SpecQuestion question;
      question.name = path.string();
      if (!name.empty()) question.topology = topology_of(name);
      Diagnostics diagnostics(100);
      int code = 0;
      const auto planned = plan_spec_text(text_of(path), beside_specs, question, diagnostics, code);
      REQUIRE(planned);
      advised += try_advice(*planned);
    }
    MESSAGE((name.empty() ? "the specs' own topologies" : name) << ": " << advised << " sets advised");
    CHECK(advised > 3);
  }
}

TEST_CASE("on every shipped spec any groups, of which K at most, take what the file takes with those declared") {
  size_t helped = 0;
  for (const fs::path& path : shipped_specs()) {
    for (const std::string name : {"", "h100"}) {
      SpecQuestion question;
      question.name = path.string();
      question.warnings.silenced = {"missing-flatten"};
      question.options.groups = GroupPolicy::any;
      if (!name.empty()) question.topology = topology_of(name);
      for (const int64_t most : {0, 1, 2}) {
        CAPTURE(path);
        CAPTURE(name);
        CAPTURE(most);
        question.options.max_groups = most;
        Diagnostics diagnostics(100);
        int code = 0;
        const auto any = plan_spec_text(text_of(path), beside_specs, question, diagnostics, code);
        REQUIRE(any);
        const auto more = std::count_if(any->plan.groups.begin(), any->plan.groups.end(), [](const PlanGroup& g) { return !g.declared; });
        CHECK(verify_plan(any->plan).ok());
        if (more > 0) {
          Plan fewer = any->plan;
          fewer.options.max_groups = more - 1;
          CHECK_FALSE(verify_plan(fewer).ok());
        }
        const FlattenRanking ranking = rank_flattens(any->plan.meshes, any->plan.topology,
                                                     not_bundled(any->spec.requests, any->spec.bundles), any->plan.options, most);
        CHECK(ranking.chosen.size() <= static_cast<size_t>(most));
        PlanOptions options = any->plan.options;
        options.groups = GroupPolicy::declared;
        options.max_groups = -1;
        options.advice = false;
        const PlanOutcome declared = plan_requests(with_flattens(any->plan.meshes, ranking.chosen), any->plan.topology, any->spec.requests,
                                                   options, "", any->spec.bundles);
        CHECK(declared.plan.totals.predicted_ps == any->plan.totals.predicted_ps);
        CHECK(declared.plan.totals.collectives == any->plan.totals.collectives);
        if (any->spec.bundles.empty() && !ranking.chosen.empty()) {
          // The ranking has a share of the work: no more is promised than comes, and all that comes
          // where each plan is proven.
          const int64_t promised = ranking.chosen.back().total_ps;
          CHECK(promised >= any->plan.totals.predicted_ps);
          if (proven(any->plan)) CHECK(promised == any->plan.totals.predicted_ps);
        }
        helped += ranking.chosen.size();
        if (ranking.chosen.size() < static_cast<size_t>(most) || !any->spec.bundles.empty()) break;
      }
    }
  }
  MESSAGE(helped << " groups taken");
  CHECK(helped > 10);
}

TEST_CASE("advice may leave more collectives, where some move nothing and take no time") {
  const std::string spec = R"~({"schema": "meshplan/spec/1", "meshes": [
    {"name": "w", "world": 8, "dims": [{"name": "a", "size": 4}, {"name": "b", "size": 2}]},
    {"name": "v0", "of": "w", "unflatten": "a", "sizes": [1, 4], "dims": ["v0o", "v0i"]}],
  "redistributions": [
    {"id": "r0", "tensor": {"shape": [1], "dtype": "int32"}, "src_mesh": "v0", "dst_mesh": "w",
     "src": ["R", "P(sum)", "P(sum)"], "dst": ["R", "R"]},
    {"id": "r3", "tensor": {"shape": [1, 1], "dtype": "int64"}, "mesh": "v0", "src": ["R", "S(0)", "S(0)"], "dst": ["R", "R", "R"]}]})~";
  Diagnostics diagnostics(10);
  int code = 0;
  const auto planned = plan_spec_text(spec, beside_specs, {"spec.json", {}, std::nullopt, {}}, diagnostics, code);
  REQUIRE(planned);
  const auto& warnings = planned->plan.redistributions[0].warnings;
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].saves_collectives < 0);
  CHECK(verify_plan(planned->plan).ok());
}
