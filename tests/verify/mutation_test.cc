// Broken plans are caught, right ones are not: random requests through the planners, then every
// mutation of every step.
//
// A mutant that still moves every element to where it belongs is no broken plan. The element-wise
// simulation says which those are; they are counted apart, and the verifier may accept them. It may
// also refuse them, as it holds steps to the definitions of their ops.
#include <doctest/doctest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "base/seed.h"
#include "cost/topology.h"
#include "planner/planner.h"
#include "verify/mutate.h"
#include "verify/simulator.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

using test::Mutant;
using test::Random;

constexpr uint64_t mutation_seed = 20250611;

struct Setting {
  PlannerKind planner;
  Rules rules;
  GroupPolicy groups;
};

const std::vector<Setting>& settings() {
  // The rule planners twice: they are fast.
  static const std::vector<Setting> all{
      {PlannerKind::greedy, Rules::dtensor, GroupPolicy::declared}, {PlannerKind::greedy, Rules::dtensor, GroupPolicy::declared},
      {PlannerKind::graph, Rules::dtensor, GroupPolicy::declared},  {PlannerKind::graph, Rules::dtensor, GroupPolicy::declared},
      {PlannerKind::optimal, Rules::native, GroupPolicy::declared}, {PlannerKind::optimal, Rules::native, GroupPolicy::any}};
  return all;
}

Topology two_levels() {
  Topology topology;
  topology.levels = {{"inside", 2, 370'000, 10'000, 500}, {"across", 1'048'576, 45'000, 25'000, 500}};
  return topology;
}

// The plan of one request; nullopt where nothing can execute it.
std::optional<Plan> plan_of(const MeshTable& table, const Request& request, const Setting& setting, bool merge) {
  PlanOptions options;
  options.planner = setting.planner;
  options.rules = setting.rules;
  options.groups = setting.groups;
  options.merge = merge;
  try {
    PlanOutcome outcome = plan_requests(table, two_levels(), {request}, options, "sha256:" + std::string(64, '0'));
    if (!outcome.failures.empty()) return std::nullopt;
    return std::move(outcome.plan);
  } catch (const InternalError& error) {
    const std::vector<int64_t> sizes = mesh_shape(table.meshes.front());
    FAIL_CHECK(to_text(table.meshes.front()) << " " << to_text(request.src, sizes) << " -> " << to_text(request.dst, sizes) << " by "
                                             << std::string(to_text(setting.planner)) << ": " << std::string(error.what()));
    return std::nullopt;
  }
}

std::string text_of(const Plan& plan, const PlannedRedistribution& planned) {
  std::string text = to_text(plan.meshes.meshes.front()) + ", shape";
  for (int64_t n : planned.request.tensor.shape) text += " " + std::to_string(n);
  text += ": " + planned.trace;
  for (const Step& step : planned.steps) text += std::string(" ") + to_text(step.op);
  return text;
}

bool simulated(const Plan& plan, const PlannedRedistribution& planned) {
  return test::simulated_right(mesh_shape(plan.meshes.meshes.front()), planned.request.tensor.shape, planned.request.src, planned.steps,
                               planned.dst, 11);
}

TEST_CASE("10,000 random right plans raise no alarm") {
  const uint64_t used_seed = test::seed_or(mutation_seed);
  Random random(used_seed);
  int64_t plans = 0;
  while (plans < 10'000) {
    const MeshTable table = test::random_table(random);
    for (int64_t i = 0; i < 8; ++i) {
      const Setting& setting = random.pick(settings());
      const Request request = test::random_request(random, table, setting.planner == PlannerKind::greedy ? 0 : 3);
      auto plan = plan_of(table, request, setting, !random.one_in(4));
      if (!plan) continue;
      ++plans;
      const Status status = verify_plan(*plan);
      if (!status) FAIL_CHECK("seed " << used_seed << ": " << text_of(*plan, plan->redistributions[0]) << ": " << status.error().message);
      if (plans % 8 == 0 && !simulated(*plan, plan->redistributions[0])) {
        FAIL_CHECK("seed " << used_seed << ": accepted, but wrong when run: " << text_of(*plan, plan->redistributions[0]));
      }
    }
  }
}

