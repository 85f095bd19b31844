#include "search/across_exchange.h"

#include <utility>

#include "cost/step_cost.h"
#include "search/listing_work.h"

namespace meshplan {

Request AcrossExchange::leg(const State& src, const State& dst) const {
  Request leg = *question_.request;
  leg.src = src;
  leg.dst = dst;
  return leg;
}

ExchangeStep AcrossExchange::made(const State& src, const State& dst, const ExchangeWays& ways,
                                  int64_t most_ps) {
  const ListingWork listings(levels_);
  ExchangeStep made =
      make_exchange_step(levels_, dst_mesh_, *question_.request, src, dst, ways, most_ps);
  budget_.spend(2 * work::state + listings.since());
  return made;
}

AcrossExchange::Least AcrossExchange::least_peak(const State& src, const State& dst,
                                                 ExchangeWays ways) {
  Least least;
  for (bool more = true; more;) {
    PlannedRedistribution crossing;
    crossing.request = leg(src, dst);
    crossing.steps = {made(src, dst, ways).step};
    price_redistribution(crossing, *question_.meshes, levels_);
    Step& step = crossing.steps.front();
    more = leave_out_way(step, ways);
    if (crossing.totals.peak_bytes < least.peak_bytes)
      least = {std::move(step), crossing.totals.peak_bytes};
  }
  return least;
}

bool leave_out_way(const Step& exchange, ExchangeWays& ways) {
  if (exchange.far_64ths > 0) {
    ways.far_shares = false;
  } else if (exchange.fetched_by_all) {
    ways.fetchers = Fetchers::wanting;
  } else if (exchange.phases == 2) {
    ways.most_phases = 1;
  } else {
    return false;
  }
  return true;
}

}  // namespace meshplan
