#include "search/share_fetching.h"

#include "cost/exchange.h"
#include "cost/step_figures.h"
#include "search/edge_steps.h"

namespace meshplan {
namespace {

// The exchange fetched by all; what it saves, picoseconds.
int64_t share_one(const LevelMap& levels, const StepQuestion& asked, int64_t most_peak,
                  Step& step) {
  ExchangeQuestion q = exchange_question(levels, asked);
  const ExchangeCost now = price_exchange(q);
  q.phases = 2;
  q.fetchers = std::nullopt;
  q.chunks = std::nullopt;
  q.most_ps = now.predicted_ps;
  const ExchangeCost shared = price_exchange(q);
  if (!now.exact || !shared.exact || shared.fetchers == Fetchers::wanting ||
      shared.predicted_ps >= now.predicted_ps)
    return 0;
  Step other = step;
  other.phases = 2;
  other.chunks = shared.chunks;
  set_fetchers(shared.fetchers, other);
  other.whole_pieces = false;
  other.why = fetched_by_all_reason;
  StepQuestion with_other = asked;
  with_other.step = &other;
  if (price_step_on(levels, with_other).peak_bytes > most_peak) return 0;
  step = std::move(other);
  return now.predicted_ps - shared.predicted_ps;
}

}  // namespace

SharedFetching share_fetching(const LevelMap& levels, const Request& request, int64_t most_peak,
                              std::vector<Step>& steps) {
  SharedFetching all;
  if (levels.levels() == 1) return all;
  State before = request.src;
  for (Step& step : steps) {
    const StepQuestion asked{&levels.topology(),   &levels.mesh(), &levels.mesh(), &request.tensor,
                             request.reduce_dtype, &before,        &step};
    if (step.op == Op::exchange && !step.reduce_op && before != step.state) {
      all.saved_ps += share_one(levels, asked, most_peak, step);
      ++all.exchanges;
    }
    before = step.state;
  }
  return all;
}

}  // namespace meshplan