TEST_CASE("every mutation that breaks a plan is caught, with the step named") {
  const uint64_t used_seed = test::seed_or(mutation_seed);
  Random random(used_seed + 1);
  struct Count {
    int64_t caught = 0;
    int64_t equivalent = 0;
  };
  std::map<std::string, Count> counts;
  for (int64_t round = 0; round < 3'000; ++round) {
    const MeshTable table = test::random_table(random);
    const Setting& setting = random.pick(settings());
    const Request request = test::random_request(random, table, setting.planner == PlannerKind::greedy ? 0 : 2);
    auto plan = plan_of(table, request, setting, !random.one_in(4));
    if (!plan || plan->redistributions[0].steps.empty()) continue;
    for (Mutant& mutant : test::mutants_of(*plan, plan->redistributions[0], random)) {
      Plan broken = *plan;
      test::rewrite_figures(broken, mutant.planned);
      test::add_groups(broken, mutant.planned);
      broken.redistributions[0] = mutant.planned;
      const Status status = verify_redistribution(broken, mutant.planned);
      Count& count = counts[mutant.name];
      if (status) {
        ++count.equivalent;
        if (!simulated(broken, mutant.planned)) {
          FAIL_CHECK("seed " << used_seed << ": '" << mutant.name << "' at step " << mutant.step << " not caught: "
                             << text_of(*plan, plan->redistributions[0]) << " became " << text_of(broken, mutant.planned));
        }
        continue;
      }
      ++count.caught;
      const std::string& message = status.error().message;
      const size_t at = message.find(", step ");
      const bool named = at != std::string::npos && std::strtoull(message.c_str() + at + 7, nullptr, 10) + 1 >= mutant.step;
      const bool none_left = mutant.planned.steps.empty() && message.find("it has no steps") != std::string::npos;
      if (!named && !none_left) FAIL_CHECK("seed " << used_seed << ": '" << mutant.name << "' at step " << mutant.step << ": " << message);
    }
  }
  int64_t caught = 0;
  int64_t equivalent = 0;
  for (const auto& entry : counts) {
    const std::string& name = entry.first;
    const Count& count = entry.second;
    INFO(name);
    CHECK(count.caught > 0);
    caught += count.caught;
    equivalent += count.equivalent;
    MESSAGE(name << ": " << count.caught << " refused, " << count.equivalent << " accepted and right when run");
  }
  MESSAGE(caught << " mutants refused, " << equivalent << " accepted and right when run");
}

