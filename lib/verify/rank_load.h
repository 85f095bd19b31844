// What every rank of a round or a wave has to do over each level.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "base/int_math.h"
#include "verify/bundle_traffic.h"
#include "verify/traffic.h"

namespace meshplan::verification {

// The most over ranks.
struct MostLoad {
  int64_t received = 0;
  int64_t packed = 0;  // received and sent
  int64_t messages = 0;
  LevelTraffic traffic;
};

class RankLoad {
 public:
  RankLoad(size_t ranks, size_t levels) : levels_(levels), loads_(ranks * levels), met_(ranks) {}

  void add(const PieceTraffic& traffic, int64_t tensors) {
    for (const RankShare& share : traffic.shares) {
      Load& load = at(share.rank, share.level);
      load.received = saturating_add(load.received, saturating_mul(share.received, tensors));
      load.sent = saturating_add(load.sent, saturating_mul(share.sent, tensors));
    }
  }
  void add(const std::vector<PeerShare>& peers) {
    for (const PeerShare& share : peers) {
      Load& load = at(share.rank, share.level);
      load.to += share.to;
      load.from += share.from;
    }
  }
  void add(const RankLoad& other) {
    for (const uint32_t rank : other.touched_) {
      for (size_t l = 0; l < levels_; ++l) {
        const Load& more = other.loads_[rank * levels_ + l];
        Load& load = at(rank, static_cast<uint32_t>(l));
        load.received = saturating_add(load.received, more.received);
        load.sent = saturating_add(load.sent, more.sent);
        load.to += more.to;
        load.from += more.from;
      }
    }
  }
  [[nodiscard]] MostLoad most() const {
    std::set<size_t> all;
    for (size_t l = 0; l < levels_; ++l) all.insert(l);
    return most_over(all, [](uint32_t) { return true; });
  }
  // Over these levels, of ranks of which `counts(rank)`.
  template <class Counts>
  [[nodiscard]] MostLoad most_over(const std::set<size_t>& levels, const Counts& counts) const {
    MostLoad most;
    for (const uint32_t rank : touched_) {
      if (!counts(rank)) continue;
      int64_t received = 0;
      int64_t messages = 0;
      for (const size_t l : levels) {
        const Load& load = loads_[rank * levels_ + l];
        received = saturating_add(received, load.received);
        messages += load.to + load.from;
        most.traffic.bytes[l] = std::max({most.traffic.bytes[l], load.received, load.sent});
        most.traffic.peers[l] = std::max({most.traffic.peers[l], load.to, load.from});
      }
      most.received = std::max(most.received, received);
      most.packed = std::max(most.packed, packed(rank));
      most.messages = std::max(most.messages, messages);
    }
    return most;
  }
  [[nodiscard]] int64_t packed(uint32_t rank) const {
    int64_t packed = 0;
    for (size_t l = 0; l < levels_; ++l) {
      const Load& load = loads_[rank * levels_ + l];
      packed = saturating_add(packed, saturating_add(load.received, load.sent));
    }
    return packed;
  }
  [[nodiscard]] const std::vector<uint32_t>& touched() const { return touched_; }
  void clear() {
    for (const uint32_t rank : touched_) {
      std::fill_n(loads_.begin() + static_cast<std::ptrdiff_t>(rank * levels_), levels_, Load{});
      met_[rank] = false;
    }
    touched_.clear();
  }

 private:
  struct Load {
    int64_t received = 0;  // bytes
    int64_t sent = 0;
    int64_t to = 0;  // peers
    int64_t from = 0;
  };
  Load& at(uint32_t rank, uint32_t level) {
    if (!met_[rank]) {
      met_[rank] = true;
      touched_.push_back(rank);
    }
    return loads_[rank * levels_ + level];
  }

  size_t levels_;
  std::vector<Load> loads_;
  std::vector<bool> met_;
  std::vector<uint32_t> touched_;
};

}  // namespace meshplan::verification
