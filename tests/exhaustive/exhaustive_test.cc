// Every source and target of small meshes, through every planner: verified, simulated, replayed,
// and held against one another.
//
//     meshes    2x2, 2x3, 2x2x2, each without and with every flatten declared, merged and not
//     tensors   rank 1 and 2, sizes even, uneven and smaller than the mesh
//     states    every placement of every mesh dim, every shard order, pending reductions of every op, sum mixed with avg
//
// Every pair is planned on 2x2 and 2x3, and on 2x2x2 with sums. Where three mesh dims meet other
// reduce ops, and for the slower engines (simulation, host replay), every n-th pair is taken,
// evenly spread; MESHPLAN_EXHAUSTIVE=1 takes all (minutes).
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/int_math.h"
#include "cost/topology.h"
#include "planner/planner.h"
#include "replay_host/host.h"
#include "verify/simulator.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

bool takes_all() { return std::getenv("MESHPLAN_EXHAUSTIVE") != nullptr; }  // NOLINT(concurrency-mt-unsafe)

MeshTable table_of(const std::vector<int64_t>& sizes, bool flattened) {
  MeshTable table;
  std::vector<std::pair<std::string, int64_t>> dims;
  int64_t world = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    dims.emplace_back(std::string(1, static_cast<char>('a' + i)), sizes[i]);
    world *= sizes[i];
  }
  REQUIRE(add_root(table, "mesh", world, {}, dims).ok());
  for (size_t set = 0; flattened && set < size_t{1} << sizes.size(); ++set) {
    std::vector<std::string> names;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if ((set >> i & 1) != 0) names.push_back(dims[i].first);
    }
    if (names.size() > 1) REQUIRE(declare_flatten(table, "mesh", names).ok());
  }
  return table;
}

// Every state of whole mesh dims; in default order only, or in every order.
std::vector<State> all_states(const std::vector<int64_t>& sizes, size_t tensor_rank, const std::vector<ReduceOp>& ops, bool every_order) {
  std::vector<State> states{State{std::vector<std::vector<SubAxis>>(tensor_rank), {}}};
  for (size_t m = 0; m < sizes.size(); ++m) {
    const SubAxis sub_axis{static_cast<int32_t>(m), 1, sizes[m]};
    std::vector<State> next;
    for (const State& state : states) {
      next.push_back(state);
      for (ReduceOp op : ops) {
        State pending = state;
        pending.partial.push_back({sub_axis, op});
        next.push_back(pending);
      }
      for (size_t d = 0; d < tensor_rank; ++d) {
        for (size_t at = every_order ? 0 : state.shards[d].size(); at <= state.shards[d].size(); ++at) {
          State sharded = state;
          sharded.shards[d].insert(sharded.shards[d].begin() + static_cast<std::ptrdiff_t>(at), sub_axis);
          next.push_back(sharded);
        }
      }
    }
    states = std::move(next);
  }
  return states;
}

Topology two_levels() {
  Topology topology;
  topology.levels = {{"inside", 2, 370'000, 10'000, 500}, {"across", 1'048'576, 45'000, 25'000, 500}};
  return topology;
}

struct Planner {
  PlannerKind kind;
  GroupPolicy groups;
  bool merge;
};

struct Sweep {
  std::vector<int64_t> sizes;
  std::vector<int64_t> shape;
  std::vector<ReduceOp> ops;
  int64_t every = 1;           // of the pairs
  int64_t simulate_every = 1;  // of the plans
};

struct Tally {
  int64_t plans = 0;
  int64_t refused = 0;
  int64_t simulated = 0;
  int64_t replayed = 0;
};

std::string question_text(const Sweep& sweep, const Request& request) {
  std::string text = "mesh";
  for (int64_t s : sweep.sizes) text += " " + std::to_string(s);
  text += ", shape";
  for (int64_t n : sweep.shape) text += " " + std::to_string(n);
  return text + ": " + to_text(request.src, sweep.sizes) + " -> " + to_text(request.dst, sweep.sizes);
}

// Bytes that one rank receives at most in a step, counted rank by rank from the boxes; nullopt: an
// exchange that reduces or has two phases, whose senders are not in the states.
std::optional<int64_t> wire_bytes_by_rank(const Sweep& sweep, const State& before, const Step& step, int64_t element) {
  const test::World world = test::make_world(sweep.sizes);
  int64_t group = 1;
  for (const SubAxis& sub_axis : step.mesh_dims) group *= sub_axis.size;
  if (is_local(step.op)) return 0;
  if (step.op == Op::exchange && (step.reduce_op || step.phases > 1)) return std::nullopt;
  int64_t most = 0;
  for (const auto& rank : world.ranks) {
    const Box old_box = box_of(before, sweep.shape, sweep.sizes, rank);
    const Box new_box = box_of(step.state, sweep.shape, sweep.sizes, rank);
    int64_t bytes = 0;
    if (step.op == Op::all_gather) {
      bytes = (group - 1) * volume(old_box) * element;
    } else if (step.op == Op::reduce_scatter) {
      bytes = (group - 1) * volume(new_box) * element;
    } else if (step.op == Op::all_reduce) {
      bytes = ceil_div(2 * (group - 1) * volume(old_box) * element, group);
    } else if (step.op == Op::exchange) {
      bytes = (volume(new_box) - volume(intersect(old_box, new_box))) * element;
    } else {
      for (const auto& other : world.ranks) {
        if (!test::differ_only_on(step.mesh_dims, world, rank, other)) continue;
        bytes = std::max(bytes, (group - 1) * volume(intersect(box_of(before, sweep.shape, sweep.sizes, other), new_box)) * element);
      }
    }
    most = std::max(most, bytes);
  }
  return most;
}

