// What every rank has in memory while a bundle runs: boxes between steps that come and go with the
// waves, and the sources and targets, which stay.
#pragma once

#include <cstdint>
#include <vector>

#include "base/int_math.h"
#include "verify/bundle_order.h"
#include "verify/bundle_traffic.h"
#include "verify/rank_load.h"

namespace meshplan::verification {

class BundleMemory {
 public:
  BundleMemory(const BundleView& view, const std::vector<BoxLife>& lives, BundleTraffic& traffic,
               const BundleRanks& ranks);

  // Goes on to the wave, with the boxes that exist in it. Waves ascend.
  void go_to(int64_t wave);
  // What ranks have packed in it, all rounds together.
  void add_packed(const RankLoad& load);
  void add_packed(const std::vector<uint32_t>& ranks, int64_t packed_by_each);

  [[nodiscard]] int64_t staging() const { return staging_; }
  [[nodiscard]] int64_t peak() const;

 private:
  // Tensors of a kind whose box after a step begins, or ends, to exist.
  struct Change {
    int64_t wave = 0;
    size_t box = 0;
    int128 tensors = 0;
  };
  struct LiveBox {
    std::vector<RankBytes> bytes;
    int128 tensors = 0;
  };
  void count(uint32_t rank, int64_t packed);  // more of the wave

  std::vector<LiveBox> boxes_;
  std::vector<Change> changes_;  // by wave
  size_t done_ = 0;
  std::vector<int128> live_;     // bytes of boxes by rank; each box held at INT64_MAX
  std::vector<int64_t> packed_;  // in the wave so far
  std::vector<int64_t> ends_;    // sources and targets
  std::vector<int64_t> most_;    // the most so far beside them
  int64_t staging_ = 0;
};

}  // namespace meshplan::verification
