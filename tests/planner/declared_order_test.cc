// A declared flatten serves collectives on its dims whatever the order it lists them in: the plan is the one that the flatten in mesh order
// has, but for the name of the group, and what it moves arrives.
#include <doctest/doctest.h>

#include <set>

#include "base/text.h"
#include "cost/topology.h"
#include "planner/flatten_sets.h"
#include "planner/planner.h"
#include "replay_host/host.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

constexpr SubAxis dim_a{0, 1, 2};
constexpr SubAxis dim_b{1, 1, 4};
constexpr SubAxis dim_c{2, 1, 3};
const std::vector<int64_t> turned_ranks{23, 5, 0, 17, 2, 9, 4, 13, 6, 11, 20, 7, 12, 15, 22, 3, 1, 18, 8, 19, 14, 21, 10, 16};

// a 2 x b 4 x c 3, and a view of it with the dims in another order.
MeshTable abc_table(const std::vector<int64_t>& ranks) {
  MeshTable table;
  REQUIRE(add_root(table, "root", 24, ranks, {{"a", 2}, {"b", 4}, {"c", 3}}).ok());
  return table;
}

MeshTable declaring(MeshTable table, const std::vector<std::string>& dims, const std::string& of = "root") {
  REQUIRE(add_flatten(table, "flat", of, dims, "flat").ok());
  return table;
}

Request move_of(std::vector<SubAxis> before, std::vector<SubAxis> after, bool sums, int64_t extent, size_t after_dim) {
  Request request;
  request.tensor = {{extent, 24}, DType::float32};
  request.src.shards.resize(2);
  request.dst.shards.resize(2);
  if (sums) {
    for (const SubAxis& each : before) request.src.partial.push_back({each, ReduceOp::sum});
  } else {
    request.src.shards[0] = std::move(before);
  }
  request.dst.shards[after_dim] = std::move(after);
  return request;
}

// Each kind of collective on `first` and `second`, in both orders of either end, of an even and of an uneven extent.
std::vector<Request> requests_on(const SubAxis& first, const SubAxis& second, size_t mesh = 0) {
  std::vector<Request> requests;
  for (const int64_t extent : {48, 43, 5}) {
    const std::vector<SubAxis> straight{first, second};
    const std::vector<SubAxis> turned{second, first};
    const std::vector<SubAxis> pending = first.mesh_dim < second.mesh_dim ? straight : turned;
    requests.push_back(move_of(pending, {}, true, extent, 0));
    for (const auto& order : {straight, turned}) {
      requests.push_back(move_of(order, {}, false, extent, 0));
      requests.push_back(move_of(pending, order, true, extent, 0));
      for (const auto& other : {straight, turned}) requests.push_back(move_of(order, other, false, extent, 1));
    }
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].id = "r" + std::to_string(i);
    requests[i].src_mesh = requests[i].dst_mesh = mesh;
  }
  return requests;
}

// Exchanges are slow, so that what can run on one communicator does.
Topology slow_messages() {
  Topology topology;
  topology.levels = {{"link", 1'048'576, 100'000, 10'000, 100, 1}};
  return topology;
}

Plan plan_by_collectives(const MeshTable& meshes, const std::vector<Request>& requests, const PlanOptions& options = {},
                         const std::vector<BundleRequest>& bundles = {}) {
  PlanOutcome outcome = plan_requests(meshes, slow_messages(), requests, options, "", bundles);
  for (const PlanFailure& failure : outcome.failures) FAIL(requests[failure.index].id << ": " << failure.error.message);
  const Status verified = verify_plan(outcome.plan);
  REQUIRE_MESSAGE(verified.ok(), (verified.ok() ? "" : verified.error().message));
  return std::move(outcome.plan);
}

void replays_right(const Plan& plan) {
  const auto report = replay_on_host(plan, {});
  REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
  CHECK_MESSAGE(all_right(*report), to_text(*report));
  CHECK(checked_elements(*report) > 0);
}

std::vector<Step> without_groups(const PlannedRedistribution& redistribution) {
  std::vector<Step> steps = redistribution.steps.list();
  for (Step& step : steps) step.group.clear();
  return steps;
}

size_t warnings_of(const Plan& plan) {
  size_t found = 0;
  for (const PlannedRedistribution& r : plan.redistributions) found += r.warnings.size();
  return found;
}

// The kinds of collectives that run on group "flat", in one text; every other one on several mesh dims is an error.
std::string ops_on_flat(const Plan& plan) {
  std::set<std::string> found;
  for (const PlannedRedistribution& r : plan.redistributions) {
    for (const Step& step : r.steps.list()) {
      if (!runs_on_group(step) || step.mesh_dims.size() < 2) continue;
      CHECK(step.group == "flat");
      found.insert(to_text(step.op));
    }
  }
  return join({found.begin(), found.end()}, " ");
}