class Checker {
 public:
  Checker(const Sweep& sweep, const MeshTable& table, const Planner& planner, Tally& tally)
      : sweep_(sweep), table_(table), planner_(planner), tally_(tally) {}

  void run(const std::vector<Request>& requests) {
    PlanOptions options;
    options.planner = planner_.kind;
    options.rules = planner_.kind == PlannerKind::optimal ? Rules::native : Rules::dtensor;
    options.groups = planner_.groups;
    options.merge = planner_.merge;
    PlanOutcome outcome;
    try {
      outcome = plan_requests(table_, two_levels(), requests, options, "");
    } catch (const InternalError&) {
      // One of them fails its own verification: find out which.
      for (const Request& request : requests) {
        try {
          (void)plan_requests(table_, two_levels(), {request}, options, "");
        } catch (const InternalError& error) {
          FAIL_CHECK(question_text(sweep_, request) << " by " << std::string(to_text(planner_.kind)) << ": " << std::string(error.what()));
        }
      }
      return;
    }
    tally_.refused += static_cast<int64_t>(outcome.failures.size());
    tally_.plans += static_cast<int64_t>(outcome.plan.redistributions.size());
    for (const PlanFailure& failure : outcome.failures) check_refusal(requests[failure.index], failure.error);
    const Status status = verify_plan(outcome.plan);
    if (!status) FAIL_CHECK(std::string(to_text(planner_.kind)) << ": " << status.error().message);
    Plan sample = outcome.plan;
    sample.redistributions.clear();
    for (const PlannedRedistribution& planned : outcome.plan.redistributions) {
      check_figures(planned);
      if (++seen_ % sweep_.simulate_every != 0) continue;
      ++tally_.simulated;
      if (!test::simulated_right(sweep_.sizes, sweep_.shape, planned.request.src, planned.steps, planned.dst, 3)) {
        FAIL_CHECK(question_text(sweep_, planned.request)
                   << " by " << std::string(to_text(planner_.kind)) << ": wrong when simulated: " << planned.trace);
      }
      sample.redistributions.push_back(planned);
    }
    check_replay(sample);
  }

 private:
  // Nothing can execute a change to another pending reduction; all else must be planned.
  void check_refusal(const Request& request, const Error& error) {
    CHECK(error.fault == Fault::no_plan);
    if (request.dst.partial.empty()) FAIL_CHECK(question_text(sweep_, request) << ": refused: " << error.message);
  }

  void check_figures(const PlannedRedistribution& planned) {
    const State* before = &planned.request.src;
    for (size_t i = 0; i < planned.steps.size(); ++i) {
      const Step& step = planned.steps[i];
      if (const auto bytes = wire_bytes_by_rank(sweep_, *before, step, element_bytes(planned.request.tensor.dtype));
          bytes && *bytes != step.wire_bytes) {
        FAIL_CHECK(question_text(sweep_, planned.request) << ", step " << i << " (" << std::string(to_text(step.op)) << "): "
                                                          << step.wire_bytes << " wire bytes, counted " << *bytes << ": " << planned.trace);
      }
      before = &step.state;
    }
    if (planner_.kind == PlannerKind::optimal) return;
    int64_t stands_for = 0;
    for (const Step& step : planned.steps) stands_for += step.merged;
    const auto arrows = [](const std::string& trace) { return static_cast<int64_t>(std::count(trace.begin(), trace.end(), '>')); };
    if (stands_for != arrows(planned.unmerged_trace)) {
      FAIL_CHECK(question_text(sweep_, planned.request)
                 << ": the steps stand for " << stands_for << ", the unmerged trace is " << planned.unmerged_trace);
    }
  }

  void check_replay(const Plan& sample) {
    ReplayOptions options;
    options.threads = 1;
    auto report = replay_on_host(sample, options);
    if (!report) {
      FAIL_CHECK("mesh of " << sweep_.sizes.size() << " dims: " << report.error().message);
      return;
    }
    tally_.replayed += static_cast<int64_t>(report->redistributions.size());
    if (all_right(*report)) return;
    for (size_t i = 0; i < report->redistributions.size(); ++i) {
      const RedistributionReport& one = report->redistributions[i];
      if (one.wrong == 0 && one.overruns.empty()) continue;
      FAIL_CHECK(question_text(sweep_, sample.redistributions[i].request)
                 << " by " << std::string(to_text(planner_.kind)) << ": " << one.wrong
                 << " elements wrong when replayed: " << sample.redistributions[i].trace);
    }
  }

