#include "transfer/fetch_shares.h"

#include <algorithm>

namespace meshplan {

bool fetch_unevenly(const ExchangeRanks& ranks, const LevelUnits& units, const Tally& tally) {
  int64_t most = 0;
  int64_t most_shared = 0;
  for (size_t r = 0; r < ranks.size();) {
    const int64_t unit = units.unit(ranks.id[r], 0);
    int64_t members = 0;
    int64_t all = 0;
    for (; r < ranks.size() && units.unit(ranks.id[r], 0) == unit; ++r) {
      if (ranks.target[r] < 0) continue;
      int64_t fetched = 0;
      for (int l = 1; l < units.levels(); ++l)
        add_up(fetched, tally.at(static_cast<int32_t>(r), l).received);
      ++members;
      add_up(all, fetched);
      raise(most, fetched);
    }
    if (members > 0) raise(most_shared, ceil_div(all, members));
  }
  return int128{16} * most > int128{17} * most_shared;
}

}  // namespace meshplan
