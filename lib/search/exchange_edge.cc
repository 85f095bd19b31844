#include "search/exchange_edge.h"

#include "search/moves.h"

namespace meshplan {
namespace {

Edge edge_of(const SearchState& from, const SearchState& to, ExchangeWay way, uint16_t group,
             const ExchangeCost& cost) {
  Edge edge;
  edge.op = Op::exchange;
  edge.group = group;
  edge.phases = static_cast<uint8_t>(phases_of(way));
  edge.reduced = static_cast<uint16_t>(from.pending & ~to.pending);
  edge.to = to;
  edge.whole_pieces = cost.whole_pieces;
  edge.chunks = static_cast<int16_t>(cost.chunks);
  edge.fetchers = cost.fetchers;
  edge.far_64ths = static_cast<int8_t>(cost.far_64ths);
  edge.at_least = cost.at_least;
  edge.cost = {cost.predicted_ps, phases_of(way), cost.wire_bytes};
  return edge;
}

}  // namespace

Edge exchange_edge(const PlanProblem& p, const SearchState& from, const SearchState& to,
                   ExchangeWay way, int64_t most_ps) {
  const Edge edge = edge_of(from, to, way, p.all, price_between(p, from, to, way, most_ps));
  const bool is_plain = edge.far_64ths == 0 && laps_of(edge.fetchers) == 1;
  if (p.peak_limit == INT64_MAX || edge.at_least || is_plain ||
      peak_of(p, from, edge) <= p.peak_limit)
    return edge;
  return edge_of(from, to, way, p.all, price_between(p, from, to, way, most_ps, true));
}

}  // namespace meshplan
