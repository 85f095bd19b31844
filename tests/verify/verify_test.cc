#include "verify/verify.h"

#include <doctest/doctest.h>

#include <chrono>
#include <functional>

#include "verify/build_plan.h"

namespace meshplan {
namespace {

using test::hand_plan;
using test::HandStep;
using test::table_of;

std::string verdict(const Plan& plan) {
  Status status = verify_plan(plan);
  if (status) return "right";
  CHECK(status.error().fault == Fault::wrong_data);
  return status.error().message;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The one step of a redistribution from mesh 0, which goes to mesh 1, "inner", of 4 ranks.
void cross_to_inner(PlannedRedistribution& r, Step& step, const char* state) {
  r.request.dst_mesh = 1;
  r.request.dst = r.dst = step.state = *parse_state(state, std::vector<int64_t>{4}, 2);
  step.mesh = "inner";
  step.mesh_dims = {{0, 1, 4}};
  step.src.reset();
  step.dst.reset();
  step.tensor_dim.reset();
  step.moves.clear();
}

TEST_CASE("right plans of every op") {
  const MeshTable table = table_of({{"a", 2}, {"b", 4}}, {{"a", "b"}});
  auto right = [&](const std::vector<int64_t>& shape, const std::string& src, const std::vector<HandStep>& steps) {
    CHECK(verdict(hand_plan(table, shape, src, steps)) == "right");
  };
  right({8, 8}, "S(0)S(1)", {});
  right({8, 8}, "S(0)[0]S(0)[1]", {{Op::all_gather, {"a", "b"}, "RR"}});
  right({7, 5}, "S(0)[0]S(0)[1]", {{Op::all_gather, {"b"}, "S(0)R"}, {Op::all_gather, {"a"}, "RR"}});
  right({7, 5}, "S(0)S(1)", {{Op::all_gather, {"a", "b"}, "RR"}});
  right({8}, "P(sum)P(sum)", {{Op::all_reduce, {"a", "b"}, "RR", ReduceOp::sum}});
  right({8}, "P(sum)P(avg)", {{Op::all_reduce, {"a", "b"}, "RR", ReduceOp::sum, 4}});
  right({8}, "P(avg)P(avg)", {{Op::all_reduce, {"a", "b"}, "RR", ReduceOp::avg}});
  right({9}, "P(sum)P(sum)", {{Op::reduce_scatter, {"a", "b"}, "S(0)[1]S(0)[0]", ReduceOp::sum}});
  right({9}, "P(sum)R", {{Op::reduce_scatter, {"a"}, "S(0)[1]S(0)[0]", ReduceOp::sum}});  // b is sliced above it in the same step
  right({9, 6}, "S(0)[0]S(0)[1]", {{Op::all_to_all, {"b"}, "S(0)S(1)"}});
  right({9, 6}, "S(0)[0]S(0)[1]", {{Op::all_to_all, {"a", "b"}, "S(1)[1]S(1)[0]"}});
  right({9, 6, 5}, "S(0)[0]S(0)[1]", {{Op::all_to_all, {"a", "b"}, "S(1)S(2)"}});
  right({9, 6}, "S(0)[0]S(0)[1]", {{Op::exchange, {}, "S(1)[1]S(1)[0]"}});
  right({9, 6}, "S(0)P(max)", {{Op::exchange, {}, "S(1)P(max)"}});
  right({9, 6}, "S(0)P(max)", {{Op::exchange, {}, "RS(1)", ReduceOp::max}});
  right({9, 6}, "RR", {{Op::slice, {"a", "b"}, "S(0)[1]S(0)[0]"}});
  right({9, 6}, "RS(0)", {{Op::to_partial, {"a", "b"}, "P(sum)P(sum)"}});
  right({9, 6}, "RR", {{Op::to_partial, {"a"}, "P(product)R"}});
  right({}, "P(min)R", {{Op::all_reduce, {"a"}, "RR", ReduceOp::min}});
  right({0, 3}, "S(0)[0]S(0)[1]", {{Op::exchange, {}, "S(1)R"}});
  // Parts of a mesh dim.
  right({9, 6}, "RS(0)", {{Op::all_gather, {"b:(2)2"}, "R{S(0):2,R:2}"}, {Op::all_gather, {"b:(1)2"}, "RR"}});
  right({9, 6}, "RS(0)", {{Op::all_to_all, {"b:(2)2"}, "R{S(0):2,S(1):2}"}});
  // Unlike states with equal boxes: one element on eight ranks is on the first alone, whatever the order.
  Plan reordered = hand_plan(table, {1}, "S(0)[0]S(0)[1]", {});
  reordered.redistributions[0].request.dst = *parse_state("S(0)[1]S(0)[0]", std::vector<int64_t>{2, 4}, 1);
  reordered.redistributions[0].dst = reordered.redistributions[0].request.dst;
  CHECK(verdict(reordered) == "right");
  reordered.redistributions[0].request.tensor.shape = {2};
  CHECK(contains(verdict(reordered), "it has no steps"));
}

TEST_CASE("wrong steps are named") {
  const MeshTable table = table_of({{"a", 2}, {"b", 4}}, {{"a", "b"}});
  auto wrong = [&](const std::vector<int64_t>& shape, const std::string& src, const std::vector<HandStep>& steps, const std::string& where,
                   const std::string& what) {
    const std::string said = verdict(hand_plan(table, shape, src, steps));
    CHECK_MESSAGE(contains(said, "redistribution 'x', " + where), said);
    CHECK_MESSAGE(contains(said, what), said);
  };
  // Gathering the outer of two nested dims leaves holes, even ones and uneven ones.
  wrong({8}, "S(0)[0]S(0)[1]", {{Op::all_gather, {"a"}, "RS(0)"}}, "step 0 (all_gather)", "tensor dim 0: ");
  wrong({7}, "S(0)[0]S(0)[1]", {{Op::all_gather, {"a"}, "RS(0)"}}, "step 0 (all_gather)", "no rank in its group holds element");
  // 10 over 2x4 is not 10 over 8: a scatter on the flat group would leave other boxes.
  wrong({10}, "S(0)R", {{Op::slice, {"b"}, "S(0)[1]S(0)[0]"}}, "step 0 (slice)", "tensor dim 0");
  wrong({8}, "P(sum)R", {{Op::all_reduce, {"a"}, "RR", ReduceOp::max}}, "step 0 (all_reduce)", "reduce op max where sum is asked for");
  wrong({8}, "P(sum)P(avg)", {{Op::all_reduce, {"a", "b"}, "RR", ReduceOp::sum, 8}}, "step 0", "scale 1/8 where the averages ask for 1/4");
  wrong({8}, "P(sum)P(sum)", {{Op::all_reduce, {"a"}, "RP(sum)", ReduceOp::sum}, {Op::reduce_scatter, {"a"}, "S(0)R", ReduceOp::sum}},
        "step 1", "mesh dim");
  wrong({8}, "RS(0)", {{Op::to_partial, {"b"}, "RP(max)"}}, "step 0", "to_partial cannot take mesh dim b from S(0) to P(max)");
  wrong({8, 8}, "S(0)P(sum)", {{Op::exchange, {}, "S(1)R"}}, "step 0", "exchange cannot take mesh dim b from P(sum) to R");
  wrong({8, 8}, "S(0)R", {{Op::exchange, {}, "S(0)R"}}, "step 0", "it changes nothing");
}

TEST_CASE("what the plan says about itself must agree with its steps") {
  const MeshTable table = table_of({{"a", 2}, {"b", 4}}, {{"a", "b"}});
  const Plan plan =
      hand_plan(table, {8, 8}, "P(sum)S(0)", {{Op::reduce_scatter, {"a"}, "S(1)S(0)", ReduceOp::sum}, {Op::all_gather, {"a", "b"}, "RR"}});
  REQUIRE(verdict(plan) == "right");
  auto broken = [&](auto change, const std::string& what) {
    Plan copy = plan;
    change(copy, copy.redistributions[0]);
    const std::string said = verdict(copy);
    CHECK_MESSAGE(contains(said, what), said);
  };
  using R = PlannedRedistribution;
  broken([](Plan&, R& r) { r.steps[0].state.partial = {{{0, 1, 2}, ReduceOp::sum}, {{1, 1, 4}, ReduceOp::max}}; }, "may not mix");
  broken([](Plan&, R& r) { r.trace += " "; }, "its trace");
  broken([](Plan&, R& r) { r.unmerged_trace = "RR->" + r.unmerged_trace; },
         "its unmerged trace is 'RR->P(sum)S(0)->S(1)S(0)-->RR', which differs");
  broken([](Plan&, R& r) { r.reductions.clear(); }, "its reductions count 0 collectives, its steps have 1");
  broken([](Plan&, R& r) { r.reductions[0].dims = {"z"}; }, "its reduction is noted over 'z', its steps reduce over 'a'");
  broken([](Plan&, R& r) { r.reductions[0].dims.clear(); }, "its reduction is noted over '', its steps reduce over 'a'");
  broken([](Plan&, R& r) { r.reductions[0].nesting = "b, then a"; },
         "its reduction is noted to nest as 'b, then a', its steps reduce over 'a'");
  broken([](Plan&, R& r) { r.reductions.push_back({{"a"}, 0, "a"}); }, "it notes 2 reductions, its steps have 1");
  broken(
      [](Plan&, R& r) {
        r.warnings.push_back({WarningKind::missing_flatten, {"b", "a"}, Op::all_gather, 2, 0, 0, "b_a", "mesh", ""});
      },
      "its warning missing_flatten names 'a'");
  broken(
      [](Plan&, R& r) {
        r.warnings.push_back({WarningKind::missing_flatten, {"a", "b"}, Op::all_gather, 2, 0, 0, "b_a", "mesh", ""});
      },
      "its warning missing_flatten over a, b has the fix 'b_a', which is not named after them");
  broken(
      [](Plan&, R& r) {
        r.warnings.push_back({WarningKind::missing_flatten, {"a", "b"}, Op::all_gather, 2, 0, 0, "", "mesh", ""});
      },
      "its warning missing_flatten over a, b has the fix ''");
  broken(
      [](Plan&, R& r) {
        r.warnings.push_back({WarningKind::uneven_shape, {"a", "b"}, Op::all_gather, 2, 0, 0, "a_b", "mesh", ""});
      },
      "its warning uneven_shape has the fix 'a_b', and no flatten helps here");
  broken([](Plan&, R& r) { r.totals.collectives = 3; }, "its total of collectives is 3, its steps have 2");
  broken([](Plan& p, R&) { p.totals.collectives = 3; }, "the file's total of collectives is 3");
  broken([](Plan&, R& r) { r.steps[1].group = "a"; }, "step 1 (all_gather): group 'a' has layout 2:4");
  broken([](Plan&, R& r) { r.steps[1].group = "none"; }, "group 'none' is not in the plan's groups");
  broken([](Plan& p, R&) { p.groups[0].size = 3; }, "group 'a' claims 4 communicators of 3 ranks");
  broken([](Plan& p, R&) { p.groups[0].used_by = 2; }, "group 'a' claims 2 uses where 1 steps name it");
  broken([](Plan& p, R&) { p.groups[0].declared = false; }, "group 'a' is marked as not declared");
  broken([](Plan& p, R&) { p.groups[0].layout.modes[0].stride = 1; }, "group 'a' has layout 2:1 where the ranks of mesh_dims have 2:4");
  broken([](Plan& p, R&) { std::swap(p.groups[0], p.groups[1]); }, "out of order");
  broken([](Plan& p, R&) { p.meshes.meshes[0].dims[0].layout.modes[0].stride = 2; }, "does not tile its world");
  broken([](Plan&, R& r) { r.steps[0].dst = shard(0); }, "step 0 (reduce_scatter): tensor_dim");
  broken([](Plan&, R& r) { r.steps[0].src = partial(ReduceOp::max); }, "it says that mesh dim 0 goes from P(max)");
  broken([](Plan&, R& r) { r.steps[1].moves.pop_back(); }, "its moves leave out mesh dim 1");
  broken([](Plan&, R& r) { std::swap(r.steps[1].mesh_dims[0], r.steps[1].mesh_dims[1]); }, "not in mesh order");
  broken([](Plan&, R& r) { r.steps[0].phases = 2; }, "reduce_scatter with 2 phases");
  broken([](Plan&, R& r) { r.steps[0].whole_pieces = true; }, "whole_pieces");
  broken([](Plan&, R& r) { r.steps[0].laps = 2; }, "reduce_scatter with 2 laps: 1, or 2 in two phases");
  broken([](Plan&, R& r) { r.steps[0].fetched_by_all = true; }, "reduce_scatter with fetched_by_all: only two phases fetch for others");
  broken([](Plan&, R& r) { r.steps[0].at_once = 1; }, "reduce_scatter with at_once 1: 1 to 8 of chunks, or none");
  broken([](Plan&, R& r) { r.steps[0].far_64ths = 1; }, "reduce_scatter with far_64ths: only an exchange asks far holders");
  broken([](Plan&, R& r) { r.steps[0].merged = 2; }, "its merged is 2, the steps that it replaces are 1");
  broken([](Plan&, R& r) { r.steps[0].logical_shape = {8, 8}; }, "logical shape [8, 8] where the rank at coordinate 0 sees [2, 8]");
  broken([](Plan&, R& r) { r.steps[0].mesh = "mesh2"; }, "its state is on mesh 'mesh2'");
  broken([](Plan&, R& r) { r.request.dst.shards[0].push_back({0, 1, 2}); }, "dst is not the target that the request asks for");
  broken([](Plan&, R& r) { r.request.src.shards[1].push_back({1, 1, 4}); }, "source: mesh dim 1 part (1)4 is used twice");
  broken(
      [](Plan&, R& r) {
        r.steps.pop_back();
        r.totals.collectives = 1;
      },
      "step 0 (reduce_scatter): it ends at S(1)S(0), but the target is RR");
}

TEST_CASE("one_reduction allows one collective that reduces") {
  const MeshTable table = table_of({{"a", 2}, {"b", 4}});
  Plan plan = hand_plan(table, {8}, "P(sum)P(sum)",
                        {{Op::all_reduce, {"a"}, "RP(sum)", ReduceOp::sum}, {Op::all_reduce, {"b"}, "RR", ReduceOp::sum}});
  CHECK(verdict(plan) == "right");
  plan.options.one_reduction = true;
  CHECK(contains(verdict(plan), "it reduces in 2 collectives"));
}

TEST_CASE("an exchange in two phases needs two levels") {
  const MeshTable table = table_of({{"a", 2}, {"b", 4}});
  Plan plan = hand_plan(table, {8, 8}, "S(0)R", {{Op::exchange, {}, "S(1)R"}});
  plan.redistributions[0].steps[0].phases = 2;
  plan.redistributions[0].totals.collectives = plan.totals.collectives = 2;
  CHECK(contains(verdict(plan), "two phases on a topology of one level"));
  plan.topology.levels = {{"inside", 4}, {"across", 8}};
  test::price(plan);
  CHECK(verdict(plan) == "right");
}

TEST_CASE("across meshes an exchange carries everything over") {
  MeshTable table = table_of({{"a", 2}, {"b", 4}});
  REQUIRE(add_slice(table, "inner", "mesh", {"b"}).ok());
  REQUIRE(add_transpose(table, "turned", "mesh", {"b", "a"}).ok());
  Plan plan = hand_plan(table, {8, 8}, "S(0)R", {{Op::exchange, {}, "S(1)R"}});
  PlannedRedistribution& r = plan.redistributions[0];
  auto cross = [&](size_t dst_mesh, const std::string& src, const std::string& dst) {
    r.request.dst_mesh = dst_mesh;
    const std::vector<int64_t> to = mesh_shape(table.meshes[dst_mesh]);
    r.request.src = *parse_state(src, std::vector<int64_t>{2, 4}, 2);
    r.request.dst = r.dst = *parse_state(dst, to, 2);
    r.steps.own().resize(1);
    Step& step = r.steps[0];
    step.state = r.dst;
    step.mesh = table.meshes[dst_mesh].name;
    step.mesh_dims.clear();
    for (size_t m = 0; m < to.size(); ++m) step.mesh_dims.push_back({static_cast<int32_t>(m), 1, to[m]});
    r.trace = r.unmerged_trace = trace_of(r.request.src, r.steps, table.meshes[0], table.meshes[dst_mesh]);
    step.src.reset();
    step.dst.reset();
    step.moves.clear();
    test::price(plan);
  };
  cross(1, "S(0)R", "S(1)");
  CHECK(verdict(plan) == "right");
  cross(2, "S(0)S(1)", "S(1)[0]S(1)[1]");
  CHECK(verdict(plan) == "right");
  r.steps[0].logical_shape = {4, 8};
  CHECK(contains(verdict(plan), "step 0 (exchange): its logical shape is not that of the tensor"));
  r.steps[0].logical_shape = {8, 8};
  r.steps[0].mesh = "mesh";
  CHECK(contains(verdict(plan), "step 0"));
  cross(1, "P(sum)R", "S(1)");
  CHECK(contains(verdict(plan), "it reduces without a reduce op"));
  r.steps[0].reduce_op = ReduceOp::sum;
  r.reductions = {{{"a"}, 1, "a"}};
  CHECK(verdict(plan) == "right");
  r.steps[0].reduce_op.reset();
  r.reductions.clear();
  cross(1, "RR", "P(sum)");
  CHECK(contains(verdict(plan), "nothing pending can cross"));
  // No step at all: right where every rank of the target holds its box already.
  auto nothing = [&](size_t dst_mesh, const std::string& src, const std::string& dst) {
    cross(dst_mesh, src, dst);
    r.steps.clear();
    r.totals = plan.totals = {};
    r.trace = r.unmerged_trace = to_text(r.request.src, std::vector<int64_t>{2, 4});
    plan.groups.clear();
    return verdict(plan);
  };
  CHECK(nothing(1, "RR", "S(1)") == "right");
  CHECK(nothing(2, "S(0)S(1)", "S(1)S(0)") == "right");
  CHECK(contains(nothing(2, "S(0)S(1)", "S(0)S(1)"), "no step takes the data from mesh 'mesh' to mesh 'turned'"));
}

TEST_CASE("a far share is one of an even cut that reduces nothing") {
  MeshTable table = table_of({{"a", 2}, {"b", 4}});
  REQUIRE(add_slice(table, "inner", "mesh", {"b"}).ok());
  Plan plan = hand_plan(table, {64, 8}, "RS(0)", {{Op::exchange, {}, "RS(1)"}});
  plan.topology.levels = {{"inside", 4, 370'000, 10'000, 500, 100}, {"across", 8, 45'000, 25'000, 500, 100}};
  PlannedRedistribution& r = plan.redistributions[0];
  Step& step = r.steps.own()[0];
  step.far_64ths = 16;
  test::price(plan);
  CHECK(verdict(plan) == "right");
  cross_to_inner(r, step, "S(1)");
  r.trace = r.unmerged_trace = trace_of(r.request.src, r.steps, table.meshes[0], table.meshes[1]);
  test::price(plan);
  CHECK(verdict(plan) == "right");
  const auto refused = [&](const std::function<void(Step&)>& change, const std::string& why) {
    const Step right = step;
    change(step);
    CHECK_MESSAGE(contains(verdict(plan), why), verdict(plan));
    step = right;
  };
  refused([](Step& s) { s.far_64ths = 0; }, "peak_bytes is 1696, counted from the states it is 1792");
  refused([](Step& s) { s.far_64ths = 40; }, "peak_bytes is 1696, counted from the states it is 1648");
  refused([](Step& s) { s.far_64ths = 64; }, "step 0 (exchange): an exchange with far_64ths 64: expected 1 to 63");
  refused([](Step& s) { s.far_64ths = -1; }, "an exchange with far_64ths -1: expected 1 to 63");
  refused([](Step& s) { s.phases = 2; }, "exchange with far_64ths: its two phases ask the nearest holders alone");
  refused([](Step& s) { s.whole_pieces = true; }, "exchange with far_64ths: it cuts its pieces, yet it has whole_pieces");
  refused([](Step& s) { s.reduce_op = ReduceOp::sum; }, "exchange with far_64ths: it reduces nothing, yet it has a reduce op");
  plan.topology.levels.pop_back();
  CHECK(contains(verdict(plan), "a far share on a topology of one level, which has no far holders"));
}

TEST_CASE("figures that the states do not give are refused with both numbers") {
  const MeshTable table = table_of({{"a", 2}, {"b", 4}});
  const Plan right = hand_plan(table, {8, 8}, "S(0)S(1)", {{Op::all_gather, {"b"}, "S(0)R"}, {Op::exchange, {}, "S(1)R"}});
  REQUIRE(verdict(right) == "right");
  const auto broken = [&](const std::function<void(Plan&, PlannedRedistribution&)>& change) {
    Plan plan = right;
    change(plan, plan.redistributions[0]);
    return verdict(plan);
  };
  using R = PlannedRedistribution;
  // b gathers [4, 2] of float32 from 3 others.
  CHECK(broken([](Plan&, R& r) { r.steps[0].wire_bytes = 1, r.totals.wire_bytes -= 95; }) ==
        "redistribution 'x', step 0 (all_gather): wire_bytes is 1, counted from the states it is 96");
  CHECK(contains(broken([](Plan&, R& r) { r.steps[0].peak_bytes = 1; }),
                 "redistribution 'x', step 0 (all_gather): peak_bytes is 1, counted from the states it is "));
  CHECK(contains(broken([](Plan&, R& r) { r.steps[1].predicted_ps += 1000, r.totals.predicted_ps += 1000; }),
                 "redistribution 'x', step 1 (exchange): predicted_ns is "));
  CHECK(contains(broken([](Plan&, R& r) { r.totals.predicted_ps -= 1000; }), "its total of predicted_ns"));
  CHECK(contains(broken([](Plan& p, R&) { p.totals.predicted_ps += 1000; }), "the file's total of predicted_ns"));
  CHECK(contains(broken([](Plan& p, R&) { p.totals.lower_bound_bytes = 1; }), "the file's total of lower_bound_bytes is 1"));
  CHECK(contains(broken([](Plan& p, R&) { p.options.max_memory_bytes = 100; }), "max_memory_bytes allows 100"));
}

TEST_CASE("an exchange in two phases is counted phase by phase") {
  // 2 hosts of 2 ranks, [8] float32: host 0 lacks [4:8), of which each member fetches half and
  // passes it on.
  const MeshTable table = table_of({{"host", 2}, {"gpu", 2}});
  Plan plan = hand_plan(table, {8}, "S(0)R", {{Op::exchange, {}, "RR"}});
  plan.topology.levels = {{"inside", 2, 1'000, 10'000, 500, 100}, {"across", 1'048'576, 1'000, 25'000, 500, 100}};
  Step& step = plan.redistributions[0].steps[0];
  step.phases = 2;
  test::price(plan);
  step.wire_bytes = 16;
  step.peak_bytes = 16 + 32 + 16 + 16;
  step.predicted_ps = (25'000'000 + 500'000 + 8'000) + (10'000'000 + 500'000 + 8'000);
  Totals& totals = plan.redistributions[0].totals;
  totals.wire_bytes = step.wire_bytes;
  totals.peak_bytes = step.peak_bytes;
  totals.predicted_ps = step.predicted_ps;
  plan.totals = totals;
  CHECK(verdict(plan) == "right");
  step.wire_bytes = totals.wire_bytes = plan.totals.wire_bytes = 8;
  CHECK(contains(verdict(plan), "wire_bytes is 8, counted from the states it is 16"));
  // In two chunks: rounds of 25.504 us, of the longer of that and 10.504 us, and of 10.504 us.
  step.wire_bytes = totals.wire_bytes = plan.totals.wire_bytes = 16;
  step.chunks = 2;
  CHECK(contains(verdict(plan), "predicted_ns is 36016"));
  step.predicted_ps = totals.predicted_ps = plan.totals.predicted_ps = 2 * 25'504'000 + 10'504'000;
  CHECK(verdict(plan) == "right");
  step.at_once = 1;
  CHECK(contains(verdict(plan),
                 "step 0 (exchange): exchange with at_once 1 on one mesh: expected none, only an exchange from one mesh to "
                 "another has shifts"));
  step.at_once = 9;
  CHECK(contains(verdict(plan), "exchange with at_once 9: 1 to 8 of chunks, or none"));
  step.at_once = -1;
  CHECK(contains(verdict(plan), "exchange with at_once -1: 1 to 8 of chunks, or none"));
  step.at_once = 0;
  step.chunks = 1025;
  CHECK(contains(verdict(plan), "in 1025 chunks: they are 1 to 1024"));
  step.phases = 1;
  CHECK(contains(verdict(plan), "only two phases are pipelined"));
}

TEST_CASE("across meshes an exchange goes in shifts, in chunks that are a multiple of its stages") {
  MeshTable table = table_of({{"a", 2}, {"b", 4}});
  REQUIRE(add_slice(table, "inner", "mesh", {"b"}).ok());
  Plan plan = hand_plan(table, {64, 8}, "RS(0)", {{Op::exchange, {}, "RS(1)"}});
  plan.topology.levels = {{"inside", 2, 370'000, 10'000, 500, 100}, {"across", 1'048'576, 45'000, 25'000, 500, 100}};
  PlannedRedistribution& r = plan.redistributions[0];
  Step& step = r.steps.own()[0];
  cross_to_inner(r, step, "R");
  step.phases = 2;
  step.laps = 2;
  step.chunks = 3;
  r.trace = r.unmerged_trace = trace_of(r.request.src, r.steps, table.meshes[0], table.meshes[1]);
  test::price(plan);
  CHECK(verdict(plan) == "right");
  // In two laps each member of a host fetches two parts.
  step.at_once = 1;
  CHECK(contains(verdict(plan), "step 0 (exchange): an exchange in 3 chunks, 1 at once, in 2 stages: chunks are a multiple of the stages"));
  step.chunks = 1;
  CHECK(contains(verdict(plan), "exchange with at_once 1: 1 to 8 of chunks, or none"));
}

TEST_CASE("what a plan was planned under, and what it says beside its steps, is held against them") {
  const MeshTable table = table_of({{"a", 2}, {"b", 4}});
  const Plan right = hand_plan(table, {64, 64}, "S(0)S(1)", {{Op::all_gather, {"a", "b"}, "RR"}});
  REQUIRE(verdict(right) == "right");
  const auto broken = [&](const std::function<void(Plan&, PlannedRedistribution&)>& change) {
    Plan plan = right;
    change(plan, plan.redistributions[0]);
    return verdict(plan);
  };
  using R = PlannedRedistribution;
  CHECK(contains(broken([](Plan& p, R&) { p.options.groups = GroupPolicy::declared; }), "group 'a_b', which no mesh declares"));
  // Not even under the name of the mesh.
  CHECK(contains(broken([](Plan& p, R& r) {
                   p.options.groups = GroupPolicy::declared;
                   p.groups[0].id = r.steps[0].group = "mesh";
                   p.groups[0].declared = true;
                 }),
                 "group 'mesh', which no mesh declares"));
  CHECK(contains(broken([](Plan& p, R&) { p.redistributions.push_back(p.redistributions[0]); }), "two redistributions are called 'x'"));
  CHECK(contains(broken([](Plan& p, R&) {
                   p.meshes.flattens.push_back({"ab", {"a", "b"}, "nowhere", {}, {}});
                 }),
                 "flattened 'ab' is of mesh 'nowhere', which the plan lacks"));
  CHECK(contains(broken([](Plan& p, R&) {
                   p.meshes.flattens.push_back({"ac", {"a", "c"}, "mesh", {}, {}});
                 }),
                 "flattened 'ac' is over 'c', which mesh 'mesh' lacks"));
  CHECK(contains(broken([](Plan& p, R&) {
                   p.meshes.flattens.push_back({"ab", {"a", "b"}, "mesh", Layout{{{4, 1}}}, {}});
                 }),
                 "flattened 'ab' has layout 4:1 where its dims have 8:1"));
  CHECK(contains(broken([](Plan& p, R&) { p.topology.levels[0].mb_per_s = 0; }), "topology, level 0: mb_per_s is 0, expected at least 1"));
  CHECK(contains(broken([](Plan& p, R&) { p.topology.copy_mb_per_s = -1; }), "copy_mb_per_s is -1, expected at least 0"));
  CHECK(contains(broken([](Plan& p, R&) { p.topology.levels.clear(); }), "topology: 0 levels, expected 1 to 8"));
  CHECK(contains(broken([](Plan& p, R&) { p.topology.protocols = nccl_protocols(9); }), "topology, protocol 'LL': levels is 9"));
  CHECK(contains(broken([](Plan& p, R& r) { r.totals.lower_bound_bytes = p.totals.lower_bound_bytes = 1'000'000; }),
                 "its lower_bound_bytes is 1000000, above its own total of wire_bytes"));
  CHECK(contains(broken([](Plan& p, R& r) { r.totals.lower_bound_ps = p.totals.lower_bound_ps = 2 * r.totals.predicted_ps; }),
                 "above its own total of predicted_ns"));
  CHECK(contains(broken([](Plan&, R& r) { r.proven_gap_ps = r.totals.predicted_ps + 5'000; }), "its proven_gap_ns is "));
  CHECK(contains(broken([](Plan&, R& r) { r.proven_gap_ps = -5'000; }), "its proven_gap_ns is -5"));
  CHECK(contains(broken([](Plan&, R& r) {
                   r.alternatives.push_back({"S(0)S(1)->RR", r.totals});
                   r.alternatives[0].totals.predicted_ps -= 1000;
                 }),
                 "its alternative 'S(0)S(1)->RR': predicted_ns is "));
  const auto warned = [&](const std::function<void(Warning&)>& change) {
    return broken([&](Plan&, R& r) {
      Warning& warning = r.warnings.own().emplace_back();
      warning.dims = {"a", "b"};
      warning.mesh = "mesh";
      warning.operations = 1;
      warning.saves_ns = 5;
      warning.fix_name = "a_b";
      warning.message = "one all_reduce over a, b: declare a_b; saves 5 ns";
      change(warning);
    });
  };
  CHECK(warned([](Warning&) {}) == "right");
  CHECK(contains(warned([](Warning& w) { w.operations = 2; }), "operations is 2, the plan has 1"));
  CHECK(contains(warned([](Warning& w) { w.saves_ns = 1'000'000'000; }), "saves_ns is 1000000000, above its bound the plan takes"));
  CHECK(contains(warned([](Warning& w) { w.saves_collectives = 1; }), "saves_collectives is 1, the plan has 1"));
  CHECK(contains(warned([](Warning& w) { w.saves_ns = 7; }), "its message does not say that it saves 7 ns"));
  // One that moves nothing takes no time: there may be more of them where a flatten is declared.
  CHECK(warned([](Warning& w) { w.saves_collectives = -1; }) == "right");
  CHECK(contains(warned([](Warning& w) { w.saves_collectives = -4096; }), "saves_collectives is -4096, it should be at least -4095"));
  CHECK(contains(warned([](Warning& w) { w.message = "all_reduce over a: declare a_b; saves 5 ns"; }),
                 "its message does not say that it is about all_reduce over them"));
  CHECK(contains(warned([](Warning& w) { w.message = "all_reduce over a, b; saves 5 ns"; }), "its message does not name the fix a_b"));
}

TEST_CASE("exchanges say what they do, and no more") {
  const MeshTable table = table_of({{"a", 2}, {"b", 4}});
  Plan plan = hand_plan(table, {8, 8}, "S(0)R", {{Op::exchange, {}, "S(1)R"}});
  REQUIRE(verdict(plan) == "right");
  plan.redistributions[0].rules = Rules::dtensor;
  CHECK(contains(verdict(plan), "step 0 (exchange): the dtensor rules have no exchange"));
  plan.redistributions[0].rules = Rules::native;
  Step& step = plan.redistributions[0].steps[0];
  const Step told = step;
  step.src.reset();
  step.dst.reset();
  step.tensor_dim.reset();
  step.moves.clear();
  CHECK(contains(verdict(plan), "mesh dim 0 goes from S(0) to S(1), but it has neither src and dst nor moves"));
  step = told;
  CHECK(verdict(plan) == "right");
  Plan reducing = hand_plan(table, {8, 8}, "S(0)P(max)", {{Op::exchange, {}, "RS(1)", ReduceOp::max}});
  reducing.redistributions[0].steps[0].phases = 2;
  CHECK(contains(verdict(reducing), "an exchange of two phases reduces nothing, yet it has a reduce op"));
}

TEST_CASE("across more ranks than are compared one by one nothing is said without a step, at once") {
  MeshTable table = table_of({{"a", 1 << 10}, {"b", 1 << 16}});
  REQUIRE(add_transpose(table, "turned", "mesh", {"b", "a"}).ok());
  Plan plan = hand_plan(table, {8, 8}, "RR", {});
  PlannedRedistribution& r = plan.redistributions[0];
  r.request.dst_mesh = 1;
  const auto start = std::chrono::steady_clock::now();
  const Status status = verify_plan(plan);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(1));
  REQUIRE(!status.ok());
  CHECK(status.error().fault == Fault::environment);
  CHECK(contains(status.error().message, "for at most 1048576 ranks; these are 67108864: plan it again"));
}

TEST_CASE("the cost does not grow with the number of ranks") {
  // 2^20 ranks, even and uneven: the uneven chunks are compared below the common head only.
  const MeshTable table = table_of({{"a", 1024}, {"b", 64}, {"c", 16}});
  const auto start = std::chrono::steady_clock::now();
  for (int64_t n : {int64_t{1} << 30, (int64_t{1} << 30) + 7, int64_t{1000003}, int64_t{1023}}) {
    CHECK(verdict(hand_plan(table, {n, 4096}, "S(0)[0]S(0)[1]S(0)[2]", {{Op::all_gather, {"c"}, "S(0)[0]S(0)[1]R"}})) == "right");
    CHECK(verdict(hand_plan(table, {n, 4096}, "S(0)[0]S(0)[1]S(0)[2]", {{Op::all_to_all, {"c"}, "S(0)[0]S(0)[1]S(1)"}})) == "right");
    CHECK(verdict(hand_plan(table, {n, 4096}, "P(sum)S(0)R", {{Op::reduce_scatter, {"a"}, "S(0)[1]S(0)[0]R", ReduceOp::sum}})) == "right");
    CHECK(verdict(hand_plan(table, {n, 4096}, "S(0)[0]S(0)[1]R", {{Op::all_gather, {"a"}, "RS(0)R"}})) != "right");
  }
  const auto spent = std::chrono::steady_clock::now() - start;
  CHECK(spent < std::chrono::seconds(5));
}

}  // namespace
}  // namespace meshplan
