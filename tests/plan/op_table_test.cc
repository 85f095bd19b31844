#include "plan/op_table.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace meshplan;

TEST_CASE("every op has a row of its own, whose name leads back to it") {
  std::set<std::string> names;
  for (size_t i = 0; i < op_table.size(); ++i) {
    const Op op = static_cast<Op>(i);
    CAPTURE(to_text(op));
    CHECK(parse_op(to_text(op)) == op);
    CHECK(names.insert(to_text(op)).second);
    const OpRow& row = row_of(op);
    CHECK(is_local(op) == (row.piece == OpPiece::none));
    CHECK(is_local(op) == (row.rounds == 0));
    CHECK(is_local(op) == (row.nccl_tests == nullptr));
    CHECK((row.scope == OpScope::mesh) == (row.piece == OpPiece::listed));
    CHECK(is_local(op) == (row.sends == CallChunks::none));
    CHECK(is_local(op) == (row.receives == CallChunks::none));
    CHECK((row.scope == OpScope::mesh) == (row.sends == CallChunks::any));
    CHECK((row.scope == OpScope::mesh) == (row.receives == CallChunks::any));
  }
  CHECK(names == std::set<std::string>{"slice", "all_gather", "reduce_scatter", "all_to_all", "all_reduce", "to_partial", "exchange"});
  CHECK(static_cast<size_t>(Op::exchange) + 1 == op_table.size());
  CHECK_FALSE(parse_op("broadcast"));
}

TEST_CASE("two placements of a mesh dim say which op is between them") {
  const Placement r = replicate();
  const Placement sum = partial(ReduceOp::sum);
  CHECK(op_between(r, shard(0)) == Op::slice);
  CHECK(op_between(r, sum) == Op::to_partial);
  CHECK(op_between(shard(0), r) == Op::all_gather);
  CHECK(op_between(shard(0), shard(1)) == Op::all_to_all);
  CHECK(op_between(shard(0), sum) == Op::to_partial);
  CHECK(op_between(sum, r) == Op::all_reduce);
  CHECK(op_between(sum, shard(1)) == Op::reduce_scatter);
}

TEST_CASE("what a rank of a collective moves, by hand") {
  const OpBytes gathered = bytes_of(Op::all_gather, 100, 4);
  CHECK(gathered.piece == 100);
  CHECK(gathered.whole == 400);
  CHECK(gathered.wire == 300);
  // 10 bytes over 4 ranks: shares of 3 (rounded up), 2 * 3/4 of 10 = 15 received
  const OpBytes reduced = bytes_of(Op::all_reduce, 10, 4);
  CHECK(reduced.piece == 3);
  CHECK(reduced.whole == 10);
  CHECK(reduced.wire == 15);
  CHECK(bytes_of(Op::all_reduce, 7, 3).wire == 10);  // 28/3 rounded up
  CHECK(bytes_of(Op::all_reduce, INT64_MAX, 2).wire == INT64_MAX);
  CHECK(bytes_of(Op::all_to_all, INT64_MAX, 3).wire == INT64_MAX);
  CHECK(bytes_of(Op::reduce_scatter, 5, 1).wire == 0);
  for (const Op op : {Op::slice, Op::to_partial, Op::exchange}) CHECK(bytes_of(op, 100, 4).wire == 0);
}

TEST_CASE("the bus factor is nccl-tests'") {
  CHECK(bus_bytes(Op::all_reduce, 80, 4) == 120);
  CHECK(bus_bytes(Op::all_gather, 80, 4) == 60);
  CHECK(bus_bytes(Op::reduce_scatter, 80, 4) == 60);
  CHECK(bus_bytes(Op::all_to_all, 80, 4) == 60);
  CHECK(bus_bytes(Op::exchange, 80, 4) == 80);
}

TEST_CASE("a row's sentence takes the words that it is given") {
  CHECK(filled("", {}).empty());
  CHECK(filled("no word", {{"dims", "tp"}}) == "no word");
  CHECK(filled("over {dims}, {ranks} of {dims}", {{"dims", "tp"}, {"ranks", "8"}}) == "over tp, 8 of tp");
  for (const OpRow& row : op_table) {
    CAPTURE(row.name);
    CHECK(filled(row.why, {{"dims", "tp"}, {"ranks", "8"}}).find_first_of("{}") == std::string::npos);
    CHECK(filled(row.why_by_rules, {{"dims", "tp"}, {"from", "0"}, {"to", "1"}, {"result", "P(sum)"}}).find_first_of("{}") ==
          std::string::npos);
  }
}
