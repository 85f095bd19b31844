// What the holders of shards send. A listing adds to stretches of a shard's holders that send
// alike, as differences at both ends, which are summed up once at the end: so a stretch takes the
// same time however many holders it has.
//
//     a shard with 6 holders, 10 B from holders 0 to 3, then 4 B from holders 2 to 5
//     differences     +10  0  +4  0  -10  0  -4
//     sums             10 10  14 14    4  4
//
// What one holder sends alone is added to the tally at once.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "base/int_math.h"
#include "transfer/nearest_holders.h"
#include "transfer/tally.h"

namespace meshplan {

// Differences are wide integers: of sums that saturate no difference could be taken.
class HolderSends {
 public:
  HolderSends(const ExchangeRanks& ranks, int levels, Tally& tally)
      : ranks_(ranks),
        tally_(tally),
        levels_(static_cast<size_t>(levels)),
        sent_(levels_ * (ranks.holders.size() + 1)) {}

  // The i-th nearest holders, i from `begin` up to `end`, send this to `times` ranks each.
  void send(int32_t shard, const NearestHolders& near, int64_t begin, int64_t end, int64_t bytes,
            int64_t times) {
    if (begin >= end) return;
    const int64_t first = ranks_.holders_begin[static_cast<size_t>(shard)] + near.begin;
    if (begin + 1 == end) {
      const int32_t holder = ranks_.holders[static_cast<size_t>(first + begin)];
      Tally::Cell& cell = tally_.at(holder, near.level);
      add_up(cell.sent, saturating_mul(bytes, times));
      cell.peers_out += times;
      return;
    }
    const int128 all = int128{bytes} * times;
    change(first + begin, near.level, all, times);
    change(first + end, near.level, -all, -times);
  }
  // Parts of an even cut, each to `times` ranks: 10 slices of 4 holders are 3 3 2 2, two stretches.
  void send_parts(const Overlap& overlap, const NearestHolders& near, int64_t element_bytes,
                  int64_t times) {
    if (near.count == 1)
      return send(overlap.shard, near, 0, 1, bytes_of(overlap, element_bytes), times);
    if (overlap.elements != cut_.elements || overlap.longest != cut_.longest ||
        near.count != cut_.count)
      cut_ = cut_of(overlap, near.count, element_bytes);
    send(overlap.shard, near, 0, cut_.longer, cut_.longer_bytes, times);
    if (cut_.bytes > 0) send(overlap.shard, near, cut_.longer, near.count, cut_.bytes, times);
  }
  // Whole pieces for `times` ranks in a row, of which the first asks in turn number `turn`: turns 3
  // to 8 of 4 holders are one round, and one more of the holders 3 and 0.
  void send_whole(int32_t shard, const NearestHolders& near, int64_t bytes, int64_t turn,
                  int64_t times) {
    if (near.count == 1) return send(shard, near, 0, 1, bytes, times);
    const int64_t rounds = floor_div(times, near.count);
    if (rounds > 0) send(shard, near, 0, near.count, bytes, rounds);
    const int64_t begin = turn - floor_div(turn, near.count) * near.count;
    const int64_t end = begin + times - rounds * near.count;
    send(shard, near, begin, std::min<int64_t>(end, near.count), bytes, 1);
    send(shard, near, 0, end - near.count, bytes, 1);
  }

  // The nearest holders of a shard one after the other, in a circle: a piece each.
  class Turns {
   public:
    Turns(std::span<const int32_t> holders, size_t next, int level, Tally& tally)
        : holders_(holders), next_(next), level_(level), tally_(&tally) {}
    void send(int64_t bytes) {
      Tally::Cell& cell = tally_->at(holders_[next_], level_);
      add_up(cell.sent, bytes);
      ++cell.peers_out;
      next_ = next_ + 1 == holders_.size() ? 0 : next_ + 1;
    }

   private:
    std::span<const int32_t> holders_;
    size_t next_;
    int level_;
    Tally* tally_;
  };
  // From turn number `turn` on.
  [[nodiscard]] Turns turns(int32_t shard, const NearestHolders& near, int64_t turn) const {
    return {ranks_.holders_of(shard).subspan(static_cast<size_t>(near.begin),
                                             static_cast<size_t>(near.count)),
            static_cast<size_t>(turn % near.count), near.level, tally_};
  }

  // Adds what holders send by stretches to the tally.
  void finish() const {
    std::vector<Sent> now(levels_);
    for (size_t place = 0; place < ranks_.holders.size(); ++place) {
      for (size_t l = 0; l < levels_; ++l) {
        const Sent& more = sent_[place * levels_ + l];
        now[l].bytes += more.bytes;
        now[l].peers += more.peers;
        if (now[l].peers == 0) continue;
        auto& cell = tally_.at(ranks_.holders[place], static_cast<int>(l));
        add_up(cell.sent, saturated(now[l].bytes));
        cell.peers_out += now[l].peers;
      }
    }
  }

 private:
  struct Sent {
    int128 bytes = 0;
    int64_t peers = 0;
  };
  void change(int64_t place, int level, int128 bytes, int64_t peers) {
    Sent& at = sent_[static_cast<size_t>(place) * levels_ + static_cast<size_t>(level)];
    at.bytes += bytes;
    at.peers += peers;
  }
  // An overlap over its holders: the first `longer` send a slice more than the others.
  struct EvenCut {
    int64_t elements = -1;
    int64_t longest = 0;
    int64_t count = 0;
    int64_t longer = 0;
    int64_t longer_bytes = 0;
    int64_t bytes = 0;
  };
  static EvenCut cut_of(const Overlap& overlap, int64_t count, int64_t element_bytes) {
    const int64_t slice = floor_div(overlap.elements, overlap.longest);
    const int64_t each = floor_div(overlap.longest, count);
    return {overlap.elements,
            overlap.longest,
            count,
            overlap.longest - each * count,
            saturating_mul(slice * (each + 1), element_bytes),
            saturating_mul(slice * each, element_bytes)};
  }

  const ExchangeRanks& ranks_;
  Tally& tally_;
  size_t levels_;
  EvenCut cut_;             // the last: neighbours are cut alike. Of one width of elements.
  std::vector<Sent> sent_;  // differences; place-major, places as in ranks_.holders
};

}  // namespace meshplan
