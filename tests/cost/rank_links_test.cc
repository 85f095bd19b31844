// Links between sets of ranks against what any two ranks say.
#include "cost/rank_links.h"

#include <algorithm>
#include <random>

#include "doctest/doctest.h"

using namespace meshplan;

namespace {

// The innermost level whose unit holds both.
size_t level_between(const RankLinks& links, size_t levels, int64_t a, int64_t b) {
  size_t l = 0;
  while (l + 1 < levels && links.unit(a, static_cast<int>(l)) != links.unit(b, static_cast<int>(l))) ++l;
  return l;
}

}  // namespace

TEST_CASE("the border of a set has on each level the links of the fewer of both sides, of one rank as of many") {
  std::mt19937_64 random(3);
  int alone = 0;
  for (const std::vector<int64_t>& units : std::vector<std::vector<int64_t>>{{}, {4}, {8}, {2, 8}, {3, 6}, {5, 20}, {1, 4}}) {
    Topology topology;
    for (const int64_t ranks : units) topology.levels.push_back({"l", ranks, 100 * ranks + 7, 1, 0, 100});
    topology.levels.push_back({"far", 1'048'576, 13, 1, 0, 100});
    for (const int64_t world : {12, 16, 96}) {
      for (int round = 0; round < 60; ++round) {
        std::vector<RankBoxes> ranks;
        for (int64_t id = 0; id < world; ++id) {
          if (round % 3 == 0 || random() % 4 != 0) ranks.push_back({id});
        }
        if (ranks.empty()) continue;
        RankLinks links(topology, ranks);
        std::vector<int32_t> members;
        if (round % 2 == 0) {
          members.push_back(static_cast<int32_t>(random() % ranks.size()));
          ++alone;
        } else {
          for (size_t i = 0; i < ranks.size(); ++i) {
            if (random() % 3 == 0) members.push_back(static_cast<int32_t>(i));
          }
        }
        int64_t expected = 0;
        for (size_t l = 0; l < topology.levels.size(); ++l) {
          std::vector<bool> meets(ranks.size(), false);
          for (const int32_t m : members) {
            for (size_t r = 0; r < ranks.size(); ++r) {
              if (std::find(members.begin(), members.end(), static_cast<int32_t>(r)) != members.end()) continue;
              if (level_between(links, topology.levels.size(), ranks[static_cast<size_t>(m)].id, ranks[r].id) != l) continue;
              meets[r] = meets[static_cast<size_t>(m)] = true;
            }
          }
          const auto inside = std::count_if(members.begin(), members.end(), [&](int32_t m) { return meets[static_cast<size_t>(m)]; });
          const auto outside = std::count(meets.begin(), meets.end(), true) - inside;
          expected += std::min(inside, outside) * topology.levels[l].mb_per_s;
        }
        CAPTURE(units.size());
        CAPTURE(world);
        CAPTURE(members.size());
        CHECK(links.border_bandwidth(members) == expected);
      }
    }
  }
  CHECK(alone > 500);
}
