#include "cost/step_load.h"

#include "base/int_math.h"
#include "cost/exchange.h"
#include "cost/step_figures.h"

namespace meshplan {

std::optional<StepLoad> step_load(const StepQuestion& q) {
  if (is_local(q.step->op) || q.step->phases != 1) return std::nullopt;
  const LevelMap levels(*q.src_mesh, *q.topology);
  StepLoad load;
  if (q.step->op != Op::exchange) {
    const auto& shapes = levels.shapes(q.step->mesh_dims);
    if (shapes.size() != 1 || !shapes.front().uniform || shapes.front().members.back() < 2)
      return std::nullopt;
    load.members = shapes.front().members;
    return load;
  }
  const ExchangeCost cost = price_exchange(exchange_question(levels, q));
  if (!cost.exact) return std::nullopt;
  const Traffic& traffic = cost.traffic.phase[0];
  load.members.assign(static_cast<size_t>(levels.levels()), mesh_size(*q.src_mesh));
  for (size_t l = 0; l < load.members.size(); ++l) {
    load.level_bytes.push_back(ceil_div(traffic.bytes[l], traffic.denominator));
    load.level_peers.push_back(traffic.peers[l]);
  }
  return load;
}

}  // namespace meshplan