TEST_CASE("every wrong figure of a step is caught, with the step named") {
  const uint64_t used_seed = test::seed_or(mutation_seed);
  Random random(used_seed + 2);
  std::map<std::string, int64_t> caught;
  for (int64_t round = 0; round < 1'000; ++round) {
    const MeshTable table = test::random_table(random);
    const Setting& setting = random.pick(settings());
    const Request request = test::random_request(random, table, setting.planner == PlannerKind::greedy ? 0 : 2);
    auto plan = plan_of(table, request, setting, !random.one_in(4));
    if (!plan || plan->redistributions[0].steps.empty()) continue;
    const PlannedRedistribution& right = plan->redistributions[0];
    const auto i = static_cast<size_t>(random.below(static_cast<int64_t>(right.steps.size())));
    auto broken = [&](const std::string& name, const std::function<void(Step&)>& change) {
      PlannedRedistribution mutant = right;
      change(mutant.steps[i]);
      if (mutant.steps[i] == right.steps[i]) return;
      const Status status = verify_redistribution(*plan, mutant);
      const std::string place = "redistribution 'r', step " + std::to_string(i) + " ";
      if (status || status.error().message.find(place) != 0) {
        FAIL_CHECK("seed " << used_seed << ": wrong " << name << " at step " << i << ": " << text_of(*plan, right) << ": "
                           << (status ? std::string("accepted") : status.error().message));
      }
      ++caught[name];
    };
    broken("group", [&](Step& step) {
      // Another group of the same plan, or none at all.
      const std::string other = plan->groups.empty() ? "nowhere" : random.pick(plan->groups).id;
      step.group = step.group.empty() || other == step.group ? step.group + "x" : other;
    });
    broken("logical shape", [&](Step& step) {
      if (step.logical_shape.empty()) {
        step.logical_shape.push_back(1);
      } else {
        step.logical_shape[static_cast<size_t>(random.below(static_cast<int64_t>(step.logical_shape.size())))] += random.one_in(2) ? 1 : -1;
      }
    });
    broken("merged", [&](Step& step) { step.merged += random.one_in(2) ? 1 : -1; });
    broken("src", [&](Step& step) {
      if (step.src) step.src = is_replicate(*step.src) ? partial(ReduceOp::sum) : replicate();
    });
    broken("dst", [&](Step& step) {
      if (step.dst) step.dst = is_replicate(*step.dst) ? shard(0) : replicate();
    });
    broken("tensor dim", [&](Step& step) { step.tensor_dim = step.tensor_dim.value_or(0) + 1; });
    broken("mesh", [&](Step& step) { step.mesh = "elsewhere"; });
  }
  for (const char* name : {"group", "logical shape", "merged", "src", "dst", "tensor dim", "mesh"}) {
    INFO(std::string(name));
    CHECK(caught[name] > 100);
  }
}

// One number of a plan, and the number it is made to be.
struct Figure {
  std::string name;
  std::function<int64_t&(Plan&)> of;
  int64_t unit = 1;  // times are picoseconds inside, nanoseconds in the file
};

std::vector<Figure> figures_of(const Plan& plan) {
  std::vector<Figure> figures;
  const auto add_totals = [&](const std::string& name, const std::function<Totals&(Plan&)>& of) {
    figures.push_back({name + "collectives", [of](Plan& p) -> int64_t& { return of(p).collectives; }});
    figures.push_back({name + "wire_bytes", [of](Plan& p) -> int64_t& { return of(p).wire_bytes; }});
    figures.push_back({name + "peak_bytes", [of](Plan& p) -> int64_t& { return of(p).peak_bytes; }});
    figures.push_back({name + "predicted_ns", [of](Plan& p) -> int64_t& { return of(p).predicted_ps; }, 1000});
    figures.push_back({name + "lower_bound_bytes", [of](Plan& p) -> int64_t& { return of(p).lower_bound_bytes; }});
    figures.push_back({name + "lower_bound_ns", [of](Plan& p) -> int64_t& { return of(p).lower_bound_ps; }, 1000});
  };
  add_totals("the file's ", [](Plan& p) -> Totals& { return p.totals; });
  for (size_t r = 0; r < plan.redistributions.size(); ++r) {
    const std::string place = "redistribution " + std::to_string(r) + ", ";
    figures.push_back({place + "proven_gap_ns", [r](Plan& p) -> int64_t& { return p.redistributions[r].proven_gap_ps; }, 1000});
    add_totals(place, [r](Plan& p) -> Totals& { return p.redistributions[r].totals; });
    for (size_t i = 0; i < plan.redistributions[r].steps.size(); ++i) {
      const std::string step = place + "step " + std::to_string(i) + ", ";
      const auto of = [r, i](Plan& p) -> Step& { return p.redistributions[r].steps[i]; };
      figures.push_back({step + "wire_bytes", [of](Plan& p) -> int64_t& { return of(p).wire_bytes; }});
      figures.push_back({step + "peak_bytes", [of](Plan& p) -> int64_t& { return of(p).peak_bytes; }});
      figures.push_back({step + "predicted_ns", [of](Plan& p) -> int64_t& { return of(p).predicted_ps; }, 1000});
      figures.push_back({step + "phases", [of](Plan& p) -> int64_t& { return of(p).phases; }});
    }
  }
  return figures;
}

