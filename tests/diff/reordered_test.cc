// The same plan is no difference, and the same lists in another order are no difference but that: every plan of testdata/plans beside itself
// and beside copies whose redistributions, bundles, meshes, flattens and groups stand in other orders.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include "base/text.h"
#include "diff/diff.h"

namespace meshplan {
namespace {

using Order = std::vector<size_t>;  // by new place the old one

Order shuffled(size_t n, std::mt19937& random) {
  Order order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

Order inverse_of(const Order& order) {
  Order inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[order[i]] = i;
  return inverse;
}

template <class T>
std::vector<T> in_order(const std::vector<T>& list, const Order& order) {
  std::vector<T> moved;
  for (const size_t i : order) moved.push_back(list[i]);
  return moved;
}

// Universe by universe, each root before its views.
Order order_of_meshes(const MeshTable& table, std::mt19937& random) {
  Order order;
  const auto universes = universes_of(table);
  for (const size_t u : shuffled(universes.size(), random)) {
    Order views;
    for (size_t m = 0; m < table.meshes.size(); ++m) {
      if (table.meshes[m].universe == universes[u]) views.push_back(m);
    }
    std::shuffle(views.begin() + 1, views.end(), random);
    order.insert(order.end(), views.begin(), views.end());
  }
  return order;
}

Plan reordered(const Plan& plan, std::mt19937& random) {
  Plan moved = plan;
  const Order meshes = order_of_meshes(plan.meshes, random);
  const Order new_mesh = inverse_of(meshes);
  moved.meshes.meshes = in_order(plan.meshes.meshes, meshes);
  moved.meshes.flattens = in_order(plan.meshes.flattens, shuffled(plan.meshes.flattens.size(), random));
  moved.groups = in_order(plan.groups, shuffled(plan.groups.size(), random));
  const Order order = shuffled(plan.redistributions.size(), random);
  const Order new_place = inverse_of(order);
  moved.redistributions = in_order(plan.redistributions, order);
  for (PlannedRedistribution& r : moved.redistributions) {
    r.request.src_mesh = new_mesh[r.request.src_mesh];
    r.request.dst_mesh = new_mesh[r.request.dst_mesh];
  }
  moved.bundles = in_order(plan.bundles, shuffled(plan.bundles.size(), random));
  for (PlannedBundle& bundle : moved.bundles) {
    for (size_t& member : bundle.request.members) member = new_place[member];
    std::sort(bundle.request.members.begin(), bundle.request.members.end());
    for (BundleRound& round : bundle.rounds) {
      for (RoundPart& part : round.parts) part.member = new_place[part.member];
    }
  }
  return moved;
}

std::string told(const PlanDiff& diff) {
  std::vector<std::string> lines = diff.declarations;
  for (const RedistributionDiff& d : diff.redistributions) lines.push_back(std::string(to_text(d.kind)) + " " + d.id);
  for (const WarningDiff& warning : diff.new_warnings) lines.push_back("new: " + warning.message);
  for (const WarningDiff& warning : diff.gone_warnings) lines.push_back("gone: " + warning.message);
  return join(lines, "\n");
}

void check_orders(const Plan& plan, const std::string& name) {
  CAPTURE(name);
  CHECK(told(diff_plans(plan, plan)) == "");
  CHECK(same(diff_plans(plan, plan)));
  std::mt19937 random(7);
  for (int round = 0; round < 3; ++round) {
    const Plan moved = reordered(plan, random);
    const PlanDiff diff = diff_plans(plan, moved);
    std::string wanted;
    if (canonical_content(plan) != canonical_content(moved))
      wanted = "redistributions or declarations are in another order, or properties of groups differ";
    CHECK(told(diff) == wanted);
    CHECK(diff.severity == (wanted.empty() ? DiffSeverity::none : DiffSeverity::cosmetic));
  }
}

// On w, a 2 x b 2: flattens of both dims, by name, in order.
Plan with_flattens(const std::vector<std::string>& names, const std::string& group_options = {}) {
  Plan plan;
  REQUIRE(add_root(plan.meshes, "w", 4, {}, {{"a", 2}, {"b", 2}}).ok());
  for (const std::string& name : names) REQUIRE(add_flatten(plan.meshes, "on_" + name, "w", {"a", "b"}, name, group_options).ok());
  return plan;
}

// Without what is said of the meshes that flattens make.
std::vector<std::string> told_of_flattens(const Plan& before, const Plan& after) {
  std::vector<std::string> lines;
  for (const std::string& text : diff_plans(before, after).declarations) {
    if (text.rfind("flatten ", 0) == 0) lines.push_back(text);
  }
  return lines;
}

TEST_CASE("every plan is the same as itself, and in another order nothing but that is told") {
  int plans = 0;
  for (const auto& file : std::filesystem::directory_iterator(MESHPLAN_TESTDATA "/plans")) {
    std::ifstream in(file.path());
    const auto plan = read_plan(std::string(std::istreambuf_iterator<char>(in), {}));
    REQUIRE(plan.ok());
    check_orders(*plan, file.path().filename().string());
    ++plans;
  }
  CHECK(plans > 40);
  check_orders(with_flattens({"one", "two", "three"}), "flattens of the same dims");
}

TEST_CASE("of several flattens of the same dims each is compared with the one of its name") {
  using Lines = std::vector<std::string>;
  const Plan both = with_flattens({"one", "two"});
  CHECK(told_of_flattens(both, both) == Lines{});
  CHECK(told_of_flattens(both, with_flattens({"two", "one"})) == Lines{});
  CHECK(told_of_flattens(both, with_flattens({"two"})) == Lines{"flatten one over a, b is no longer declared"});
  CHECK(told_of_flattens(with_flattens({"two"}), both) == Lines{"flatten one over a, b is declared"});
  CHECK(told_of_flattens(both, with_flattens({"two", "three"})) == Lines{"flatten three over a, b was called one"});
  CHECK(told_of_flattens(both, with_flattens({"three", "four"})) ==
        Lines{"flatten three over a, b was called one", "flatten four over a, b was called two"});
  CHECK(told_of_flattens(both, with_flattens({"one", "three"}, "{\"x\":1}")) ==
        Lines{"flatten one over a, b has different group options", "flatten three over a, b was called two",
              "flatten three over a, b has different group options"});
}

}  // namespace
}  // namespace meshplan
