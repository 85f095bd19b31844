// Memory that the waves of a bundle take and give back, rank by rank, and how much was in use at
// most.
//
//     wave 0   takes 64 KiB, gives 64 KiB       most 64 KiB
//     wave 1   takes 48 KiB of the same memory  most 64 KiB
#pragma once

#include <map>
#include <unordered_map>

#include "replay/device.h"

namespace meshplan {

class StagingPool {
 public:
  // Memory comes from the arena of the device and stays there.
  explicit StagingPool(Device& device) : device_(&device) {}

  // A buffer with guards on both sides, of memory that was given back where it has so much.
  // `counted`: it is staging.
  [[nodiscard]] Result<std::byte*> take(int32_t rank, int64_t bytes, bool counted);
  void give(int32_t rank, std::byte* data);

  // Counted bytes that the rank had at most at a time.
  [[nodiscard]] int64_t most(int32_t rank) const;

 private:
  struct Block {
    int64_t room = 0;
    int64_t counted = 0;
  };
  struct OfRank {
    std::multimap<int64_t, std::byte*> free;  // by room
    std::unordered_map<std::byte*, Block> used;
    int64_t now = 0;
    int64_t most = 0;
  };
  Device* device_;
  std::unordered_map<int32_t, OfRank> ranks_;
};

}  // namespace meshplan
