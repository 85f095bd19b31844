// Uneven shares of buckets, with which a bucket's later step takes as long as the first step of the
// bucket behind it, that runs beside it.
//
//     step 0 takes 4, step 1 takes 2     ratio 1 : 2     shares 4 2 1 of 7
#pragma once

#include <cstdint>
#include <vector>

#include "plan/bundle.h"

namespace meshplan {

// Of a bucket's share to that of the bucket before it.
struct ShareRatio {
  int64_t share = 1;
  int64_t before = 1;
};

// Ratios that are worth trying of buckets that take so long evenly: as the last step's time is to
// the first one's, or half as steep; where a step between takes longest, as the last one's is to
// that, or as that is to the first one's.
[[nodiscard]] std::vector<ShareRatio> share_ratios(const std::vector<BundleRound>& even);

// All shares together have so many parts at most.
constexpr int64_t most_share_parts = 64;
// The shares of so many buckets in parts, as fine as that allows; none where it does not.
[[nodiscard]] std::vector<int64_t> finest_shares(int64_t buckets, const ShareRatio& ratio);

}  // namespace meshplan