// No all_to_all: an exchange moves the same boxes in the same time.
const std::string every_collective = "all_gather all_reduce reduce_scatter";

}  // namespace

TEST_CASE("a flatten of dims in another order than the mesh's serves as the one in mesh order does") {
  for (const auto& ranks : {std::vector<int64_t>{}, turned_ranks}) {
    const MeshTable table = abc_table(ranks);
    const std::vector<Request> requests = requests_on(dim_a, dim_b);
    const Plan straight = plan_by_collectives(declaring(table, {"a", "b"}), requests);
    const Plan turned = plan_by_collectives(declaring(table, {"b", "a"}), requests);
    CHECK(warnings_of(straight) == 0);
    CHECK(warnings_of(turned) == 0);
    CHECK(ops_on_flat(straight) == every_collective);
    CHECK(ops_on_flat(turned) == every_collective);
    REQUIRE(turned.redistributions.size() == straight.redistributions.size());
    for (size_t i = 0; i < turned.redistributions.size(); ++i) {
      CAPTURE(turned.redistributions[i].trace);
      CHECK(turned.redistributions[i].totals == straight.redistributions[i].totals);
      CHECK(without_groups(turned.redistributions[i]) == without_groups(straight.redistributions[i]));
    }
    replays_right(turned);
    REQUIRE(turned.groups.size() >= 1);
    for (const PlanGroup& group : turned.groups) {
      if (group.id != "flat") continue;
      CHECK(group.declared);
      CHECK(to_text(group.layout) == "(4,2):(3,12)");
    }
  }
}

TEST_CASE("where both orders are declared each step runs on the one in mesh order, under both rules") {
  MeshTable table = abc_table({});
  REQUIRE(add_flatten(table, "turned", "root", {"b", "a"}, "turned").ok());
  REQUIRE(add_flatten(table, "flat", "root", {"a", "b"}, "flat").ok());
  CHECK(ops_on_flat(plan_by_collectives(table, requests_on(dim_a, dim_b))) == every_collective);
  PlanOptions options;
  options.planner = PlannerKind::graph;
  options.rules = Rules::dtensor;
  CHECK(ops_on_flat(plan_by_collectives(table, requests_on(dim_a, dim_b), options)).find("all_reduce") != std::string::npos);
}

TEST_CASE("PyTorch's rules look for a flatten in mesh order alone, and warn where it is missing") {
  const MeshTable meshes = declaring(abc_table({}), {"b", "a"});
  for (const PlannerKind planner : {PlannerKind::greedy, PlannerKind::graph}) {
    for (const GroupPolicy groups : {GroupPolicy::declared, GroupPolicy::any}) {
      PlanOptions options;
      options.planner = planner;
      options.rules = Rules::dtensor;
      options.groups = groups;
      std::vector<Request> requests = requests_on(dim_a, dim_b);
      requests.resize(1);
      const Plan plan = plan_by_collectives(meshes, requests, options);
      CHECK(ops_on_flat(plan).empty());
      REQUIRE(plan.redistributions[0].warnings.size() == 1);
      CHECK(plan.redistributions[0].warnings[0].kind == WarningKind::missing_flatten);
    }
  }
}

TEST_CASE("a view with the dims in another order runs on the flatten in mesh order of the root, and the other way round") {
  for (const auto& ranks : {std::vector<int64_t>{}, turned_ranks}) {
    MeshTable table = abc_table(ranks);
    REQUIRE(add_transpose(table, "view", "root", {"c", "b", "a"}).ok());
    const SubAxis view_c{0, 1, 3};
    const SubAxis view_a{2, 1, 2};
    const MeshTable straight = declaring(table, {"a", "c"});
    const MeshTable turned = declaring(table, {"c", "a"}, "view");
    for (const MeshTable& meshes : {straight, turned}) {
      for (const auto& requests : {requests_on(dim_a, dim_c), requests_on(view_c, view_a, 1)}) {
        const Plan plan = plan_by_collectives(meshes, requests);
        CHECK(warnings_of(plan) == 0);
        CHECK(ops_on_flat(plan) == every_collective);
        replays_right(plan);
      }
    }
  }
}

