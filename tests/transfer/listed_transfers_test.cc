#include "transfer/listed_transfers.h"

#include <doctest/doctest.h>

#include "cost/topology.h"

using namespace meshplan;

TEST_CASE("the example of the header: what rank 0 of a gather keeps and receives, and where it lies") {
  const auto mesh = make_mesh("mesh", {{"a", 2}, {"b", 2}});
  REQUIRE(mesh.ok());
  const RankTable ranks = make_rank_table({{*mesh}, {}});
  const Topology topology = uniform_topology();
  const auto state = [&](std::string_view text) {
    const auto parsed = parse_state(text, mesh_shape(*mesh), 1);
    REQUIRE(parsed.ok());
    return *parsed;
  };
  Step step;
  step.op = Op::all_gather;
  step.mesh_dims = {{1, 1, 2}};
  step.state = state("RR");
  const HeldBoxes before = make_held_boxes(*mesh, state("RS(0)"), {8}, 1, ranks);
  const HeldBoxes after = make_held_boxes(*mesh, step.state, {8}, 1, ranks);
  const auto transfers = make_transfers({&before, &after, &step, &ranks, &topology, "x"});
  REQUIRE(transfers.ok());
  std::vector<std::string> rows;
  const auto end_text = [](const TransferEnd& end) {
    return std::to_string(end.rank) + to_text(end.whole) + "+" + std::to_string(end.offset);
  };
  const auto visit = [&](const ListedTransfer& row) -> Status {
    rows.push_back(std::string(to_text(row.action)) + " " + end_text(row.from) + " -> " + end_text(row.to) + " " + to_text(row.box));
    return Done{};
  };
  REQUIRE(list_transfers(*transfers, before, after, ranks, visit).ok());
  REQUIRE(rows.size() == 8);
  CHECK(rows[0] == "copy 0[0:4]+0 -> 0[0:8]+0 [0:4]");
  CHECK(rows[1] == "send 1[4:8]+0 -> 0[0:8]+4 [4:8]");
  CHECK(rows[7] == "copy 3[4:8]+0 -> 3[0:8]+4 [4:8]");
}

TEST_CASE("an error of the visitor ends the listing") {
  const auto mesh = make_mesh("mesh", {{"a", 4}});
  REQUIRE(mesh.ok());
  const RankTable ranks = make_rank_table({{*mesh}, {}});
  const Topology topology = uniform_topology();
  Step step;
  step.op = Op::all_gather;
  step.mesh_dims = {{0, 1, 4}};
  const auto sharded = parse_state("S(0)", mesh_shape(*mesh), 1);
  const auto whole = parse_state("R", mesh_shape(*mesh), 1);
  REQUIRE(sharded.ok());
  REQUIRE(whole.ok());
  step.state = *whole;
  const HeldBoxes before = make_held_boxes(*mesh, *sharded, {8}, 1, ranks);
  const HeldBoxes after = make_held_boxes(*mesh, *whole, {8}, 1, ranks);
  const auto transfers = make_transfers({&before, &after, &step, &ranks, &topology, "x"});
  REQUIRE(transfers.ok());
  int rows = 0;
  const auto stop = [&](const ListedTransfer&) -> Status {
    if (++rows == 3) return bad_input("enough");
    return Done{};
  };
  const auto listed = list_transfers(*transfers, before, after, ranks, stop);
  REQUIRE_FALSE(listed.ok());
  CHECK(listed.error().message == "enough");
  CHECK(rows == 3);
}
