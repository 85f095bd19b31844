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

int64_t most_in_flight(const std::vector<BundleRound>& rounds) {
  std::map<int64_t, int64_t> in_wave;
  int64_t most = 0;
  for (const int64_t wave : waves_of(rounds)) most = std::max(most, ++in_wave[wave]);
  return most;
}

}  // namespace meshplan
