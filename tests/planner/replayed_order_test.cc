// Collectives on a group that lists its ranks in another order than the step's mesh dims: every element arrives where the states say, in any
// order of shards, even, uneven and empty, whatever the rank map.
#include <doctest/doctest.h>

#include "replay_host/host.h"
#include "verify/build_plan.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

struct OneStep {
  Op op;
  const char* src;
  const char* dst;
};

const OneStep steps_on_both[]{
    {Op::all_reduce, "P(sum)P(sum)R", "RRR"},
    {Op::all_gather, "S(0)[0]S(0)[1]R", "RRR"},
    {Op::all_gather, "S(0)[1]S(0)[0]R", "RRR"},
    {Op::all_gather, "S(0)S(1)R", "RRR"},
    {Op::reduce_scatter, "P(sum)P(sum)R", "S(0)[0]S(0)[1]R"},
    {Op::reduce_scatter, "P(sum)P(sum)R", "S(0)[1]S(0)[0]R"},
    {Op::reduce_scatter, "P(max)P(max)R", "S(0)S(1)R"},
    {Op::all_to_all, "S(0)[0]S(0)[1]R", "S(1)[0]S(1)[1]R"},
    {Op::all_to_all, "S(0)[1]S(0)[0]R", "S(1)[0]S(1)[1]R"},
    {Op::all_to_all, "S(0)[0]S(0)[1]R", "S(1)[1]S(1)[0]R"},
    {Op::all_to_all, "S(0)[1]S(0)[0]S(1)", "S(1)[2]S(1)[1]S(1)[0]"},
};

std::optional<ReduceOp> reduce_op_of(const OneStep& step) {
  if (step.src[0] != 'P') return std::nullopt;
  return step.src[2] == 's' ? ReduceOp::sum : ReduceOp::max;
}

}  // namespace

TEST_CASE("a group of the ranks in another order is placed by its ranks") {
  for (const auto& ranks : {std::vector<int64_t>{}, std::vector<int64_t>{9, 3, 11, 0, 7, 5, 2, 8, 10, 1, 6, 4}}) {
    const MeshTable table = test::table_of({{"a", 2}, {"b", 3}, {"c", 2}}, {}, ranks);
    for (const OneStep& step : steps_on_both) {
      for (const std::vector<int64_t>& shape : {std::vector<int64_t>{12, 18}, {13, 7}, {4, 3}}) {
        CAPTURE(step.src);
        CAPTURE(step.dst);
        CAPTURE(to_text(step.op));
        const Plan straight = test::hand_plan(table, shape, step.src, {{step.op, {"a", "b"}, step.dst, reduce_op_of(step)}});
        Plan turned = straight;
        turned.groups.at(0).dims = {"b", "a"};
        turned.groups[0].layout = *parse_layout("(3,2):(2,6)");
        for (const Plan& plan : {straight, turned}) {
          const Status verified = verify_plan(plan);
          REQUIRE_MESSAGE(verified.ok(), (verified.ok() ? "" : verified.error().message));
          const auto report = replay_on_host(plan, {});
          REQUIRE_MESSAGE(report.ok(), (report.ok() ? "" : report.error().message));
          CHECK_MESSAGE(all_right(*report), to_text(*report));
          CHECK(checked_elements(*report) > 0);
        }
      }
    }
  }
}

}  // namespace meshplan
