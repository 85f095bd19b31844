// exchanged_with_far_share of recount_exchange.h: every rank, and every piece that it misses.
#include <algorithm>

#include "base/int_math.h"
#include "verify/listing.h"
#include "verify/recount_exchange.h"

namespace meshplan::verification {
namespace {

class FarTally {
 public:
  FarTally(const ExchangeView& view, const Listing& listing)
      : view_(view),
        listing_(listing),
        asked_(listing.shards(), 0),
        sent_(listing.places()),
        to_(listing.places()) {}

  // False: more than `left` to look at, which is counted down.
  bool count(Exchanged& most, int64_t& left) {
    for (const ListedRank& rank : listing_.ranks()) {
      if (--left < 0) return false;
      if (rank.dst == nowhere) continue;
      received_.fill(0);
      from_.fill(0);
      listing_.each_part(rank, [&](size_t shard, int64_t elements, int64_t longest) {
        --left;
        if (shard != rank.shard) take(rank, shard, elements / longest, longest);
      });
      fold(received_, from_, most.received, most.traffic);
    }
    for (size_t place = 0; place < listing_.places(); ++place)
      fold(sent_[place], to_[place], most.sent, most.traffic);
    return true;
  }

 private:
  using PerLevel = std::array<int64_t, most_levels>;

  // A piece of so many slices.
  void take(const ListedRank& rank, size_t shard, int64_t slice, int64_t longest) {
    const Listing::UnitsOf units = listing_.units_of(rank.id);
    const NearestHolders near = listing_.nearest(shard, units);
    NearestHolders wide = near;
    for (size_t l = 1; near.level == 0 && l < listing_.units().levels(); ++l) {
      wide = listing_.inside(shard, units, l);
      if (wide.count > near.count) break;
    }
    const int64_t others = wide.count - near.count;
    const int64_t turn = asked_[shard]++;
    int64_t far = 0;
    if (others > 0) far = static_cast<int64_t>(int128{longest} * view_.far_64ths / 64);
    const int64_t bytes = slice * view_.element_bytes;
    spread(near.count, longest - far, [&](int64_t i, int64_t slices) {
      move(near.first + static_cast<size_t>(i), near.level, bytes * slices);
    });
    spread(std::min<int64_t>(others, 2), far, [&](int64_t i, int64_t slices) {
      auto place = wide.first + static_cast<size_t>((2 * turn + i) % others);
      if (place >= near.first) place += static_cast<size_t>(near.count);
      move(place, wide.level, bytes * slices);
    });
  }

  // Calls visit(i, slices of the i-th) for parts of at least a slice, the longer ones first.
  template <class Visit>
  static void spread(int64_t parts, int64_t slices, Visit visit) {
    for (int64_t i = 0; i < parts && i < slices; ++i) visit(i, (slices - i + parts - 1) / parts);
  }

  void move(size_t place, size_t level, int64_t bytes) {
    received_[level] = saturating_add(received_[level], bytes);
    sent_[place][level] = saturating_add(sent_[place][level], bytes);
    ++from_[level];
    ++to_[place][level];
  }

  static void fold(const PerLevel& bytes, const PerLevel& peers, int64_t& most_of_all,
                   LevelTraffic& traffic) {
    int64_t all = 0;
    for (size_t l = 0; l < most_levels; ++l) {
      all = saturating_add(all, bytes[l]);
      traffic.bytes[l] = std::max(traffic.bytes[l], bytes[l]);
      traffic.peers[l] = std::max(traffic.peers[l], peers[l]);
    }
    most_of_all = std::max(most_of_all, all);
  }

  const ExchangeView& view_;
  const Listing& listing_;
  std::vector<int64_t> asked_;  // by shard: ranks so far that miss part of it
  std::vector<PerLevel> sent_;  // by place
  std::vector<PerLevel> to_;    // ranks that get something of it
  // Of the rank at hand.
  PerLevel received_{};
  PerLevel from_{};
};

}  // namespace

std::optional<Exchanged> exchanged_with_far_share(const ExchangeView& view) {
  if (mesh_size(*view.src_mesh) >= most_looked_at || mesh_size(*view.dst_mesh) >= most_looked_at)
    return std::nullopt;
  auto listing = Listing::of(view);
  if (!listing) return std::nullopt;
  const auto copies = listing->copies();
  if (!copies) return std::nullopt;
  int64_t left = most_looked_at;
  Exchanged most;
  for (const int64_t base : *copies) {
    listing->list_copy(base);
    if (!FarTally(view, *listing).count(most, left)) return std::nullopt;
  }
  return most;
}

}  // namespace meshplan::verification
