// What members of a unit pass on to those that want one box of the parts of it that they fetched.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "transfer/tally.h"
#include "transfer/two_phases.h"

namespace meshplan {

//     a host of 4 misses [4:8], 1 B an element; its ranks 0 and 1 want it, each fetched a half
//     rank 0 sends its half to rank 1 and receives the other: 2 B each way
//     rank 1 is a peer of rank 0 once, even if it also sends it part of what it held before
//     shared among all, rank 2 fetches a quarter for both and sends it to both
class PassedOn {
 public:
  // `nearest`: asked in the unit at hand.
  PassedOn(const ExchangeRanks& ranks, Nearest& nearest, Tally& inner);
  // `fetched`: the parts of one wanted box; `wanting`: the members of the unit that want it.
  void pass(std::span<const int32_t> wanting, std::span<const FetchedPart> fetched,
            int64_t element_bytes);

 private:
  // Members that want the box, but for this one.
  [[nodiscard]] int64_t others(int32_t member) const {
    return static_cast<int64_t>(wanting_.size()) - wanting_too_[static_cast<size_t>(member)];
  }
  // Every fetcher sends its parts to the others that want the box. Gives the bytes of all parts.
  int128 send(std::span<const FetchedPart> fetched, int64_t element_bytes);
  // A rank that sends a member part of what it held before is its peer already: only members that
  // hold the same shard, which get none of it, are new. Gives how many fetchers are new to all:
  // those that send nothing of what they held.
  int64_t count_peers_out(int32_t w);
  void receive(int128 all, int64_t strangers);
  void forget();
  // Whether the rank sends part of what it holds to those of its unit that want box w and lack it.
  bool gives_own(int32_t rank, int32_t w);

  const ExchangeRanks& ranks_;
  Nearest& nearest_;
  Tally& inner_;
  std::vector<int8_t> wanting_too_;  // by rank: 1 where it wants the box at hand
  std::vector<int128> fetched_;      // by rank: bytes of the box at hand
  std::vector<int64_t> giving_;      // by shard: fetchers that hold and give it
  std::vector<int64_t> sharing_;     // by shard: members that want the box and hold it
  std::span<const int32_t> wanting_;
  std::vector<int32_t> fetchers_;
};

}  // namespace meshplan
