// Laws of diffs: a plan is the same as itself, both directions tell of the same redistributions, and severities follow the totals.
#include "diff/diff.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <tuple>

#include "planner/planner.h"
#include "spec/spec.h"

namespace meshplan {
namespace {

struct World {
  std::vector<std::pair<std::string, int64_t>> dims = {{"dp", 2}, {"tp", 4}};
  bool flattened = false;
  PlanOptions options;
  std::vector<Request> requests;
};

Request request(const std::string& id, std::vector<int64_t> shape, State src, State dst, int64_t count = 1) {
  Request r;
  r.id = id;
  r.tensor = {std::move(shape), DType::float32};
  r.src = std::move(src);
  r.dst = std::move(dst);
  r.count = count;
  return r;
}

State state(const std::string& text, const World& world, size_t rank) {
  std::vector<int64_t> shape;
  for (const auto& [name, size] : world.dims) shape.push_back(size);
  auto parsed = parse_state(text, shape, rank);
  REQUIRE(parsed.ok());
  return *parsed;
}

World example() {
  World world;
  world.requests = {request("loss", {}, state("P(sum)P(sum)", world, 0), state("RR", world, 0), 32),
                    request("weights", {64, 64}, state("S(0)S(1)", world, 2), state("S(0)R", world, 2))};
  return world;
}

// As read from a file: whole nanoseconds and a digest.
Plan plan_of(const World& world) {
  MeshTable meshes;
  REQUIRE(add_root(meshes, "mesh", 8, {}, world.dims).ok());
  if (world.flattened) REQUIRE(declare_flatten(meshes, "mesh", {"dp", "tp"}).ok());
  const PlanOutcome outcome = plan_requests(meshes, uniform_topology(), world.requests, world.options, "sha256:" + std::string(64, '0'));
  REQUIRE(outcome.failures.empty());
  auto plan = read_plan(write_plan(outcome.plan));
  REQUIRE(plan.ok());
  return *plan;
}

// Under PyTorch's rules the loss takes one all_reduce a mesh dim, or one on the flatten.
World by_pytorch(bool flattened) {
  World world = example();
  world.flattened = flattened;
  world.options.planner = PlannerKind::greedy;
  world.options.rules = Rules::dtensor;
  return world;
}

// Many meshes of 4 ranks; redistribution i is on the i-th, but for one that crosses from the first to `target`.
Plan on_many_meshes(size_t meshes, size_t target) {
  const World world = {{{"dp", 4}}, false, {}, {}};
  MeshTable table;
  std::vector<Request> requests;
  for (size_t i = 0; i < meshes; ++i) {
    const auto first = static_cast<int64_t>(4 * i);
    REQUIRE(add_root(table, "m" + std::to_string(i), 4, {first, first + 1, first + 2, first + 3}, world.dims).ok());
    requests.push_back(request("r" + std::to_string(i), {64}, state("R", world, 1), state("S(0)", world, 1)));
    requests.back().src_mesh = requests.back().dst_mesh = i;
  }
  requests.push_back(request("moved", {64}, state("S(0)", world, 1), state("R", world, 1)));
  requests.back().dst_mesh = target;
  const PlanOutcome outcome = plan_requests(table, uniform_topology(), requests, {}, "sha256:" + std::string(64, '0'));
  REQUIRE(outcome.failures.empty());
  auto plan = read_plan(write_plan(outcome.plan));
  REQUIRE(plan.ok());
  return *plan;
}

TEST_CASE("of thousands of meshes a redistribution that goes to another one is told") {
  const Plan plan = on_many_meshes(3'000, 1);
  CHECK(same(diff_plans(plan, plan)));
  const PlanDiff moved = diff_plans(plan, on_many_meshes(3'000, 2'999));
  CHECK(!same(moved));
  REQUIRE(moved.redistributions.size() == 1);
  CHECK(moved.redistributions.front().id == "moved");
}

TEST_CASE("an exchange between meshes is named by them, with the ranks of both") {
  const PlanDiff moved = diff_plans(on_many_meshes(3, 1), on_many_meshes(3, 2));
  REQUIRE(moved.redistributions.size() == 1);
  REQUIRE(moved.redistributions.front().steps.size() == 2);
  CHECK(moved.redistributions.front().steps[0].text.starts_with("exchange from m0 to m1, 8 ranks: "));
  CHECK(moved.redistributions.front().steps[1].text.starts_with("exchange from m0 to m2, 8 ranks: "));
}

TEST_CASE("a plan is the same as itself, whatever its spec was called") {
  const Plan plan = plan_of(example());
  CHECK(same(diff_plans(plan, plan)));
  Plan other = plan;
  other.spec_digest = "sha256:1";
  CHECK(same(diff_plans(plan, other)));
  for (const char* condition : {"any", "slower", "slower=0%", "numerics", "warnings"}) CHECK(!holds(diff_plans(plan, plan), condition));
}

TEST_CASE("a flatten that is gone is the cause, the reduction's nesting changes and the warning is new") {
  const PlanDiff diff = diff_plans(plan_of(by_pytorch(true)), plan_of(by_pytorch(false)));
  CHECK(diff.severity == DiffSeverity::numerics);
  REQUIRE(diff.redistributions.size() == 1);
  const RedistributionDiff& loss = diff.redistributions[0];
  CHECK(loss.id == "loss");
  CHECK(loss.causes == std::vector<std::string>{"flatten dp_tp over dp, tp is no longer declared"});
  CHECK(loss.numerics.find("; was dp+tp (8 ranks, sum)") != std::string::npos);
  CHECK(loss.new_totals->collectives == 64);
  CHECK(loss.old_totals->collectives == 32);
  CHECK(diff.new_warnings.size() == 1);
  CHECK(diff.gone_warnings.empty());
  for (const char* condition : {"any", "slower", "numerics", "warnings"}) CHECK(holds(diff, condition));
  CHECK(!holds(diff, "slower=1000%"));

  const PlanDiff back = diff_plans(plan_of(by_pytorch(false)), plan_of(by_pytorch(true)));
  CHECK(!holds(back, "slower"));
  CHECK(!holds(back, "warnings"));
  CHECK(back.gone_warnings.size() == 1);
}

TEST_CASE("a flatten that nothing uses is a difference") {
  World without = example();
  without.requests.erase(without.requests.begin());
  World with = without;
  with.flattened = true;
  const PlanDiff diff = diff_plans(plan_of(without), plan_of(with));
  CHECK(diff.severity == DiffSeverity::cosmetic);
  CHECK(diff.redistributions.empty());
  CHECK(diff.declarations == std::vector<std::string>{"flatten dp_tp over dp, tp is declared"});
}

TEST_CASE("redistributions are matched by id, then by content") {
  World moved = example();
  std::swap(moved.requests[0], moved.requests[1]);
  const PlanDiff order = diff_plans(plan_of(example()), plan_of(moved));
  CHECK(order.redistributions.empty());

  World renamed = example();
  renamed.requests[1].id = "parameters";
  const PlanDiff name = diff_plans(plan_of(example()), plan_of(renamed));
  REQUIRE(name.redistributions.size() == 1);
  CHECK(name.redistributions[0].kind == DiffKind::renamed);
  CHECK(name.redistributions[0].old_id == "weights");
  CHECK(name.severity == DiffSeverity::cosmetic);

  World fewer = example();
  fewer.requests.pop_back();
  CHECK(diff_plans(plan_of(example()), plan_of(fewer)).severity == DiffSeverity::cheaper);
  const PlanDiff more = diff_plans(plan_of(fewer), plan_of(example()));
  CHECK(more.severity == DiffSeverity::dearer);
  CHECK(more.redistributions[0].kind == DiffKind::added);
}

TEST_CASE("what asks the same under another name and another count has moved") {
  World before = example();
  World after = example();
  after.requests[1].id = "blocks.weights";
  after.requests[1].count = 3;
  after.requests[1].notes = {{"x-module", "\"blocks.0\""}, {"x-source", "\"train.py:9\""}};
  const PlanDiff diff = diff_plans(plan_of(before), plan_of(after));
  REQUIRE(diff.redistributions.size() == 1);
  CHECK(diff.redistributions[0].kind == DiffKind::moved);
  CHECK(diff.redistributions[0].old_id == "weights");
  CHECK(diff.redistributions[0].module == "blocks.0");
  CHECK(diff.redistributions[0].source == "train.py:9");
  CHECK(diff.redistributions[0].steps.empty());
}

TEST_CASE("notes alone are no difference") {
  World before = example();
  World after = example();
  before.requests[0].notes = {{"x-source", "\"train.py:9\""}};
  after.requests[0].notes = {{"x-source", "\"train.py:10\""}};
  CHECK(same(diff_plans(plan_of(before), plan_of(after))));
}

TEST_CASE("the least or greatest over other ranks is the same bits, sums are not") {
  for (const char* op : {"max", "min", "sum"}) {
    World before = example();
    World after = example();
    before.requests[0].src = state(std::string("P(") + op + ")P(" + op + ")", before, 0);
    after.requests[0].src = state(std::string("P(") + op + ")R", after, 0);
    const PlanDiff diff = diff_plans(plan_of(before), plan_of(after));
    REQUIRE(diff.redistributions.size() == 1);
    CHECK((diff.severity == DiffSeverity::numerics) == (op == std::string("sum")));
    CHECK(diff.redistributions[0].numerics.empty() == (op != std::string("sum")));
  }
  World before = example();
  World after = example();
  after.requests[0].src = state("P(max)P(max)", after, 0);
  CHECK(diff_plans(plan_of(before), plan_of(after)).severity == DiffSeverity::numerics);
}

TEST_CASE("an exchange reduces what was pending, whatever mesh dims it lists") {
  World before = example();
  World after = example();
  for (World* world : {&before, &after}) {
    world->requests[0] = request("grads", {64, 64}, state("P(sum)S(0)", *world, 2), state("S(0)[0]S(0)[1]", *world, 2));
  }
  after.options.planner = PlannerKind::greedy;
  after.options.rules = Rules::dtensor;
  const PlanDiff diff = diff_plans(plan_of(before), plan_of(after));
  for (const RedistributionDiff& d : diff.redistributions) {
    CHECK(d.numerics.find("tp") == std::string::npos);
    if (d.id == "grads") CHECK(d.numerics.find("dp (2 ranks, sum") != std::string::npos);
  }
}

TEST_CASE("every change of the request is named") {
  World other = example();
  other.requests[1].tensor.shape = {64, 128};
  other.requests[1].count = 2;
  const PlanDiff diff = diff_plans(plan_of(example()), plan_of(other));
  REQUIRE(diff.redistributions.size() == 1);
  CHECK(diff.redistributions[0].causes ==
        std::vector<std::string>{"the tensor is float32[64, 128]; was float32[64, 64]", "the count is 2; was 1"});
  CHECK(diff.redistributions[0].severity == DiffSeverity::dearer);
}

TEST_CASE("another planner, other options and another mesh are causes") {
  World greedy = example();
  greedy.options.planner = PlannerKind::greedy;
  greedy.options.rules = Rules::dtensor;
  CHECK(diff_plans(plan_of(example()), plan_of(greedy)).declarations ==
        std::vector<std::string>{"the planner is greedy; was optimal", "the set of rules is dtensor; was native"});
  World turned = example();
  turned.dims = {{"dp", 4}, {"tp", 2}};
  turned.requests[0].src = state("P(sum)P(sum)", turned, 0);
  turned.requests[1].src = state("S(0)S(1)", turned, 2);
  turned.requests[1].dst = state("S(0)R", turned, 2);
  const PlanDiff mesh = diff_plans(plan_of(example()), plan_of(turned));
  CHECK(mesh.declarations == std::vector<std::string>{"mesh dim dp has size 4; was 2", "mesh dim tp has size 2; was 4"});
  REQUIRE(mesh.redistributions.size() == 1);  // the loss is reduced by one exchange of the same 8 ranks
  CHECK(mesh.redistributions[0].causes == mesh.declarations);
}

TEST_CASE("what only one of two plans was asked to list is the cause where nothing else is") {
  World audited = by_pytorch(false);
  audited.options.audit = true;
  audited.options.alternatives = 2;
  const Plan plain = plan_of(by_pytorch(false));
  Plan listed = plan_of(audited);
  REQUIRE_FALSE(listed.redistributions[0].audit.empty());
  const auto causes = [](const Plan& before, const Plan& after) {
    const PlanDiff diff = diff_plans(before, after);
    REQUIRE(!diff.redistributions.empty());
    CHECK(diff.severity == DiffSeverity::cosmetic);
    return diff.redistributions[0].causes;
  };
  std::vector<std::string> codes;
  for (const AuditFinding& finding : listed.redistributions[0].audit) codes.push_back(finding.code);
  const std::string all = codes.size() == 1 ? codes[0] : codes[0] + ", " + codes[1];
  listed.redistributions[0].alternatives.clear();
  CHECK(causes(plain, listed) == std::vector<std::string>{"the audit's findings are " + all + "; were none"});
  CHECK(causes(listed, plain) == std::vector<std::string>{"the audit's findings are none; were " + all});
  Plan reworded = listed;
  reworded.redistributions[0].audit[0].message += " now";
  CHECK(causes(listed, reworded) == std::vector<std::string>{"the audit's findings (" + all + ") say something else"});
  Plan beside = listed;
  beside.redistributions[0].alternatives = {{"P(sum)P(sum)->RR", {}}};
  CHECK(causes(listed, beside) == std::vector<std::string>{"1 alternative listed; 0 were"});
  CHECK(causes(beside, listed) == std::vector<std::string>{"0 alternatives listed; 1 was"});
}

TEST_CASE("a topology without a name is called by its source") {
  const Plan plan = plan_of(example());
  Plan own = plan;
  own.topology.name.clear();
  own.topology.source.clear();
  CHECK(diff_plans(plan, own).declarations == std::vector<std::string>{"the topology is a custom one; was uniform"});
  Plan fitted = own;
  fitted.topology.source = "calibrated by meshplan from 30 measured rows";
  CHECK(diff_plans(own, fitted).declarations ==
        std::vector<std::string>{"the topology is calibrated by meshplan from 30 measured rows; was a custom one"});
  Plan again = fitted;
  again.topology.levels.front().latency_ns += 1;
  CHECK(diff_plans(fitted, again).declarations ==
        std::vector<std::string>{"the topology (calibrated by meshplan from 30 measured rows) has different values"});
}

TEST_CASE("what moves with the same bundle as before is named so, as its own figures do not decide") {
  const auto in_bundle = [](const World& world, const std::string& id) {
    Plan plan = plan_of(world);
    PlannedBundle bundle;
    bundle.request.id = id;
    bundle.request.members = {1};
    bundle.tensors = 1;
    plan.bundles.push_back(bundle);
    return plan;
  };
  World larger = example();
  larger.requests[1].tensor.shape = {128, 64};
  const PlanDiff diff = diff_plans(in_bundle(example(), "sync"), in_bundle(larger, "sync"));
  REQUIRE(diff.redistributions.size() == 1);
  CHECK(diff.redistributions[0].severity == DiffSeverity::dearer);
  CHECK(diff.redistributions[0].bundle == "sync");
  CHECK(nlohmann::json::parse(diff_json(diff, false))["redistributions"][0]["bundle"] == "sync");
  // In another bundle, or in none.
  CHECK(diff_plans(in_bundle(example(), "sync"), in_bundle(larger, "other")).redistributions[0].bundle.empty());
  CHECK(diff_plans(plan_of(example()), in_bundle(larger, "sync")).redistributions[0].bundle.empty());
}

TEST_CASE("other steps of a bundle's member come of what is asked of the bundle, or of its other members") {
  const Plan plan = plan_of(example());
  const auto bundled = [&](const std::string& id, std::vector<size_t> members, int64_t staging) {
    Plan with = plan;
    PlannedBundle& bundle = with.bundles.emplace_back();
    bundle.request.id = id;
    bundle.request.members = std::move(members);
    bundle.request.max_staging_bytes = staging;
    return with;
  };
  const Plan before = bundled("sync", {0, 1}, 1024);
  // The second member goes by other steps.
  const auto causes = [&](Plan after) {
    after.redistributions[1].steps = after.redistributions[0].steps;
    const PlanDiff diff = diff_plans(before, after);
    REQUIRE(diff.redistributions.back().id == "weights");
    return diff.redistributions.back().causes;
  };
  using Texts = std::vector<std::string>;
  CHECK(causes(bundled("sync", {0, 1}, 2048)) == Texts{"bundle sync: max_staging_bytes 2.00 KiB, was 1.00 KiB"});
  CHECK(causes(bundled("sync", {1}, 1024)) == Texts{"bundle sync has different members"});
  CHECK(causes(bundled("all", {0, 1}, 1024)) == Texts{"it is in bundle all; was in bundle sync"});
  CHECK(causes(plan) == Texts{"it is in no bundle; was in bundle sync"});
  Plan other = before;
  other.redistributions[0].request.tensor.dtype = DType::float64;
  CHECK(causes(other) == Texts{"members of bundle sync are asked for otherwise"});
  CHECK(causes(before) == Texts{"another version of meshplan: the declarations of the files are the same"});
}

TEST_CASE("percentages are exact tenths, away from zero at halves") {
  CHECK(percent_text(1000, 1000).empty());
  CHECK(percent_text(1000, 1025) == "+2.5 %");
  CHECK(percent_text(2000, 2001) == "+0.1 %");
  CHECK(percent_text(100'000, 99'999) == "-<0.1 %");
  CHECK(percent_text(0, 7) == "from nothing");
  CHECK(percent_text(1, INT64_MAX).back() == '%');
}

TEST_CASE("the verdict of the JSON says what the conditions say") {
  const PlanDiff diff = diff_plans(plan_of(by_pytorch(true)), plan_of(by_pytorch(false)));
  const auto document = nlohmann::json::parse(diff_json(diff, true));
  CHECK(document["schema"] == "meshplan/diff/1");
  CHECK(document["verdict"] == nlohmann::json({{"dearer", true},
                                               {"different", true},
                                               {"failed", true},
                                               {"numerics", true},
                                               {"severity", "numerics-changing"},
                                               {"warnings", true}}));
  CHECK(document["redistributions"][0]["steps"].size() == 3);
}

std::string text_of(const RedistributionDiff& d) {
  std::string text = d.id + "|" + d.old_id + "|" + to_text(d.kind) + "|" + to_text(d.severity) + "|" + std::to_string(d.old_count) + "->" +
                     std::to_string(d.new_count) + "|" + d.old_trace + "|" + d.new_trace + "|" + d.numerics;
  for (const std::string& cause : d.causes) text += "|" + cause;
  for (const StepDiff& step : d.steps) text += std::string("|") + to_text(step.kind) + " " + step.text;
  for (const auto& totals : {d.old_totals, d.new_totals}) text += totals ? "|" + std::to_string(totals->predicted_ps) : "|none";
  return text;
}

TEST_CASE("redistributions that repeat one another differ as each would alone") {
  // Of every question several, with counts of their own, in the old file and in the new one.
  World before = by_pytorch(true);
  for (const auto& [id, kind, count] :
       {std::tuple("loss again", 0, 7), std::tuple("weights again", 1, 3), std::tuple("loss at last", 0, 32)}) {
    before.requests.push_back(before.requests[static_cast<size_t>(kind)]);
    before.requests.back().id = id;
    before.requests.back().count = count;
  }
  World after = before;
  after.flattened = false;
  after.requests[2].count = 8;                 // counted otherwise too
  after.requests[3].tensor.shape = {128, 64};  // no repeat any more
  after.requests[4] = after.requests[1];       // a repeat of another
  after.requests[4].id = "loss at last";
  std::vector<std::string> apart;
  for (size_t i = 0; i < before.requests.size(); ++i) {
    World old_one = before;
    World new_one = after;
    old_one.requests = {before.requests[i]};
    new_one.requests = {after.requests[i]};
    for (const RedistributionDiff& d : diff_plans(plan_of(old_one), plan_of(new_one)).redistributions) apart.push_back(text_of(d));
  }
  std::vector<std::string> together;
  for (const RedistributionDiff& d : diff_plans(plan_of(before), plan_of(after)).redistributions) together.push_back(text_of(d));
  CHECK(together == apart);
  CHECK(apart.size() == 4);  // the weights are planned as before
  // Renamed, each to a name of its own.
  World renamed = before;
  for (Request& r : renamed.requests) r.id = "new " + r.id;
  const PlanDiff diff = diff_plans(plan_of(before), plan_of(renamed));
  REQUIRE(diff.redistributions.size() == before.requests.size());
  for (size_t i = 0; i < before.requests.size(); ++i) {
    CHECK(diff.redistributions[i].kind == DiffKind::renamed);
    CHECK(diff.redistributions[i].old_count == before.requests[i].count);
    CHECK(diff.redistributions[i].causes[0].find("the id is ") == 0);
  }
}

}  // namespace
}  // namespace meshplan
