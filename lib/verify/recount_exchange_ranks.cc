// exchanged_by_ranks of recount_exchange.h: one phase, every rank and every shard that its new box
// meets.
#include <algorithm>

#include "base/int_math.h"
#include "verify/listing.h"
#include "verify/recount_exchange.h"

namespace meshplan::verification {
namespace {

class Tally {
 public:
  Tally(const ExchangeView& view, const Listing& listing)
      : view_(view),
        listing_(listing),
        levels_(listing.units().levels()),
        asked_(listing.shards(), 0),
        sent_(levels_, std::vector<int128>(listing.places() + 1, 0)),
        to_(levels_, std::vector<int64_t>(listing.places() + 1, 0)) {}

  void count(Exchanged& most) {
    for (const ListedRank& rank : listing_.ranks()) {
      if (rank.dst < 0) continue;
      received_.fill(0);
      from_.fill(0);
      listing_.each_part(rank, [&](int64_t shard, int64_t elements, int64_t longest) {
        if (shard != rank.shard)
          take(shard, listing_.nearest(shard, rank.id), elements * view_.element_bytes, longest);
      });
      int64_t all = 0;
      for (size_t l = 0; l < levels_; ++l) {
        all = saturating_add(all, received_[l]);
        most.traffic.bytes[l] = std::max(most.traffic.bytes[l], received_[l]);
        most.traffic.peers[l] = std::max(most.traffic.peers[l], from_[l]);
      }
      most.received = std::max(most.received, all);
    }
    fold_sent(most);
  }

 private:
  void take(int64_t shard, const NearestHolders& near, int64_t bytes, int64_t longest) {
    received_[near.level] = saturating_add(received_[near.level], bytes);
    if (view_.whole_pieces || near.count == 1) {
      const size_t sender =
          near.first + static_cast<size_t>(asked_[static_cast<size_t>(shard)]++ % near.count);
      send(near.level, sender, sender + 1, bytes);
      ++from_[near.level];
      return;
    }
    // `longer` of the holders send one slice more than the others.
    const int64_t slice = bytes / longest;
    const int64_t each = longest / near.count;
    const size_t longer = near.first + static_cast<size_t>(longest % near.count);
    if (longer > near.first) send(near.level, near.first, longer, slice * (each + 1));
    if (each > 0)
      send(near.level, longer, near.first + static_cast<size_t>(near.count), slice * each);
    from_[near.level] += std::min(near.count, longest);
  }

  // Each holder from place `first` to `last` sends so much, in one message: differences, summed up
  // at the end.
  void send(size_t level, size_t first, size_t last, int64_t bytes) {
    sent_[level][first] += bytes;
    sent_[level][last] -= bytes;
    ++to_[level][first];
    --to_[level][last];
  }

  void fold_sent(Exchanged& most) const {
    std::array<int128, most_levels> sums{};
    std::array<int64_t, most_levels> messages{};
    for (size_t place = 0; place < listing_.places(); ++place) {
      int64_t all = 0;
      for (size_t l = 0; l < levels_; ++l) {
        sums[l] += sent_[l][place];
        messages[l] += to_[l][place];
        const auto bytes = sums[l] > INT64_MAX ? INT64_MAX : static_cast<int64_t>(sums[l]);
        all = saturating_add(all, bytes);
        most.traffic.bytes[l] = std::max(most.traffic.bytes[l], bytes);
        most.traffic.peers[l] = std::max(most.traffic.peers[l], messages[l]);
      }
      most.sent = std::max(most.sent, all);
    }
  }

  const ExchangeView& view_;
  const Listing& listing_;
  size_t levels_;
  std::vector<int64_t> asked_;  // per shard, how many ranks so far miss part of it
  // Per level and place; bytes are wide, as differences cannot be held at a most.
  std::vector<std::vector<int128>> sent_;
  std::vector<std::vector<int64_t>> to_;
  // Of the rank at hand, per level.
  std::array<int64_t, most_levels> received_{};
  std::array<int64_t, most_levels> from_{};
};

}  // namespace

std::optional<Exchanged> exchanged_by_ranks(const ExchangeView& view) {
  auto listing = Listing::of(view);
  if (!listing) return std::nullopt;
  const auto copies = listing->copies();
  if (!copies ||
      saturating_mul(listing->work(), static_cast<int64_t>(copies->size())) > most_pieces)
    return std::nullopt;
  Exchanged most;
  for (const int64_t base : *copies) {
    listing->stand_at(base);
    Tally(view, *listing).count(most);
  }
  return most;
}

}  // namespace meshplan::verification
