#include "planner/bundle_shares.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include "base/int_math.h"

namespace meshplan {
namespace {

// A share is so many times the next one at most, or the one before.
constexpr int64_t most_ratio = 4;
// The smallest share has so many parts at most.
constexpr int64_t finest_least = 4;
// Ratios are counted in parts of one.
constexpr int64_t fine_parts = 4096;

// What the rounds of the first step and of the last one take together, each on a stream, and those
// of the slowest.
struct StepTimes {
  int64_t first_ps = 0;
  int64_t last_ps = 0;
  int64_t slowest_ps = 0;
};

StepTimes step_times(const std::vector<BundleRound>& rounds) {
  std::map<int64_t, int64_t> streams;
  bool collectives = false;
  for (const BundleRound& round : rounds) {
    int64_t& sum = streams[round.stream];
    sum = saturating_add(sum, round.predicted_ps);
    collectives = collectives || round.op != Op::exchange;
  }
  StepTimes times{streams.begin()->second, streams.rbegin()->second};
  for (const auto& [stream, ps] : streams) times.slowest_ps = std::max(times.slowest_ps, ps);
  // Few kinds may have the last collectives: what takes longest behind the first step.
  for (auto stream = std::next(streams.begin()); collectives && stream != streams.end(); ++stream)
    times.last_ps = std::max(times.last_ps, stream->second);
  return times;
}

// Shares of which the smallest has so many parts: a tensor that is cut goes in as many pieces as
// they have parts, and a plan lists its pieces.
std::vector<int64_t> uneven_shares(int64_t buckets, const ShareRatio& ratio,
                                   int64_t parts_of_least) {
  const int64_t before = std::max<int64_t>(1, ratio.before);
  const int64_t each = std::clamp(floor_div(saturating_mul(ratio.share, fine_parts), before),
                                  fine_parts / most_ratio, fine_parts * most_ratio);
  std::vector<int64_t> shares{fine_parts * fine_parts};
  for (int64_t b = 1; b < buckets; ++b)
    shares.push_back(floor_div(shares.back() * each, fine_parts));
  const int64_t least = std::min(shares.front(), shares.back());
  for (int64_t& share : shares) share = floor_div(2 * share * parts_of_least + least, 2 * least);
  return shares;
}

}  // namespace

std::vector<ShareRatio> share_ratios(const std::vector<BundleRound>& even) {
  const StepTimes times = step_times(even);
  const ShareRatio steep{times.last_ps, times.first_ps};
  const ShareRatio gentle{saturating_add(times.last_ps, times.first_ps),
                          saturating_mul(2, times.first_ps)};
  std::vector<ShareRatio> ratios{steep, gentle};
  if (times.slowest_ps > std::max(times.first_ps, times.last_ps)) {
    ratios.push_back({times.last_ps, times.slowest_ps});
    ratios.push_back({times.slowest_ps, times.first_ps});
  }
  return ratios;
}

std::vector<int64_t> finest_shares(int64_t buckets, const ShareRatio& ratio) {
  for (int64_t parts_of_least = finest_least; parts_of_least > 0; parts_of_least /= 2) {
    std::vector<int64_t> shares = uneven_shares(buckets, ratio, parts_of_least);
    if (std::accumulate(shares.begin(), shares.end(), int64_t{0}) <= most_share_parts)
      return shares;
  }
  return {};
}

}  // namespace meshplan
