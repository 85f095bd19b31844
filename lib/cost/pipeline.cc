#include "cost/pipeline.h"

#include <algorithm>

#include "base/int_math.h"
#include "plan/plan.h"

namespace meshplan {
namespace {

// k t(k), exactly: k a = k latency + transfer.
int128 times_chunks(const PhaseTime& first, const PhaseTime& second, int64_t k) {
  const int128 a = int128{first.latency_ps} * k + first.transfer_ps;
  const int128 b = int128{second.latency_ps} * k + second.transfer_ps;
  return a + b + (k - 1) * std::max(a, b);
}

// Whether k + 1 chunks take less than k.
bool one_more_pays(const PhaseTime& first, const PhaseTime& second, int64_t k) {
  return times_chunks(first, second, k + 1) * k < times_chunks(first, second, k) * (k + 1);
}

}  // namespace

int64_t rounds_ps(int64_t fetch_ps, int64_t share_ps, int64_t chunks) {
  return saturated(int128{fetch_ps} + share_ps + int128{chunks - 1} * std::max(fetch_ps, share_ps));
}

int64_t pipelined_ps(const PhaseTime& first, const PhaseTime& second, int64_t chunks) {
  const int128 all = times_chunks(first, second, chunks);
  if (chunks == 1) return saturated(all);
  return saturated((all + chunks - 1) / chunks);
}

// Of two chunks or more both starts of the one, and one of the other, are waited for.
bool may_pay_in_chunks(const PhaseTime& first, const PhaseTime& second) {
  const int64_t transfers = saturating_add(first.transfer_ps, second.transfer_ps);
  return first.latency_ps < transfers && second.latency_ps < transfers;
}

// t is the larger of two convex functions of k, k first.latency + first.transfer + second.latency +
// second.transfer / k and the same with the phases exchanged, so the first k after which one more
// chunk does not pay is the best.
int64_t best_chunks(const PhaseTime& first, const PhaseTime& second) {
  // 2 t(2) < 2 t(1), solved for the transfers: the common case is that two chunks do not pay.
  if (second.transfer_ps / 2 < first.latency_ps || first.transfer_ps / 2 < second.latency_ps ||
      !one_more_pays(first, second, 1))
    return 1;
  int64_t low = 2;
  int64_t high = most_chunks;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (one_more_pays(first, second, middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace meshplan
