#include "transfer/step_transfers.h"

#include <doctest/doctest.h>

#include "cost/topology.h"

using namespace meshplan;

namespace {

struct TwoMeshes {
  Mesh mesh;
  RankTable ranks;
  Topology topology;
  TwoMeshes() {
    auto made = make_mesh("mesh", {{"a", 2}, {"b", 2}});
    REQUIRE(made.ok());
    mesh = *made;
    ranks = make_rank_table({{mesh}, {}});
    topology.levels = {{"all", 1 << 20, 100000, 10000, 500, 100}};
  }
  [[nodiscard]] State state(std::string_view text) const {
    auto s = parse_state(text, mesh_shape(mesh), 1);
    REQUIRE(s.ok());
    return *s;
  }
  [[nodiscard]] Result<StepTransfers> transfers(std::string_view before, std::string_view after, Op op, std::vector<SubAxis> dims,
                                                int64_t extent) const {
    Step step;
    step.op = op;
    step.mesh_dims = std::move(dims);
    step.state = state(after);
    const HeldBoxes from = make_held_boxes(mesh, state(before), {extent}, 1, ranks);
    const HeldBoxes to = make_held_boxes(mesh, step.state, {extent}, 1, ranks);
    return make_transfers({&from, &to, &step, &ranks, &topology, "redistribution 'x', step 0"});
  }
};

}  // namespace

TEST_CASE("an element that no rank of the group holds is named") {
  const TwoMeshes w;
  // Gathering over a alone cannot undo nested shards of a outside b.
  auto made = w.transfers("S(0)[0]S(0)[1]", "RS(0)", Op::all_gather, {{0, 1, 2}}, 8);
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().fault == Fault::wrong_data);
  CHECK(made.error().message == "redistribution 'x', step 0: rank 0 needs element [2] and no rank of its group of 2 holds it");
  // Over both it can.
  CHECK(w.transfers("S(0)[0]S(0)[1]", "RS(0)", Op::exchange, {{0, 1, 2}, {1, 1, 2}}, 8).ok());
}

TEST_CASE("steps that cannot be are refused with a reason") {
  const TwoMeshes w;
  const SubAxis a{0, 1, 2};
  const SubAxis b{1, 1, 2};
  auto message = [&](std::string_view before, std::string_view after, Op op, std::vector<SubAxis> dims) {
    auto made = w.transfers(before, after, op, std::move(dims), 8);
    REQUIRE_FALSE(made.ok());
    return made.error().message;
  };
  CHECK(message("RR", "RR", Op::all_reduce, {a}).find("no pending reduction to complete") != std::string::npos);
  CHECK(message("P(sum)R", "RR", Op::all_gather, {a}).find("loses a pending reduction") != std::string::npos);
  CHECK(message("RR", "P(sum)R", Op::all_gather, {a}).find("adds a pending reduction") != std::string::npos);
  CHECK(message("P(sum)R", "RR", Op::all_reduce, {b}).find("not among its mesh_dims") != std::string::npos);
  CHECK(message("P(sum)R", "S(0)R", Op::all_reduce, {a}).find("changes the box") != std::string::npos);
  CHECK(message("S(0)R", "RR", Op::slice, {}).find("the rank itself does not hold it") != std::string::npos);
  CHECK(message("S(0)R", "P(max)R", Op::to_partial, {a}).find("a shard cannot become P(max)") != std::string::npos);
  CHECK(message("RS(0)", "P(sum)R", Op::to_partial, {a}).find("moves elements") != std::string::npos);
  CHECK(message("P(sum)S(0)", "S(0)[0]S(0)[1]", Op::reduce_scatter, {a}).find("does not hold its contribution") != std::string::npos);
}

TEST_CASE("an exchange keeps contributions apart") {
  const TwoMeshes w;
  auto made = w.transfers("P(sum)S(0)", "P(sum)R", Op::exchange, {{0, 1, 2}, {1, 1, 2}}, 8);
  REQUIRE(made.ok());
  // Ranks 0 1 have the first contribution, 2 3 the second: nothing crosses.
  for (size_t s = 0; s < 4; ++s) {
    for (const Transfer& t : made->slots[s].transfers) CHECK(static_cast<size_t>(t.from) / 2 == s / 2);
  }
}

TEST_CASE("what is pending over one rank is whole, across meshes too") {
  MeshTable table;
  REQUIRE(add_root(table, "train", 2, {}, {{"a", 1}, {"b", 2}}).ok());
  REQUIRE(add_root(table, "serve", 2, {2, 3}, {{"x", 2}}).ok());
  const RankTable ranks = make_rank_table(table);
  const auto state = [](const Mesh& mesh, std::string_view text) {
    auto parsed = parse_state(text, mesh_shape(mesh), 1);
    REQUIRE(parsed.ok());
    return *parsed;
  };
  const Topology topology = uniform_topology();
  for (const bool over_one : {true, false}) {
    const State before = state(table.meshes[0], over_one ? "P(max)R" : "RP(max)");
    Step step;
    step.op = Op::exchange;
    step.mesh = "serve";
    step.mesh_dims = {{0, 1, 2}};
    step.state = state(table.meshes[1], "R");
    if (!over_one) step.reduce_op = ReduceOp::max;
    const HeldBoxes from = make_held_boxes(table.meshes[0], before, {6}, 1, ranks);
    const HeldBoxes to = make_held_boxes(table.meshes[1], step.state, {6}, 1, ranks);
    auto made = make_transfers({&from, &to, &step, &ranks, &topology, "redistribution 'x'"});
    REQUIRE(made.ok());
    CHECK(made->contributions == (over_one ? 1 : 2));
    CHECK(made->reduce_op.has_value() == !over_one);
  }
}
