#include "replay/staging_pool.h"

#include <algorithm>

#include "base/check.h"

namespace meshplan {

Result<std::byte*> StagingPool::take(int32_t rank, int64_t bytes, bool counted) {
  OfRank& own = ranks_[rank];
  Block block{bytes, counted ? bytes : 0};
  std::byte* data = nullptr;
  if (const auto found = own.free.lower_bound(bytes); found != own.free.end()) {
    block.room = found->first;
    data = found->second;
    own.free.erase(found);
  } else {
    auto made = device_->allocate(rank, bytes);
    if (!made) return made;
    data = *made;
  }
  own.used.emplace(data, block);
  own.now += block.counted;
  own.most = std::max(own.most, own.now);
  return data;
}

void StagingPool::give(int32_t rank, std::byte* data) {
  OfRank& own = ranks_[rank];
  const auto at = own.used.find(data);
  MESHPLAN_CHECK(at != own.used.end(), "only what was taken is given back");
  own.now -= at->second.counted;
  own.free.emplace(at->second.room, data);
  own.used.erase(at);
}

int64_t StagingPool::most(int32_t rank) const {
  const auto at = ranks_.find(rank);
  return at == ranks_.end() ? 0 : at->second.most;
}

}  // namespace meshplan
