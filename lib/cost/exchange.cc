#include "cost/exchange.h"

#include <algorithm>

namespace meshplan {

std::optional<ExchangeCost> price_exchange_aligned(const ExchangeQuestion& q) {
  if (q.dst_mesh != nullptr) return std::nullopt;
  auto problem = align_digits(*q.levels, q.shape, q.element_bytes, *q.src, *q.dst);
  if (!problem) return std::nullopt;
  return price_digits(q.levels->topology(), problem->world, problem->change, q.phases, q.whole_pieces);
}

ExchangeCost price_exchange(const ExchangeQuestion& question) {
  if (auto aligned = price_exchange_aligned(question)) return *aligned;
  ExchangeCost cost = price_exchange_listed(question);
  if (question.dst_mesh == nullptr && has_finer_tiers(question.levels->topology())) {
    cost.least = same_boxes(*question.levels, question.shape, question.element_bytes, *question.src, *question.dst);
    cost.predicted_ps = std::max(cost.predicted_ps, cost.least.price.ps);
  }
  return cost;
}

}  // namespace meshplan
