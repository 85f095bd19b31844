// The sums of a listing of an exchange: bytes and peers by rank and level.
#pragma once

#include <algorithm>
#include <vector>

#include "base/int_math.h"
#include "transfer/exchange_ranks.h"
#include "transfer/level_units.h"
#include "transfer/traffic.h"

namespace meshplan {

inline void add_up(int64_t& sum, int64_t more) { sum = saturating_add(sum, more); }
inline void raise(int64_t& most, int64_t other) { most = std::max(most, other); }
[[nodiscard]] inline int64_t bytes_of(const Overlap& overlap, int64_t element_bytes) {
  return saturating_mul(overlap.elements, element_bytes);
}

// Bytes and peers of every rank over every level, in one phase; the most of them is the traffic.
//
//     rank 0 receives 8 B from 2 peers and sends 4 B to 1, rank 1 the reverse: 8 B, 2 peers
class Tally {
 public:
  Tally(size_t ranks, int levels) : levels_(static_cast<size_t>(levels)), cells_(ranks * levels_) {}
  struct Cell {
    int64_t received = 0;
    int64_t sent = 0;
    int64_t peers_in = 0;
    int64_t peers_out = 0;
  };
  Cell& at(int32_t rank, int level) {
    return cells_[static_cast<size_t>(rank) * levels_ + static_cast<size_t>(level)];
  }
  [[nodiscard]] const Cell& at(int32_t rank, int level) const {
    return cells_[static_cast<size_t>(rank) * levels_ + static_cast<size_t>(level)];
  }
  [[nodiscard]] int64_t received(size_t rank) const { return sum(rank, &Cell::received); }
  [[nodiscard]] int64_t sent(size_t rank) const { return sum(rank, &Cell::sent); }
  // Also over all levels together.
  struct Most {
    Traffic traffic;
    int64_t received = 0;
    int64_t sent = 0;
  };
  [[nodiscard]] Most most_of_all() const {
    Most most;
    for (size_t first = 0; first < cells_.size(); first += levels_) {
      int64_t received = 0;
      int64_t sent = 0;
      for (size_t l = 0; l < levels_; ++l) {
        const Cell& c = cells_[first + l];
        raise_to(most.traffic, c, l);
        add_up(received, c.received);
        add_up(sent, c.sent);
      }
      raise(most.received, received);
      raise(most.sent, sent);
    }
    return most;
  }
  [[nodiscard]] Traffic most() const {
    Traffic traffic;
    for (size_t rank = 0; rank * levels_ < cells_.size(); ++rank) raise_to(traffic, rank);
    return traffic;
  }
  // To what one rank has.
  void raise_to(Traffic& traffic, size_t rank) const {
    for (size_t l = 0; l < levels_; ++l) raise_to(traffic, cells_[rank * levels_ + l], l);
  }
  // Of some ranks, over some levels.
  [[nodiscard]] Traffic most(const std::vector<bool>& ranks, LevelSet levels) const {
    Traffic traffic;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      if (!ranks[rank]) continue;
      for (size_t l = 0; l < levels_; ++l) {
        if (has_level(levels, l)) raise_to(traffic, cells_[rank * levels_ + l], l);
      }
    }
    return traffic;
  }

 private:
  [[nodiscard]] int64_t sum(size_t rank, int64_t Cell::*what) const {
    int64_t all = 0;
    for (size_t l = 0; l < levels_; ++l) add_up(all, cells_[rank * levels_ + l].*what);
    return all;
  }
  static void raise_to(Traffic& traffic, const Cell& c, size_t level) {
    raise(traffic.bytes[level], std::max(c.received, c.sent));
    raise(traffic.peers[level], std::max(c.peers_in, c.peers_out));
  }
  size_t levels_;
  std::vector<Cell> cells_;
};

// The overlap of wanted box w with the shard; nullptr where they do not meet.
inline const Overlap* overlap_with(const ExchangeRanks& ranks, int32_t w, int32_t shard) {
  const auto overlaps = ranks.overlaps_of(w);
  const auto found = std::lower_bound(overlaps.begin(), overlaps.end(), shard,
                                      [](const Overlap& o, int32_t s) { return o.shard < s; });
  return found != overlaps.end() && found->shard == shard ? &*found : nullptr;
}

}  // namespace meshplan
