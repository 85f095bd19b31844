#include "cost/least_crossing.h"

#include <algorithm>

#include "base/int_math.h"

namespace meshplan {

int64_t LeastCrossing::transfer() const {
  return *std::max_element(transfer_ps.begin(), transfer_ps.end());
}

int64_t LeastCrossing::transfer_beyond(int level) const {
  return near_ends_last ? *std::max_element(transfer_ps.begin() + level, transfer_ps.end())
                        : transfer();
}

int64_t LeastCrossing::ps(const RankLinks& links) const {
  int64_t ps = ps_of_ns(latency_ns);
  if (!near_ends_last) return saturating_add(ps, transfer());
  for (size_t l = 0; l < transfer_ps.size(); ++l) {
    if (transfer_ps[l] == 0) continue;
    const int64_t own_ns = links.least_latency_ns(static_cast<int>(l));
    ps = std::max(ps, saturating_add(ps_of_ns(own_ns), transfer_ps[l]));
  }
  return ps;
}

}  // namespace meshplan
