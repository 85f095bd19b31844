// exchanged_by_ranks of recount_exchange.h: one phase, every unit, every box wanted in it and every
// shard that the box meets. The ranks of a unit have the same nearest holders, so those that want
// one box receive the same from the same, but for what each holds itself.
#include <algorithm>
#include <span>
#include <tuple>

#include "base/int_math.h"
#include "verify/listing.h"
#include "verify/recount_exchange.h"
#include "verify/unit_holders.h"

namespace meshplan::verification {
namespace {

// A rank of the unit at hand, and what it wants of which class: ranks for which these are the same
// want one box, and talk.
struct Wanting {
  size_t kept = 0;
  size_t wanted = 0;
  const ListedRank* rank = nullptr;
  [[nodiscard]] bool shares(const Wanting& other) const {
    return kept == other.kept && wanted == other.wanted;
  }
};

// Per level, what a rank that holds nothing of its box receives.
struct Receives {
  std::array<int128, most_levels> bytes{};
  std::array<int64_t, most_levels> from{};
};

class Tally {
 public:
  Tally(const ExchangeView& view, const Listing& listing)
      : view_(view),
        listing_(listing),
        levels_(listing.units().levels()),
        holders_(listing),
        shards_(listing.shards()),
        sent_(levels_, std::vector<int128>(listing.places() + 1, 0)),
        to_(levels_, std::vector<int64_t>(listing.places() + 1, 0)) {}

  // Counts the ranks marked in `which`. False: more than `left` to look at, which is counted down.
  bool count(const std::vector<bool>& which, Exchanged& most, int64_t& left) {
    const std::vector<ListedRank>& ranks = listing_.ranks();
    for (size_t i = 0; i < ranks.size();) {
      const int64_t unit = ranks[i].id / listing_.units().ranks(0);
      wanting_.clear();
      holders_.enter(i);
      for (; i < ranks.size() && ranks[i].id / listing_.units().ranks(0) == unit; ++i) {
        --left;
        if (ranks[i].dst == nowhere || !which[i]) continue;
        wanting_.push_back({listing_.kept_at(ranks[i]), listing_.wanted_at(ranks[i]), &ranks[i]});
      }
      std::sort(wanting_.begin(), wanting_.end(), [](const Wanting& a, const Wanting& b) {
        return std::tie(a.kept, a.wanted, a.rank) < std::tie(b.kept, b.wanted, b.rank);
      });
      for (size_t begin = 0; begin < wanting_.size();) {
        size_t end = begin + 1;
        while (end < wanting_.size() && wanting_[end].shares(wanting_[begin])) ++end;
        count_sharing(std::span(wanting_).subspan(begin, end - begin), most, left);
        if (left < 0) return false;
        begin = end;
      }
      if (view_.whole_pieces) send_whole(left);
    }
    fold_sent(most);
    return true;
  }

 private:
  struct Shard {
    int64_t asked = 0;  // ranks so far that miss part of it
    // Of the box at hand: ranks that want it and hold the shard, what they keep, and from how many
    // others they would have it.
    int64_t owners = 0;
    int64_t own_bytes = 0;
    int64_t own_from = 0;
    // Of the unit at hand, whole pieces: ranks that ask, for so much each, and whether that is one.
    int64_t asking = 0;
    int64_t bytes = 0;
    bool alike = true;
    NearestHolders near;
  };
  // Ranks of the unit that want one box.
  void count_sharing(std::span<const Wanting> sharing, Exchanged& most, int64_t& left) {
    for (const Wanting& one : sharing) {
      if (one.rank->shard != nowhere) ++shards_[one.rank->shard].owners;
    }
    Receives all;
    listing_.each_part(*sharing.front().rank,
                       [&](size_t number, int64_t elements, int64_t longest) {
                         --left;
                         count_part(std::ssize(sharing), number, elements, longest, all);
                       });
    for (const Wanting& one : sharing) fold_received(*one.rank, all, most);
    for (const Wanting& one : sharing) {
      if (one.rank->shard == nowhere) continue;
      Shard& own = shards_[one.rank->shard];
      own.owners = own.own_bytes = own.own_from = 0;
    }
  }
  // What the box has of one shard.
  void count_part(int64_t wanting, size_t number, int64_t elements, int64_t longest,
                  Receives& all) {
    Shard& shard = shards_[number];
    const NearestHolders near = holders_.nearest(number);
    const int64_t bytes = elements * view_.element_bytes;
    const int64_t from = view_.whole_pieces ? 1 : std::min(near.count, longest);
    all.bytes[near.level] += bytes;
    all.from[near.level] += from;
    if (shard.owners > 0) {
      shard.own_bytes = bytes;
      shard.own_from = from;
    }
    const int64_t asking = wanting - shard.owners;
    if (asking == 0) return;
    if (view_.whole_pieces) {
      if (shard.asking == 0) asked_for_.push_back(number);
      shard.alike = shard.asking == 0 || (shard.alike && shard.bytes == bytes);
      shard.bytes = bytes;
      shard.asking += asking;
      shard.near = near;
    } else if (near.count == 1) {
      send(near, 0, 1, bytes, asking);
    } else {
      // `longer` of the holders send one slice more than the others.
      const int64_t slice = bytes / longest;
      const int64_t each = longest / near.count;
      const auto longer = static_cast<size_t>(longest % near.count);
      const auto holders = static_cast<size_t>(near.count);
      if (longer > 0) send(near, 0, longer, slice * (each + 1), asking);
      if (each > 0) send(near, longer, holders, slice * each, asking);
    }
  }
  // What the rank receives: all, but for what it holds.
  void fold_received(const ListedRank& rank, const Receives& box, Exchanged& most) const {
    int64_t all = 0;
    for (size_t l = 0; l < levels_; ++l) {
      int128 bytes = box.bytes[l];
      int64_t from = box.from[l];
      // A rank's own shard has a holder in its unit.
      if (l == 0 && rank.shard != nowhere) {
        bytes -= shards_[rank.shard].own_bytes;
        from -= shards_[rank.shard].own_from;
      }
      const int64_t received = bytes > INT64_MAX ? INT64_MAX : static_cast<int64_t>(bytes);
      all = saturating_add(all, received);
      most.traffic.bytes[l] = std::max(most.traffic.bytes[l], received);
      most.traffic.peers[l] = std::max(most.traffic.peers[l], from);
    }
    most.received = std::max(most.received, all);
  }

