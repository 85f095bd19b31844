// A plan that uses every field of the document, for tests of its reading and writing. Its figures need not be right.
#pragma once

#include "plan/plan.h"

namespace meshplan {

inline Plan sample_plan() {
  Plan plan;
  plan.spec_digest = "sha256:" + std::string(64, '5');
  MESHPLAN_CHECK(add_root(plan.meshes, "root", 8, {7, 6, 5, 4, 3, 2, 1, 0}, {{"dp", 2}, {"tp", 4}}).ok(), "the sample's root is valid");
  MESHPLAN_CHECK(add_slice(plan.meshes, "inner", "root", {"tp"}, R"({"nccl":{"max_ctas":4}})").ok(), "the sample's slice is valid");
  MESHPLAN_CHECK(declare_flatten(plan.meshes, "root", {"dp", "tp"}, "dp_tp").ok(), "the sample's flatten is valid");
  plan.topology = {"",      "measured \"here\"", {{"nvlink", 4, 370'000, 10'000, 0, 100}, {"ib", 1'048'576, 45'000, 25'000, 500, 80}},
                   900'000, nccl_protocols(2),   {{Op::all_reduce, 1, 8, {{1024, 5}, {4096, 7}}}}};
  plan.options.planner = PlannerKind::graph;
  plan.options.rules = Rules::dtensor;
  plan.options.max_groups = 3;
  plan.options.ranks_per_host = 4;
  plan.options.merge = false;
  plan.groups = {{"dp_tp", "root", {"dp", "tp"}, Layout{{{8, 1}}}, 8, 1, true, 1},
                 {"tp", "root", {"tp"}, Layout{{{4, 1}}}, 4, 2, false, 0}};

  PlannedRedistribution r;
  r.request.id = "layers.0/\"wq\"\n\x01 \xc3\xa9";
  r.request.tensor = {{16, 3}, DType::bfloat16};
  r.request.src = {{{{1, 1, 4}, {0, 1, 2}}, {}}, {}};
  r.request.dst = {{{}, {}}, {{{0, 1, 2}, ReduceOp::avg}, {{1, 1, 4}, ReduceOp::sum}}};
  r.request.any_dst_order = true;
  r.request.direction = Direction::backward;
  r.request.reduce_dtype = DType::float32;
  r.request.count = 32;
  r.planner = PlannerKind::graph;
  r.rules = Rules::dtensor;
  r.dst = {{{}, {}}, {}};
  Step part;
  part.op = Op::exchange;
  part.mesh_dims = {{0, 1, 2}, {1, 1, 4}};
  part.group = "root";
  part.moves = {{{0, 1, 2}, shard(0), partial(ReduceOp::avg)}, {{1, 2, 2}, shard(0), replicate()}};
  part.reduce_op = ReduceOp::sum;
  part.scale_divisor = 8;
  part.state = {{{{1, 2, 2}}, {}}, {}};
  part.logical_shape = {16, 3};
  part.wire_bytes = 96;
  part.peak_bytes = 192;
  part.predicted_ps = 10'000'001;
  part.phases = 2;
  part.whole_pieces = true;
  part.fetched_by_all = true;
  part.laps = 2;
  part.far_64ths = 29;
  part.why = "it is the cheapest";
  Step gather;
  gather.op = Op::all_gather;
  gather.mesh_dims = {{1, 2, 2}};
  gather.group = "tp";
  gather.src = shard(0);
  gather.dst = replicate();
  gather.tensor_dim = 0;
  gather.state = r.dst;
  gather.logical_shape = {16, 3};
  gather.merged = 2;
  gather.predicted_ps = INT64_MAX;
  r.steps = {part, gather};
  r.trace = "S(0)[1]S(0)[0]->RR";
  r.unmerged_trace = r.trace;
  r.totals = {3, 96, 192, INT64_MAX, 48, 5'000'000};
  r.reductions = {{{"dp", "tp"}, 2, "tp, then dp"}};
  r.warnings = {{WarningKind::missing_flatten, {"dp", "tp"}, Op::all_reduce, 2, -1'001, -1, "dp_tp", "root", "declare dp_tp"},
                {WarningKind::uneven_shape, {"dp", "tp"}, Op::reduce_scatter, 2, 0, 1, "", "root", "it is uneven"}};
  r.audit = {{"A0401", "merged_uneven_gather", 1, "it is wrong", 96, 48, 20000, 10000, "S(0)R->RR"}};
  r.alternatives = {{"S(0)R->RR", {1, 2, 3, 4'000, 5, 6'000}}};
  r.proven_gap_ps = 77'000;
  r.shortcuts.add(Shortcut::work_budget);
  r.shortcuts.add(Shortcut::few_aims);

  PlannedRedistribution across;
  across.request.id = "weights";
  across.request.dst_mesh = 1;
  across.request.tensor = {{}, DType::boolean};
  across.dst = across.request.dst = State{};
  Step cross;
  cross.op = Op::exchange;
  cross.mesh = "inner";
  cross.mesh_dims = {{0, 1, 4}};
  cross.group = "inner";
  cross.why = "it crosses";
  across.steps = {cross};
  across.trace = across.unmerged_trace = "RR->R";
  PlannedRedistribution repeat = r;
  repeat.request.id = "layers.1/wq";
  repeat.request.count = 5;
  plan.redistributions = {r, across, repeat};
  plan.totals = {97, 3072, 192, INT64_MAX, 1, 2'000};
  return plan;
}

}  // namespace meshplan