TEST_CASE("groups at will share the communicator of the same ranks in another order") {
  MeshTable table = abc_table({});
  REQUIRE(add_transpose(table, "view", "root", {"b", "a"}).ok());
  PlanOptions options;
  options.groups = GroupPolicy::any;
  std::vector<Request> requests = requests_on(dim_a, dim_b);
  const std::vector<Request> of_view = requests_on({0, 1, 4}, {1, 1, 2}, 1);
  requests.insert(requests.end(), of_view.begin(), of_view.end());
  for (size_t i = 0; i < requests.size(); ++i) requests[i].id = "r" + std::to_string(i);
  const Plan plan = plan_by_collectives(table, requests, options);
  std::set<std::string> groups;
  for (const PlannedRedistribution& r : plan.redistributions) {
    for (const Step& step : r.steps.list()) {
      if (runs_on_group(step) && step.mesh_dims.size() > 1) groups.insert(step.group);
    }
  }
  CHECK(groups == std::set<std::string>{"a_b"});
  replays_right(plan);
}

TEST_CASE("what is missing on a view in another order is advised, and saves what it says for every mesh of its ranks") {
  MeshTable table = abc_table({});
  REQUIRE(add_transpose(table, "view", "root", {"c", "b", "a"}).ok());
  const std::vector<size_t> meshes{0, 1};
  for (const size_t first : meshes) {
    // 4 MiB, often: worth a communicator.
    std::vector<Request> requests;
    for (const size_t mesh : {first, 1 - first}) {
      Request& request = requests.emplace_back(move_of({dim_a, dim_b}, {}, true, 43'691, 0));
      request.id = "r" + std::to_string(mesh);
      request.src_mesh = request.dst_mesh = mesh;
      request.count = 1000;
      if (mesh == 1) request.src.partial = {{{1, 1, 4}, ReduceOp::sum}, {{2, 1, 2}, ReduceOp::sum}};
    }
    const Plan plan = plan_by_collectives(table, requests);
    MeshTable with = table;
    std::set<std::string> advised;
    int64_t saves_ns = 0;
    for (const PlannedRedistribution& r : plan.redistributions) {
      REQUIRE(r.warnings.size() == 1);
      const Warning& warning = r.warnings[0];
      CHECK(warning.dims == (first == 0 ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{"b", "a"}));
      advised.insert(warning.mesh + " " + warning.fix_name);
      saves_ns += warning.saves_ns * r.request.count;
      if (with.flattens.empty()) REQUIRE(add_flatten(with, "fix", warning.mesh, warning.dims, warning.fix_name).ok());
    }
    CHECK(advised.size() == 1);
    const Plan followed = plan_by_collectives(with, requests);
    CHECK(warnings_of(followed) == 0);
    for (size_t i = 0; i < requests.size(); ++i)
      saves_ns -= saved_ns(plan.redistributions[i].totals, followed.redistributions[i].totals) * requests[i].count;
    CHECK(saves_ns == 0);
  }
}

TEST_CASE("a bundle's collectives run together on a flatten in another order, of meshes that have its dims in either") {
  for (const auto& ranks : {std::vector<int64_t>{}, std::vector<int64_t>{7, 2, 9, 4, 11, 0, 5, 10, 1, 8, 3, 6}}) {
    MeshTable table;
    REQUIRE(add_root(table, "root", 12, ranks, {{"a", 2}, {"b", 2}, {"c", 3}}).ok());
    REQUIRE(add_transpose(table, "view", "root", {"b", "a"}).ok());
    std::vector<Request> requests = requests_on({0, 1, 2}, {1, 1, 2});
    const std::vector<Request> of_view = requests_on({0, 1, 2}, {1, 1, 2}, 1);
    requests.insert(requests.end(), of_view.begin(), of_view.end());
    BundleRequest bundle;
    bundle.id = "all";
    for (size_t i = 0; i < requests.size(); ++i) {
      requests[i].id = "r" + std::to_string(i);
      bundle.members.push_back(i);
    }
    std::vector<BundleTotals> totals;
    for (const auto& dims : {std::vector<std::string>{"a", "b"}, std::vector<std::string>{"b", "a"}}) {
      const Plan plan = plan_by_collectives(declaring(table, dims), requests, {}, {bundle});
      CHECK(ops_on_flat(plan).find("all_reduce") != std::string::npos);
      bool together = false;
      for (const BundleRound& round : plan.bundles[0].rounds) {
        bool of_root = false;
        bool of_other = false;
        for (const RoundPart& part : round.parts) (plan.redistributions[part.member].request.src_mesh == 0 ? of_root : of_other) = true;
        together = together || (round.group == "flat" && of_root && of_other);
      }
      CHECK(together);
      replays_right(plan);
      totals.push_back(plan.bundles[0].totals);
    }
    CHECK(totals[0] == totals[1]);
  }
}

}  // namespace meshplan
