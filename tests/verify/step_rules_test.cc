// The rules of a single step against the element-wise simulation, on all small worlds.
//
// For every ordered pair of states and every op whose roles allow the change, the verifier must
// accept the step exactly where running it gives every rank its data: even, uneven and empty
// shards, nested orders, split mesh dims.
#include "verify/step_rules.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "verify/coverage.h"
#include "verify/simulator.h"

namespace meshplan {
namespace {

using verification::check_step;

// Every state in which each sub-axis is free, pending or in some tensor dim's list, in every order.
std::vector<State> all_states(const std::vector<SubAxis>& sub_axes, size_t tensor_rank, const std::vector<ReduceOp>& ops) {
  std::vector<State> states{State{std::vector<std::vector<SubAxis>>(tensor_rank), {}}};
  for (const SubAxis& sub_axis : sub_axes) {
    std::vector<State> next;
    for (const State& state : states) {
      next.push_back(state);
      for (ReduceOp op : ops) {
        if (!state.partial.empty() && !may_mix(state.partial.front().op, op)) continue;
        State pending = state;
        pending.partial.push_back({sub_axis, op});
        next.push_back(pending);
      }
      for (size_t d = 0; d < tensor_rank; ++d) {
        for (size_t at = 0; at <= state.shards[d].size(); ++at) {
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

// 'R', 'P' with its op, or the tensor dim.
std::string role(const State& state, const SubAxis& sub_axis) {
  for (const PendingSubAxis& p : state.partial) {
    if (p.sub_axis == sub_axis) return std::string("P") + to_text(p.op);
  }
  for (size_t d = 0; d < state.shards.size(); ++d) {
    if (std::find(state.shards[d].begin(), state.shards[d].end(), sub_axis) != state.shards[d].end()) return "S" + std::to_string(d);
  }
  return "R";
}

Placement placement(const State& state, const SubAxis& sub_axis) {
  const std::string text = role(state, sub_axis);
  if (text == "R") return replicate();
  if (text[0] == 'S') return shard(text[1] - '0');
  return partial(*parse_reduce_op(text.substr(1)));
}

// The step of this op between the two states, where the table of ops allows it for the sub-axes'
// roles.
std::optional<Step> step_between(Op op, const std::vector<SubAxis>& sub_axes, const State& before, const State& after) {
  Step step;
  step.op = op;
  step.state = after;
  std::vector<PendingSubAxis> reduced;
  for (const SubAxis& sub_axis : sub_axes) {
    const std::string from = role(before, sub_axis);
    const std::string to = role(after, sub_axis);
    const bool was_pending = from[0] == 'P';
    if (from == to) continue;
    bool allowed = false;
    bool listed = true;
    switch (op) {
      case Op::all_gather:
        allowed = from[0] == 'S' && to == "R";
        break;
      case Op::reduce_scatter:
        allowed = to[0] == 'S' && from[0] != 'S';
        listed = was_pending;
        break;
      case Op::all_reduce:
        allowed = was_pending && to == "R";
        break;
      case Op::all_to_all:
        allowed = from[0] == 'S' && to[0] == 'S';
        break;
      case Op::slice:
        allowed = from == "R" && to[0] == 'S';
        break;
      case Op::to_partial:
        allowed = to[0] == 'P' && (from == "R" || (from[0] == 'S' && to == "Psum"));
        break;
      case Op::exchange:
        allowed = to[0] != 'P';
        break;
    }
    if (!allowed) return std::nullopt;
    if (listed && op != Op::exchange) step.mesh_dims.push_back(sub_axis);
    for (const PendingSubAxis& p : before.partial) {
      if (p.sub_axis == sub_axis) reduced.push_back(p);
    }
  }
  if (op == Op::exchange) step.mesh_dims = sub_axes;
  for (const SubAxis& sub_axis : sub_axes) {
    if (role(before, sub_axis) != role(after, sub_axis))
      step.moves.push_back({sub_axis, placement(before, sub_axis), placement(after, sub_axis)});
  }
  if (step.mesh_dims.empty() || (reduced.empty() && (op == Op::reduce_scatter || op == Op::all_reduce))) return std::nullopt;
  if (!reduced.empty()) {
    const test::Reduction how = test::reduction_of(reduced);
    step.reduce_op = how.op;
    step.scale_divisor = how.divisor;
  }
  return step;
}

Mesh mesh_of(const std::vector<int64_t>& sizes) {
  std::vector<std::pair<std::string, int64_t>> dims;
  for (size_t i = 0; i < sizes.size(); ++i) dims.emplace_back(std::string(1, static_cast<char>('a' + i)), sizes[i]);
  auto mesh = make_mesh("mesh", dims);
  REQUIRE(mesh.ok());
  return *mesh;
}

std::vector<SubAxis> whole_dims(const std::vector<int64_t>& sizes) {
  std::vector<SubAxis> sub_axes;
  for (size_t m = 0; m < sizes.size(); ++m) sub_axes.push_back({static_cast<int32_t>(m), 1, sizes[m]});
  return sub_axes;
}

constexpr Op all_ops[] = {Op::slice, Op::all_gather, Op::reduce_scatter, Op::all_to_all, Op::all_reduce, Op::to_partial, Op::exchange};

struct Tally {
  int64_t right = 0;
  int64_t wrong = 0;
};

// Compares the verifier with the simulation on one step.
void compare(const std::vector<int64_t>& sizes, const std::vector<int64_t>& shape, const State& before, const Step& step, Tally& tally) {
  const Mesh mesh = mesh_of(sizes);
  const auto problem = check_step(mesh, sizes, shape, before, step);
  const bool right = test::simulated_right(sizes, shape, before, {step}, step.state, 7);
  ++(right ? tally.right : tally.wrong);
  if (right == !problem.has_value()) return;
  std::string shape_text;
  for (int64_t n : shape) shape_text += " " + std::to_string(n);
  FAIL_CHECK("mesh " << to_text(mesh) << " shape" << shape_text << ": " << std::string(to_text(step.op)) << " " << to_text(before, sizes)
                     << " -> " << to_text(step.state, sizes) << " is " << (right ? "right" : "wrong")
                     << ", the verifier says: " << problem.value_or("fine"));
}

void compare_all(const std::vector<int64_t>& sizes, const std::vector<SubAxis>& sub_axes, const std::vector<std::vector<int64_t>>& shapes,
                 const std::vector<ReduceOp>& ops, int64_t every) {
  std::map<Op, Tally> tallies;
  int64_t seen = 0;
  for (const auto& shape : shapes) {
    const std::vector<State> states = all_states(sub_axes, shape.size(), ops);
    for (const State& before : states) {
      for (const State& after : states) {
        if (before == after) continue;
        for (Op op : all_ops) {
          auto step = step_between(op, sub_axes, before, after);
          if (!step || ++seen % every != 0) continue;
          compare(sizes, shape, before, *step, tallies[op]);
        }
      }
    }
  }
  const bool two_tensor_dims = std::any_of(shapes.begin(), shapes.end(), [](const auto& shape) { return shape.size() > 1; });
  for (Op op : all_ops) {
    INFO(to_text(op));
    if (op != Op::all_to_all || two_tensor_dims) CHECK(tallies[op].right > 0);
  }
  CHECK(tallies[Op::all_gather].wrong > 0);
  CHECK(tallies[Op::slice].wrong > 0);
  CHECK(tallies[Op::reduce_scatter].wrong > 0);
  CHECK(tallies[Op::exchange].wrong == 0);
}

TEST_CASE("a step between whole mesh dims is accepted exactly where its data is right") {
  const std::vector<ReduceOp> sum{ReduceOp::sum};
  SUBCASE("2x2") {
    const std::vector<int64_t> sizes{2, 2};
    compare_all(sizes, whole_dims(sizes), {{8}, {1}, {2}, {3}, {5}, {6}, {0}, {4, 4}, {1, 1}, {2, 3}, {5, 1}, {3, 3}}, sum, 1);
  }
  SUBCASE("2x3") {
    const std::vector<int64_t> sizes{2, 3};
    compare_all(sizes, whole_dims(sizes), {{12}, {1}, {2}, {4}, {5}, {7}, {10}, {6, 6}, {1, 1}, {2, 3}, {5, 4}}, sum, 1);
  }
  SUBCASE("2x2x2") {
    const std::vector<int64_t> sizes{2, 2, 2};
    compare_all(sizes, whole_dims(sizes), {{8}, {1}, {3}, {5}, {6}, {7}, {9}}, sum, 1);
  }
  SUBCASE("2x2x2, tensor rank 2, every 7th") {
    const std::vector<int64_t> sizes{2, 2, 2};
    compare_all(sizes, whole_dims(sizes), {{8, 8}, {1, 1}, {1, 2}, {2, 3}, {3, 3}, {4, 5}}, sum, 7);
  }
  SUBCASE("all reduce ops, 2x2") {
    const std::vector<int64_t> sizes{2, 2};
    compare_all(sizes, whole_dims(sizes), {{4}, {3}, {3, 2}},
                {ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::max, ReduceOp::product}, 1);
  }
}

TEST_CASE("a step on parts of mesh dims is accepted exactly where its data is right") {
  const std::vector<ReduceOp> sum{ReduceOp::sum};
  SUBCASE("4 as 2x2") {
    compare_all({4}, {{0, 1, 2}, {0, 2, 2}}, {{8}, {1}, {2}, {3}, {5}, {6}, {7}, {9}, {10}, {4, 4}, {3, 2}, {6, 5}}, sum, 1);
  }
  SUBCASE("6 as 2x3 and as 3x2") {
    compare_all({6}, {{0, 1, 2}, {0, 2, 3}}, {{12}, {4}, {5}, {7}, {8}, {11}, {10, 3}}, sum, 1);
    compare_all({6}, {{0, 1, 3}, {0, 3, 2}}, {{12}, {4}, {5}, {7}, {8}, {11}, {10, 3}}, sum, 1);
  }
  SUBCASE("8 as 2x2x2") { compare_all({8}, {{0, 1, 2}, {0, 2, 2}, {0, 4, 2}}, {{16}, {5}, {7}, {9}, {10}, {13}}, sum, 1); }
  SUBCASE("4x2 with 4 as 2x2, every 5th") {
    compare_all({4, 2}, {{0, 1, 2}, {0, 2, 2}, {1, 1, 2}}, {{8}, {5}, {6}, {7}, {10}, {5, 3}, {6, 2}}, sum, 5);
  }
}

TEST_CASE("an exchange between parts of a mesh dim that do not nest is accepted exactly where its data is right") {
  const std::vector<int64_t> sizes{6, 2, 2};
  const std::vector<SubAxis> others{{1, 1, 2}, {2, 1, 2}};
  const auto on_parts = [&](const SubAxis& part) {
    std::vector<SubAxis> sub_axes{part};
    sub_axes.insert(sub_axes.end(), others.begin(), others.end());
    std::vector<State> states = all_states(sub_axes, 1, {ReduceOp::sum, ReduceOp::avg});
    std::erase_if(states, [](const State& state) {
      const bool cuts = std::any_of(state.shards[0].begin(), state.shards[0].end(), [](const SubAxis& a) { return a.mesh_dim == 0; });
      return !cuts ||
             std::any_of(state.partial.begin(), state.partial.end(), [](const PendingSubAxis& p) { return p.sub_axis.mesh_dim == 0; });
    });
    return states;
  };
  Tally tally;
  int64_t half = 0;  // reduce a part and keep another
  for (const State& before : on_parts({0, 1, 2})) {
    for (const State& after : on_parts({0, 1, 3})) {
      std::vector<PendingSubAxis> reduced;
      bool turns = false;  // something else into a pending reduction
      for (const SubAxis& sub_axis : others) {
        const std::string from = role(before, sub_axis);
        const std::string to = role(after, sub_axis);
        if (to[0] == 'P' && from != to) turns = true;
        if (from[0] == 'P' && from != to) reduced.push_back({sub_axis, *parse_reduce_op(from.substr(1))});
      }
      Step step;
      step.op = Op::exchange;
      step.state = after;
      step.mesh_dims = whole_dims(sizes);
      if (!reduced.empty()) {
        const test::Reduction how = test::reduction_of(reduced);
        step.reduce_op = how.op;
        step.scale_divisor = how.divisor;
        if (!after.partial.empty() && !turns) ++half;
      }
      if (turns) {
        CHECK(check_step(mesh_of(sizes), sizes, std::vector<int64_t>{12}, before, step));
        continue;
      }
      for (const int64_t extent : {12, 5}) compare(sizes, {extent}, before, step, tally);
      // A reduction that is not told, or told where there is none.
      step.reduce_op = reduced.empty() ? std::optional(ReduceOp::sum) : std::nullopt;
      CHECK(check_step(mesh_of(sizes), sizes, std::vector<int64_t>{12}, before, step));
    }
  }
  CHECK(half > 20);
  CHECK(tally.right > 500);
  CHECK(tally.wrong == 0);
}

TEST_CASE("a mesh dim of size 1 is listed once, as any other") {
  const std::vector<int64_t> sizes{1, 4};
  const std::vector<SubAxis> dims = whole_dims(sizes);
  const State before{{{}, {dims[1]}}, {}};
  const State after{{{dims[1]}, {}}, {}};
  Step step = *step_between(Op::exchange, dims, before, after);
  const std::vector<int64_t> shape{8, 8};
  CHECK(!check_step(mesh_of(sizes), sizes, shape, before, step));
  step.mesh_dims = {dims[0], dims[0], dims[1]};
  CHECK(check_step(mesh_of(sizes), sizes, shape, before, step) == "mesh_dims entries 0 and 1 are not in mesh order or overlap");
}

TEST_CASE("two states are the same exactly where every rank holds the same box") {
  auto compare_states = [](const std::vector<int64_t>& sizes, const std::vector<SubAxis>& sub_axes, const std::vector<int64_t>& shape) {
    const std::vector<State> states = all_states(sub_axes, shape.size(), {});
    const test::World world = test::make_world(sizes);
    int64_t equal_pairs = 0;
    for (const State& a : states) {
      for (const State& b : states) {
        bool equal = true;
        for (const auto& rank : world.ranks) {
          const Box in_a = box_of(a, shape, sizes, rank);
          const Box in_b = box_of(b, shape, sizes, rank);
          if (volume(in_a) != volume(in_b) || (volume(in_a) != 0 && in_a != in_b)) equal = false;
        }
        const State* const both[] = {&a, &b};
        verification::Digits digits;
        REQUIRE(verification::make_digits(sizes, both, {}, digits));
        verification::DigitState in_a;
        verification::DigitState in_b;
        verification::to_digits(a, digits, in_a);
        verification::to_digits(b, digits, in_b);
        const bool said = verification::same_contents(digits, in_a, in_b, shape);
        if (said != equal) FAIL_CHECK(to_text(a, sizes) << " and " << to_text(b, sizes) << " are " << (equal ? "equal" : "different"));
        equal_pairs += equal && !(a == b);
      }
    }
    return equal_pairs;
  };
  int64_t unlike_but_equal = 0;
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{8}, {1}, {2}, {3}, {5}, {1, 1}, {1, 2}, {2, 1}, {3, 1}, {2, 3}, {4, 4}, {0, 3}}) {
    unlike_but_equal += compare_states({2, 2}, whole_dims({2, 2}), shape);
    unlike_but_equal += compare_states({2, 3}, whole_dims({2, 3}), shape);
    unlike_but_equal += compare_states({2, 2, 2}, whole_dims({2, 2, 2}), shape);
    unlike_but_equal += compare_states({4, 2}, {{0, 1, 2}, {0, 2, 2}, {1, 1, 2}}, shape);
    unlike_but_equal += compare_states({6}, {{0, 1, 3}, {0, 3, 2}}, shape);
  }
  CHECK(unlike_but_equal > 0);
}

}  // namespace
}  // namespace meshplan
