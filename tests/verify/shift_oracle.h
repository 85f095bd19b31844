// The shifts of parts that are fetched (lib/transfer/README.md, "In shifts"), found the plain way: nothing is kept by rank, and what
// changes places is all that can be reached.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace meshplan::test {

// Parts are pairs of who fetches and who serves.
using OraclePart = std::pair<size_t, size_t>;

inline std::vector<int64_t> oracle_shifts(const std::vector<OraclePart>& parts) {
  std::vector<int64_t> shifts(parts.size(), -1);  // -1: none yet
  const auto end_of = [&](size_t part, bool serves) { return serves ? parts[part].second : parts[part].first; };
  const auto has_one = [&](size_t rank, bool serves, int64_t shift) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (shifts[i] == shift && end_of(i, serves) == rank) return true;
    }
    return false;
  };
  const auto lowest_free = [&](size_t rank, bool serves) {
    int64_t shift = 0;
    while (has_one(rank, serves, shift)) ++shift;
    return shift;
  };
  for (size_t part = 0; part < parts.size(); ++part) {
    const auto [fetcher, holder] = parts[part];
    const int64_t a = lowest_free(fetcher, false);
    if (has_one(holder, true, a)) {
      const int64_t b = lowest_free(holder, true);
      // All of a and b that hangs together with the holder changes from one to the other.
      std::set<std::pair<bool, size_t>> reached{{true, holder}};
      std::set<size_t> changing;
      for (bool grows = true; grows;) {
        grows = false;
        for (size_t i = 0; i < part; ++i) {
          if ((shifts[i] != a && shifts[i] != b) || changing.count(i) > 0) continue;
          if (reached.count({false, parts[i].first}) + reached.count({true, parts[i].second}) == 0) continue;
          reached.insert({false, parts[i].first});
          reached.insert({true, parts[i].second});
          changing.insert(i);
          grows = true;
        }
      }
      for (const size_t i : changing) shifts[i] = shifts[i] == a ? b : a;
    }
    shifts[part] = a;
  }
  return shifts;
}

}  // namespace meshplan::test
