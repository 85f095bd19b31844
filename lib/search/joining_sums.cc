#include "search/joining_sums.h"

#include <utility>

namespace meshplan {

int64_t drop_joining_ps(std::vector<Edge>& edges) {
  int64_t dropped = 0;
  for (Edge& edge : edges) {
    if (edge.op == Op::to_partial) dropped += std::exchange(edge.cost.ps, 0);
  }
  return dropped;
}

uint16_t joining_sub_axes(const PlanProblem& p) {
  if ((p.source.pending & ~p.kept) == 0 || p.target.made != 0 || p.in_rounds) return 0;
  for (unsigned left = p.source.pending; left != 0; left &= left - 1) {
    const ReduceOp op = p.source_op[as_index(__builtin_ctz(left))];
    if (op != ReduceOp::sum && op != ReduceOp::avg) return 0;
  }
  return static_cast<uint16_t>(p.all & ~p.source.pending);
}

}  // namespace meshplan
