#include "plan/describe_moves.h"

#include <algorithm>

namespace meshplan {

std::vector<Atom> reduced_atoms(const State& before, const State& after) {
  std::vector<Atom> atoms;
  for (const PendingAtom& pending : before.partial) {
    const bool stays =
        std::any_of(after.partial.begin(), after.partial.end(),
                    [&](const PendingAtom& other) { return other.atom == pending.atom; });
    if (!stays && pending.atom.size > 1) atoms.push_back(pending.atom);
  }
  return atoms;
}

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
