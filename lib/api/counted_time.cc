#include "api/counted_time.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/int_math.h"
#include "base/utf8.h"

namespace meshplan {
namespace {

// Adds what takes so long, so often, in nanoseconds rounded up as a file has them; false: that is
// beyond what is counted. A time that saturated is.
bool add_time(int64_t& sum, int64_t ps, int64_t count) {
  const auto all = checked_mul(saturating_mul(ns_of_ps(ps), 1000), count);
  const auto more = all ? checked_add(sum, *all) : std::nullopt;
  if (!more || *more == INT64_MAX) return false;
  sum = *more;
  return true;
}

std::string beyond(const std::string& what, int64_t ps, int64_t count) {
  return what + " takes " + (ps == INT64_MAX ? "at least " : "") + std::to_string(ns_of_ps(ps)) +
         " ns, " + std::to_string(count) + " times: with all before it that is more than the " +
         std::to_string(floor_div(INT64_MAX, 1000)) + " ns that are counted; " +
         (ps == INT64_MAX ? "its tensor, or a mesh of it, is larger than any time is counted for"
                          : "lower its count, or plan fewer redistributions in a file");
}

class Sums {
 public:
  bool add(const Totals& totals, int64_t count) {
    return add_time(predicted_, totals.predicted_ps, count) &&
           add_time(bound_, totals.lower_bound_ps, count);
  }
  // Of the bundle, and of members one by one.
  bool add(const PlannedBundle& bundle) {
    const int64_t count = bundle.request.count;
    return add_time(predicted_, bundle.totals.predicted_ps, count) &&
           add_time(bound_, bundle.totals.lower_bound_ps, count) &&
           add_time(alone_, bundle.alone_ps, count);
  }

 private:
  int64_t predicted_ = 0;
  int64_t bound_ = 0;
  int64_t alone_ = 0;
};

}  // namespace

std::optional<BeyondCount> first_beyond_count(const Plan& plan) {
  const std::vector<bool> bundled = run_by_bundles(plan);
  Sums sums;
  for (size_t i = 0; i < bundled.size(); ++i) {
    const PlannedRedistribution& r = plan.redistributions[i];
    // What a member takes is its bundle's, but its own totals stand in the file, too.
    Sums own;
    if ((bundled[i] ? own : sums).add(r.totals, bundled[i] ? 1 : r.request.count)) continue;
    return BeyondCount{i, beyond("redistribution '" + one_line(r.request.id) + "'",
                                 r.totals.predicted_ps, bundled[i] ? 1 : r.request.count)};
  }
  for (const PlannedBundle& bundle : plan.bundles) {
    if (sums.add(bundle)) continue;
    const int64_t ps = std::max(bundle.totals.predicted_ps, bundle.alone_ps);
    return BeyondCount{
        bundle.request.members.front(),
        beyond("bundle '" + one_line(bundle.request.id) + "', or its members one by one,", ps,
               bundle.request.count)};
  }
  return std::nullopt;
}

}  // namespace meshplan
