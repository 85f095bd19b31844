#include "plan/bundle.h"

#include <algorithm>
#include <map>

namespace meshplan {

std::vector<int64_t> waves_of(const std::vector<BundleRound>& rounds) {
  std::vector<int64_t> waves;
  std::map<int64_t, int64_t> next;  // the first wave that is free, by stream
  for (const BundleRound& round : rounds) {
    int64_t& free = next[round.stream];
    for (const size_t before : round.after) free = std::max(free, waves[before] + 1);
    waves.push_back(free++);
  }
  return waves;
}

}  // namespace meshplan
