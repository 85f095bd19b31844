#include "plan/describe_moves.h"

#include <algorithm>

namespace meshplan {

void describe_uniform(Step& step, const Placement& src, const Placement& dst) {
  step.src = src;
  step.dst = dst;
  if (is_shard(src) != is_shard(dst))
    step.tensor_dim = is_shard(src) ? src.tensor_dim : dst.tensor_dim;
}

void describe_moves(Step& step, std::vector<Move> moves) {
  step.src.reset();
  step.dst.reset();
  step.tensor_dim.reset();
  step.moves.clear();
  const bool uniform =
      !moves.empty() && std::all_of(moves.begin(), moves.end(), [&](const Move& move) {
        return move.src == moves.front().src && move.dst == moves.front().dst;
      });
  if (uniform) {
    describe_uniform(step, moves.front().src, moves.front().dst);
  } else {
    step.moves = std::move(moves);
  }
}

}  // namespace meshplan