// Every sum of figures written anew, as one would who wanted a wrong figure to pass.
void redo_sums(Plan& plan) {
  Totals file;
  for (PlannedRedistribution& planned : plan.redistributions) {
    Totals sum;
    for (const Step& step : planned.steps) {
      if (!step.group.empty()) sum.collectives += step.phases;
      sum.wire_bytes += step.wire_bytes;
      sum.peak_bytes = std::max(sum.peak_bytes, step.peak_bytes);
      sum.predicted_ps += step.predicted_ps;
    }
    sum.lower_bound_bytes = planned.totals.lower_bound_bytes;
    sum.lower_bound_ps = planned.totals.lower_bound_ps;
    planned.totals = sum;
    const int64_t count = planned.request.count;
    file.collectives += count * sum.collectives;
    file.wire_bytes += count * sum.wire_bytes;
    file.peak_bytes = std::max(file.peak_bytes, sum.peak_bytes);
    file.predicted_ps += count * sum.predicted_ps;
    file.lower_bound_bytes += count * sum.lower_bound_bytes;
    file.lower_bound_ps += count * sum.lower_bound_ps;
  }
  plan.totals = file;
}

// The plan as its file gives it back, digest and all.
Plan through_file(const Plan& plan) {
  Result<Plan> read = read_plan(write_plan(plan));
  REQUIRE_MESSAGE(read.ok(), read.error().message);
  return std::move(read).value();
}

bool has_a_searched_gap(const Plan& plan) {
  return std::any_of(plan.redistributions.begin(), plan.redistributions.end(), [](const PlannedRedistribution& planned) {
    return names_of(planned.shortcuts) == std::vector<std::string>{"work_budget"};
  });
}

bool nothing_moves(const Plan& plan) {
  return std::any_of(plan.redistributions.begin(), plan.redistributions.end(), [](const PlannedRedistribution& planned) {
    return std::any_of(planned.request.tensor.shape.begin(), planned.request.tensor.shape.end(), [](int64_t n) { return n == 0; });
  });
}

TEST_CASE("every figure that is one off, 1 or doubled is caught, with the digest and the sums redone") {
  const uint64_t used_seed = test::seed_or(mutation_seed);
  Random random(used_seed + 4);
  std::map<std::string, int64_t> caught;
  for (int64_t round = 0; round < 150; ++round) {
    const MeshTable table = test::random_table(random);
    const Setting& setting = random.pick(settings());
    PlanOptions options;
    options.planner = setting.planner;
    options.rules = setting.rules;
    options.groups = setting.groups;
    std::vector<Request> requests;
    for (int64_t i = 0; i < 2; ++i) {
      requests.push_back(test::random_request(random, table, setting.planner == PlannerKind::greedy ? 0 : 3));
      requests.back().id = "r" + std::to_string(i);
      requests.back().count = 1 + random.below(3);
    }
    Plan plan = plan_requests(table, two_levels(), requests, options, "sha256:" + std::string(64, '0')).plan;
    if (plan.redistributions.empty()) continue;
    plan = through_file(plan);
    REQUIRE(verify_plan(plan).ok());
    for (const Figure& figure : figures_of(plan)) {
      const int64_t is = figure.of(plan) / figure.unit;
      for (const int64_t wrong : {is - 1, is + 1, int64_t{1}, 2 * is}) {
        if (wrong == is || wrong < 0) continue;
        for (const bool redo : {false, true}) {
          Plan broken = plan;
          figure.of(broken) = wrong * figure.unit;
          const bool is_total = figure.name.find("step") == std::string::npos;
          if (redo && is_total) continue;  // would be right again
          if (redo) redo_sums(broken);
          if (figure.name.find("phases") != std::string::npos && (wrong < 1 || wrong > 2)) continue;  // no file holds it
          // Bounds are not counted anew: of several that were rounded up, one nanosecond more or
          // less may be right.
          const bool is_bound = figure.name.find("lower_bound_ns") != std::string::npos;
          if (is_bound && std::abs(wrong - is) < 8) continue;
          // Nor is the bound of a search whose work ended, which its gap comes of.
          if (figure.name.find("proven_gap_ns") != std::string::npos && has_a_searched_gap(plan)) continue;
          // Where nothing moves two phases are no lie.
          if (figure.name.find("phases") != std::string::npos && redo && nothing_moves(broken)) continue;
          const Status status = verify_plan(through_file(broken));
          if (status) {
            FAIL_CHECK("seed " << used_seed << ", round " << round << ": " << figure.name << " of " << wrong << " instead of " << is
                               << (redo ? ", sums redone" : "") << ", not caught: " << text_of(plan, plan.redistributions[0]));
          }
          ++caught[figure.name.substr(figure.name.rfind(' ') + 1)];
        }
      }
    }
  }
  for (const auto& [name, count] : caught) MESSAGE(name << ": " << count << " refused");
}