  const Sweep& sweep_;
  const MeshTable& table_;
  const Planner& planner_;
  Tally& tally_;
  int64_t seen_ = 0;
};

void sweep_all(const Sweep& given, const std::vector<Planner>& planners, Tally& tally) {
  Sweep sweep = given;
  if (takes_all()) sweep.every = sweep.simulate_every = 1;
  for (const Planner& planner : planners) {
    const std::vector<State> states = all_states(sweep.sizes, sweep.shape.size(), sweep.ops, planner.kind != PlannerKind::greedy);
    std::vector<Request> requests;
    int64_t pair = 0;
    for (const State& src : states) {
      for (const State& dst : states) {
        if (++pair % sweep.every != 0) continue;
        Request& request = requests.emplace_back();
        request.id = std::to_string(requests.size());
        request.tensor.shape = sweep.shape;
        request.src = src;
        request.dst = dst;
      }
    }
    for (bool flattened : {false, true}) {
      if (flattened && !planner.merge) continue;
      const MeshTable table = table_of(sweep.sizes, flattened);
      Checker(sweep, table, planner, tally).run(requests);
    }
  }
}

const std::vector<Planner>& rule_planners() {
  static const std::vector<Planner> planners{{PlannerKind::greedy, GroupPolicy::declared, true},
                                             {PlannerKind::greedy, GroupPolicy::declared, false},
                                             {PlannerKind::graph, GroupPolicy::declared, true},
                                             {PlannerKind::graph, GroupPolicy::declared, false}};
  return planners;
}

void report(const Tally& tally) {
  MESSAGE(tally.plans << " plans verified, " << tally.refused << " refused, " << tally.simulated << " simulated, " << tally.replayed
                      << " replayed");
  CHECK(tally.plans > 0);
  CHECK(tally.replayed > 0);
}

const std::vector<ReduceOp> sums{ReduceOp::sum};
const std::vector<ReduceOp> sums_and_averages{ReduceOp::sum, ReduceOp::avg};

TEST_CASE("greedy and graph on 2x2") {
  Tally tally;
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{8}, {5}, {3}, {1}, {0}, {4, 4}, {5, 3}, {1, 2}}) {
    sweep_all({{2, 2}, shape, sums_and_averages, 1, 3}, rule_planners(), tally);
    for (ReduceOp op : {ReduceOp::min, ReduceOp::max, ReduceOp::product}) sweep_all({{2, 2}, shape, {op}, 1, 7}, rule_planners(), tally);
  }
  report(tally);
}

TEST_CASE("greedy and graph on 2x3") {
  Tally tally;
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{12}, {10}, {4}, {2}, {6, 6}, {5, 4}, {1, 3}}) {
    sweep_all({{2, 3}, shape, sums_and_averages, 1, 3}, rule_planners(), tally);
    for (ReduceOp op : {ReduceOp::min, ReduceOp::max, ReduceOp::product}) sweep_all({{2, 3}, shape, {op}, 1, 7}, rule_planners(), tally);
  }
  report(tally);
}

TEST_CASE("greedy and graph on 2x2x2") {
  Tally tally;
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{16}, {9}, {6}, {3}, {8, 8}, {6, 5}, {3, 2}}) {
    sweep_all({{2, 2, 2}, shape, sums, 1, 97}, rule_planners(), tally);
    sweep_all({{2, 2, 2}, shape, sums_and_averages, 17, 11}, rule_planners(), tally);
    for (ReduceOp op : {ReduceOp::min, ReduceOp::max, ReduceOp::product})
      sweep_all({{2, 2, 2}, shape, {op}, 31, 11}, rule_planners(), tally);
  }
  report(tally);
}

const std::vector<Planner>& optimal_planners() {
  static const std::vector<Planner> planners{{PlannerKind::optimal, GroupPolicy::declared, true},
                                             {PlannerKind::optimal, GroupPolicy::any, true}};
  return planners;
}

TEST_CASE("optimal on 2x2") {
  Tally tally;
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{8}, {5}, {3}, {1}, {0}, {4, 4}, {5, 3}, {1, 2}}) {
    sweep_all({{2, 2}, shape, sums_and_averages, 1, 3}, optimal_planners(), tally);
    for (ReduceOp op : {ReduceOp::min, ReduceOp::max, ReduceOp::product}) sweep_all({{2, 2}, shape, {op}, 3, 5}, optimal_planners(), tally);
  }
  report(tally);
}

TEST_CASE("optimal on 2x3") {
  Tally tally;
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{12}, {10}, {4}, {2}, {6, 6}, {5, 4}, {1, 3}}) {
    sweep_all({{2, 3}, shape, sums_and_averages, 1, 5}, optimal_planners(), tally);
  }
  report(tally);
}

TEST_CASE("optimal on 2x2x2") {
  Tally tally;
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{16}, {9}, {6}, {3}, {8, 8}, {6, 5}, {3, 2}}) {
    sweep_all({{2, 2, 2}, shape, sums, 13, 11}, optimal_planners(), tally);
    sweep_all({{2, 2, 2}, shape, sums_and_averages, 101, 3}, optimal_planners(), tally);
  }
  report(tally);
}

}  // namespace
}  // namespace meshplan