  // The ranks of the unit that miss part of a shard ask its nearest holders in turn.
  void send_whole(int64_t& left) {
    bool mixed = false;
    for (const size_t number : asked_for_) {
      Shard& shard = shards_[number];
      mixed = mixed || !shard.alike;
      if (!shard.alike) continue;
      const int64_t rounds = shard.asking / shard.near.count;
      const auto holders = static_cast<size_t>(shard.near.count);
      if (rounds > 0) send(shard.near, 0, holders, shard.bytes, rounds);
      const auto begin = static_cast<size_t>(shard.asked % shard.near.count);
      const size_t end = begin + static_cast<size_t>(shard.asking % shard.near.count);
      if (end > begin) send(shard.near, begin, std::min(end, holders), shard.bytes, 1);
      if (end > holders) send(shard.near, 0, end - holders, shard.bytes, 1);
      shard.asked += shard.asking;
    }
    if (mixed) send_in_order(left);
    for (const size_t number : asked_for_) {
      shards_[number].asking = 0;
      shards_[number].alike = true;
    }
    asked_for_.clear();
  }

  // Shards that are asked for in pieces of several sizes, rank by rank.
  void send_in_order(int64_t& left) {
    std::sort(wanting_.begin(), wanting_.end(),
              [](const Wanting& a, const Wanting& b) { return a.rank < b.rank; });
    for (const Wanting& one : wanting_) {
      listing_.each_part(*one.rank, [&](size_t number, int64_t elements, int64_t) {
        --left;
        Shard& shard = shards_[number];
        if (number == one.rank->shard || shard.asking == 0 || shard.alike) return;
        const auto holder = static_cast<size_t>(shard.asked++ % shard.near.count);
        send(shard.near, holder, holder + 1, elements * view_.element_bytes, 1);
      });
    }
  }

  // Each of the nearest holders from number `first` to `last` sends so much, in one message, to so
  // many: differences, summed up at the end.
  void send(const NearestHolders& near, size_t first, size_t last, int64_t bytes, int64_t times) {
    sent_[near.level][near.first + first] += int128{bytes} * times;
    sent_[near.level][near.first + last] -= int128{bytes} * times;
    to_[near.level][near.first + first] += times;
    to_[near.level][near.first + last] -= times;
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
  UnitHolders holders_;  // of the unit at hand
  std::vector<Shard> shards_;
  std::vector<Wanting> wanting_;   // of the unit at hand
  std::vector<size_t> asked_for_;  // shards that its ranks ask for
  // Per level and place; bytes are wide, as differences cannot be held at a most.
  std::vector<std::vector<int128>> sent_;
  std::vector<std::vector<int64_t>> to_;
};

}  // namespace

std::optional<Exchanged> exchanged_by_ranks(const ExchangeView& view) {
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
    if (static_cast<int64_t>(listing->shards()) > left) return std::nullopt;
    if (!Tally(view, *listing).count(listing->unlike_before(), most, left)) return std::nullopt;
  }
  return most;
}

}  // namespace meshplan::verification