TEST_CASE("plans full of nonsense are refused, not crashed on") {
  const uint64_t used_seed = test::seed_or(mutation_seed);
  Random random(used_seed + 3);
  int64_t refused = 0;
  int64_t tried = 0;
  for (int64_t round = 0; round < 400; ++round) {
    const MeshTable table = test::random_table(random);
    const Request request = test::random_request(random, table, 2);
    auto plan = plan_of(table, request, settings()[static_cast<size_t>(random.below(4))], true);
    if (!plan || plan->redistributions[0].steps.empty()) continue;
    static const std::vector<int64_t> wild{-1, 0, 1, 2, 3, 5, 64, 65, INT32_MAX, INT64_MAX, INT64_MIN};
    auto wild_sub_axis = [&] { return SubAxis{static_cast<int32_t>(random.pick(wild)), random.pick(wild), random.pick(wild)}; };
    for (int64_t change = 0; change < 20; ++change) {
      Plan broken = *plan;
      PlannedRedistribution& r = broken.redistributions[0];
      Step& step = r.steps[static_cast<size_t>(random.below(static_cast<int64_t>(r.steps.size())))];
      State& state = random.one_in(2) ? step.state : random.one_in(2) ? r.request.src : r.dst;
      switch (random.below(12)) {
        case 0:
          step.mesh_dims.push_back(wild_sub_axis());
          break;
        case 1:
          step.mesh_dims = {wild_sub_axis()};
          break;
        case 2:
          step.mesh_dims.clear();
          break;
        case 3:
          state.partial.push_back({wild_sub_axis(), ReduceOp::sum});
          break;
        case 4:
          state.shards.emplace_back().push_back(wild_sub_axis());
          break;
        case 5:
          if (!state.shards.empty()) state.shards[0].push_back(wild_sub_axis());
          break;
        case 6:
          state.shards.clear();
          break;
        case 7:
          step.moves.push_back({wild_sub_axis(), shard(static_cast<int32_t>(random.pick(wild))), replicate()});
          break;
        case 8:
          step.src = shard(static_cast<int32_t>(random.pick(wild)));
          break;
        case 9:
          step.tensor_dim = static_cast<int32_t>(random.pick(wild));
          break;
        case 10:
          r.request.tensor.shape.push_back(random.pick(wild));
          break;
        default:
          step.op = Op::exchange;
          step.mesh_dims = {wild_sub_axis()};
          step.scale_divisor = random.pick(wild);
          step.phases = random.pick(wild);
          break;
      }
      if (random.one_in(3)) r.request.dst_mesh = static_cast<size_t>(random.below(3));
      ++tried;
      refused += !verify_plan(broken).ok();
    }
  }
  CHECK(refused > tried * 9 / 10);
}

// Two questions, each asked several times, as the file holds them: repeats by name.
nlohmann::json plan_with_repeats() {
  const MeshTable table = test::table_of({{"a", 2}, {"b", 4}});
  const std::vector<int64_t> sizes = mesh_shape(table.meshes.front());
  std::vector<Request> requests;
  for (int64_t i = 0; i < 6; ++i) {
    Request request;
    request.id = "r" + std::to_string(i);
    request.tensor.shape = {64, 32};
    const std::vector<Placement> src{i % 2 == 0 ? shard(0) : partial(ReduceOp::sum), shard(1)};
    const std::vector<Placement> dst{replicate(), shard(1)};
    request.src = make_state(src, sizes, 2).value();
    request.dst = make_state(dst, sizes, 2).value();
    request.count = i + 1;
    requests.push_back(request);
  }
  const PlanOutcome outcome = plan_requests(table, two_levels(), requests, PlanOptions{}, "sha256:" + std::string(64, '0'));
  REQUIRE(outcome.failures.empty());
  return nlohmann::json::parse(write_plan(outcome.plan));
}

TEST_CASE("a plan with repeats is proven as the same plan written out, and refused where it is broken") {
  using nlohmann::json;
  const json right = plan_with_repeats();
  const auto verdict = [&](const std::function<void(json&)>& change) -> std::string {
    json plan = right;
    change(plan["redistributions"]);
    const auto read = read_plan(plan.dump(), false);
    if (!read) return "unread: " + read.error().message;
    const Status status = verify_plan(*read);
    return status ? "right" : "wrong: " + status.error().message;
  };
  const auto begins = [](const std::string& text, const std::string& start) { return text.rfind(start, 0) == 0; };
  const auto write_out = [](json& list, size_t i) {
    json whole = list[i % 2];
    whole["id"] = list[i]["id"];
    whole["count"] = list[i]["count"];
    list[i] = whole;
  };
  for (size_t i = 2; i < 6; ++i) CHECK(right["redistributions"][i]["same_as"] == "r" + std::to_string(i % 2));
  CHECK(verdict([](json&) {}) == "right");
  CHECK(verdict([&](json& r) {
          for (size_t i = 2; i < 6; ++i) write_out(r, i);
        }) == "right");
  for (size_t i = 2; i < 6; ++i) {
    INFO(i);
    const std::string other = "r" + std::to_string((i + 1) % 2);
    CHECK(begins(verdict([&](json& r) { r[i]["count"] = i; }), "wrong: the file's total"));
    CHECK(begins(verdict([&](json& r) { r[i]["same_as"] = other; }), "wrong: "));
    CHECK(begins(verdict([&](json& r) { r.erase(i); }), "wrong: "));
    CHECK(begins(verdict([&](json& r) { r[i]["same_as"] = r[i]["id"]; }), "unread: "));
    CHECK(begins(verdict([&](json& r) { r[i]["same_as"] = "r" + std::to_string(i + 1); }), "unread: "));
    CHECK(begins(verdict([&](json& r) { r[i]["trace"] = r[0]["trace"]; }), "unread: "));
    // A figure of one that is written out is its own again.
    CHECK(begins(verdict([&](json& r) {
                   write_out(r, i);
                   r[i]["steps"][0]["peak_bytes"] = 1;
                 }),
                 "wrong: redistribution 'r" + std::to_string(i) + "'"));
  }
  for (size_t i = 0; i < 2; ++i) {
    INFO(i);
    const std::string name = "wrong: redistribution 'r" + std::to_string(i) + "'";
    CHECK(begins(verdict([&](json& r) { r[i]["steps"][0]["wire_bytes"] = 1; }), name));
    CHECK(begins(verdict([&](json& r) { r[i]["totals"]["predicted_ns"] = 1; }), name));
    CHECK(begins(verdict([&](json& r) { r[i]["steps"][0]["state"] = "RR"; }), name));
  }
}

}  // namespace
}  // namespace meshplan
