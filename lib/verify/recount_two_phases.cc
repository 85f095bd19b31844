// exchanged_in_two_phases of recount_exchange.h: unit by unit.
#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/int_math.h"
#include "verify/listing.h"
#include "verify/recount_exchange.h"
#include "verify/stages.h"
#include "verify/unit_holders.h"

namespace meshplan::verification {
namespace {

// Where a box that members want meets a shard that the unit misses.
struct Missing {
  size_t wanted = 0;  // which box of those that the unit wants, in the order of the first member
  size_t shard = 0;
  int64_t elements = 0;
  int64_t longest = 1;  // slices
  NearestHolders near;
};

// The same of a shard that members hold.
struct Inside {
  size_t shard = 0;
  int64_t bytes = 0;
  int64_t longest = 1;
  NearestHolders near;
};
// A box that members of a unit want.
struct WantedBox {
  int64_t shards = 0;  // that it meets
  std::vector<Inside> inside;
  std::vector<size_t> members;  // in rank order
};

// What one rank receives or sends in one phase.
struct RankTraffic {
  std::array<int64_t, most_levels> bytes{};
  std::array<int64_t, most_levels> peers{};
  [[nodiscard]] int64_t all() const {
    int64_t sum = 0;
    for (const int64_t b : bytes) sum = saturating_add(sum, b);
    return sum;
  }
};

class Phases {
 public:
  Phases(const ExchangeView& view, const Listing& listing)
      : view_(view), listing_(listing), holders_(listing), place_of_rank_(listing.ranks().size()) {
    for (size_t i = 0; i < place_of_rank_.size(); ++i) place_of_rank_[i] = listing.ranks()[i].place;
    rank_of_place_.resize(listing.places());
    for (size_t i = 0; i < place_of_rank_.size(); ++i) {
      if (listing.ranks()[i].src != nowhere) rank_of_place_[place_of_rank_[i]] = i;
    }
    for (auto* traffic : {&received_, &sent_}) {
      for (auto& phase : *traffic) phase.resize(listing.ranks().size());
    }
    turns_.assign(listing.units().levels(), std::vector<Turns>(listing.places()));
    listed_.ranks = listing.ranks().size();
  }

  // Counts the ranks marked in `which`. False: more than `left` pieces.
  bool count(const std::vector<bool>& which, int64_t left) {
    // Ranks that differ on what stays pending have nothing to do with one another: classes, each
    // with units of its own.
    std::map<size_t, std::vector<size_t>> classes;
    for (size_t i = 0; i < listing_.ranks().size(); ++i) {
      if (which[i]) classes[listing_.kept_at(listing_.ranks()[i])].push_back(i);
    }
    for (const auto& [kept, ranks] : classes) {
      for (size_t i = 0; i < ranks.size();) {
        const int64_t unit = unit_of(ranks[i]);
        std::vector<size_t> members;
        for (; i < ranks.size() && unit_of(ranks[i]) == unit; ++i) members.push_back(ranks[i]);
        left -= count_unit(members);
        if (left < 0) return false;
      }
    }
    return true;
  }

  void fold(TwoPhases& most) const {
    for (size_t i = 0; i < listing_.ranks().size(); ++i) {
      int64_t received = 0;
      int64_t sent = 0;
      for (size_t p = 0; p < 2; ++p) {
        const RankTraffic& in = received_[p][i];
        const RankTraffic& out = sent_[p][i];
        Exchanged& phase = most.phase[p];
        for (size_t l = 0; l < most_levels && view_.at_once == 0; ++l) {
          phase.traffic.bytes[l] = std::max({phase.traffic.bytes[l], in.bytes[l], out.bytes[l]});
          phase.traffic.peers[l] = std::max({phase.traffic.peers[l], in.peers[l], out.peers[l]});
        }
        phase.received = std::max(phase.received, in.all());
        phase.sent = std::max(phase.sent, out.all());
        received = saturating_add(received, in.all());
        sent = saturating_add(sent, out.all());
      }
      most.received = std::max(most.received, received);
      most.sent = std::max(most.sent, sent);
    }
  }

  // In shifts the traffic of the phases is that of the fullest chunk. There is one copy, across
  // meshes. False: too many changes.
  [[nodiscard]] bool put_in_stages(TwoPhases& most) const {
    const auto staged = traffic_in_stages(listed_, view_.at_once);
    if (!staged) return false;
    most.stages = staged->stages;
    for (size_t p = 0; p < 2; ++p) most.phase[p].traffic = staged->phase[p];
    return true;
  }

 private:
  [[nodiscard]] int64_t unit_of(size_t rank) const {
    return listing_.ranks()[rank].id / listing_.units().ranks(0);
  }

  // One unit, its members in rank order. Returns the pieces looked at.
  int64_t count_unit(const std::vector<size_t>& members) {
    int64_t pieces = 0;
    members_ = &members;
    holders_.enter(members.front());
    has_sent_.assign(members.size() * members.size(), 0);
    missing_.clear();
    boxes_.clear();
    targets_.clear();
    wants_.assign(members.size(), nowhere);
    std::map<size_t, size_t> known;  // places of wanted boxes in the order of their first member
    for (size_t m = 0; m < members.size(); ++m) {
      const ListedRank& rank = listing_.ranks()[members[m]];
      if (rank.dst == nowhere) continue;
      targets_.push_back(m);
      const size_t wanted = listing_.wanted_at(rank);
      auto at = known.find(wanted);
      if (at == known.end()) {
        if (!list_box(rank)) continue;  // it is empty
        at = known.emplace(wanted, boxes_.size() - 1).first;
      }
      wants_[m] = at->second;
      WantedBox& box = boxes_[at->second];
      box.members.push_back(m);
      pieces += box.shards;
      for (const Inside& part : box.inside) {
        if (part.shard == rank.shard) continue;
        pieces += std::min(part.near.count, part.longest);
        receive_inside(m, part);
      }
    }
    pieces += fetch_missing();
    fold_peers_inside();
    return pieces;
  }
  // What the box that the rank wants has of shards; false where it is empty.
  bool list_box(const ListedRank& rank) {
    WantedBox box;
    const size_t number = boxes_.size();
    listing_.each_part(rank, [&](size_t shard, int64_t elements, int64_t longest) {
      ++box.shards;
      const NearestHolders near = holders_.nearest(shard);
      if (near.level > 0) {
        missing_.push_back({number, shard, elements, longest, near});
      } else {
        box.inside.push_back({shard, elements * view_.element_bytes, longest, near});
      }
    });
    if (box.shards == 0) return false;
    boxes_.push_back(std::move(box));
    return true;
  }

  // By the even cut from the members of the unit that hold the shard.
  void receive_inside(size_t member, const Inside& part) {
    const int64_t slice = part.bytes / part.longest;
    const int64_t senders = part.near.count;
    for (int64_t i = 0; i < std::min(senders, part.longest); ++i) {
      const int64_t length = part.longest / senders + (i < part.longest % senders ? 1 : 0);
      const size_t from = rank_of_place_[part.near.first + static_cast<size_t>(i)];
      send_inside(number_of(from), member, slice * length);
      if (view_.at_once > 0) listed_.held.push_back({from, (*members_)[member], slice * length});
    }
  }

  // What the unit misses, wanted box by wanted box: the members that want the box share what is
  // missing of it; or all at once, which all share.
  int64_t fetch_missing() {
    std::sort(missing_.begin(), missing_.end(), [&](const Missing& a, const Missing& b) {
      if (a.wanted != b.wanted) return a.wanted < b.wanted;
      return listing_.first_holder(a.shard) < listing_.first_holder(b.shard);
    });
    int64_t pieces = 0;
    fetched_bytes_.assign(members_->size(), 0);
    if (view_.at_once > 0) list_wanting();
    if (view_.fetched_by_all) {
      pieces += share_among_all();
    } else {
      for (size_t begin = 0; begin < missing_.size();) {
        size_t end = begin;
        while (end < missing_.size() && missing_[end].wanted == missing_[begin].wanted) ++end;
        const WantedBox& box = boxes_[missing_[begin].wanted];
        pieces += share_out({missing_.data() + begin, end - begin}, box.members);
        pass_on(missing_[begin].wanted);
        begin = end;
      }
    }
    fold_peers_outside();
    return pieces;
  }

  // In shifts: as ranks, of all units.
  void list_wanting() {
    first_wanting_ = listed_.wanting.size();
    for (const WantedBox& box : boxes_) {
      std::vector<size_t>& ranks = listed_.wanting.emplace_back();
      for (const size_t m : box.members) ranks.push_back((*members_)[m]);
    }
  }

  // What is missing in all, slice by slice: every target has its stretch of elements in each lap.
  int64_t share_among_all() {
    int128 all = 0;
    for (const Missing& box : missing_) all += box.elements;
    const int64_t k = std::ssize(targets_) * view_.laps;
    int64_t pieces = 0;
    int128 begins = 0;  // where the box at hand begins
    for (size_t i = 0; i < missing_.size(); ++i) {
      const Missing& box = missing_[i];
      const int64_t slice = box.elements / box.longest;
      // The slice in which the j-th stretch begins.
      const auto start = [&](int64_t j) {
        const int128 at = all * j / k - begins;
        if (at <= 0) return int64_t{0};
        const int64_t down = static_cast<int64_t>(std::min(at / slice, int128{box.longest}));
        // No stretch has less than a 256th of an even one of a box that it shares.
        if (down == box.longest) return down;
        if (int128{down} * slice * k * 256 < all) return int64_t{0};
        return int128{box.longest - down} * slice * k * 256 < all ? box.longest : down;
      };
      for (auto j = static_cast<int64_t>(begins * k / all); j < k && start(j) < box.longest; ++j) {
        const int64_t slices = (j + 1 == k ? box.longest : start(j + 1)) - start(j);
        if (slices == 0) continue;
        fetch_part(targets_[static_cast<size_t>(j % std::ssize(targets_))], box, 0,
                   slices * slice * view_.element_bytes);
        pieces += std::ssize(boxes_[box.wanted].members);
      }
      begins += box.elements;
      if (i + 1 == missing_.size() || missing_[i + 1].wanted != box.wanted) pass_on(box.wanted);
    }
    return pieces;
  }

  // The parts of what is missing of one wanted box, in order: every fetcher has a stretch of them.
  int64_t share_out(std::span<const Missing> missing, const std::vector<size_t>& fetchers) {
    const auto boxes = std::ssize(missing);
    const auto k = std::ssize(fetchers);
    const int64_t parts = parts_of_missing(boxes, k) * view_.laps;
    const int64_t all = boxes * parts;
    int64_t pieces = 0;
    for (int64_t i = 0; i < all; ++i) {
      const Missing& box = missing[i % boxes];
      const int64_t slices = box.longest / parts + (i / boxes < box.longest % parts ? 1 : 0);
      if (slices == 0) continue;
      // The j for which floor(j all / k) <= i < floor((j + 1) all / k).
      const int64_t fetcher = ((i + 1) * k - 1) / all;
      const int64_t bytes = box.elements / box.longest * slices * view_.element_bytes;
      fetch_part(fetchers[fetcher], box, parts, bytes);
      pieces += k;
    }
    return pieces;
  }

  // One piece of the box, from the holder whose turn it is to the member. `parts` 0: all fetch.
  void fetch_part(size_t member, const Missing& box, int64_t parts, int64_t bytes) {
    const size_t to = (*members_)[member];
    const NearestHolders& near = box.near;
    const size_t from = rank_of_place_[near.first + place_asked(near, parts, bytes)];
    add(received_[0][to], near.level, bytes);
    add(sent_[0][from], near.level, bytes);
    if (fetched_.empty() || fetched_.back() != std::tuple(from, to, near.level))
      fetched_.push_back({from, to, near.level});
    if (view_.at_once > 0)
      listed_.fetched.push_back({from, to, near.level, bytes, first_wanting_ + box.wanted});
    if (std::exchange(fetched_bytes_[member], fetched_bytes_[member] + bytes) == 0)
      fetchers_.push_back(member);
  }
  // What was fetched of a box, from each that fetched some to the others that want it.
  void pass_on(size_t wanted) {
    const std::vector<size_t>& wanting = boxes_[wanted].members;
    int128 all = 0;
    for (const size_t m : fetchers_) all += fetched_bytes_[m];
    for (const size_t m : wanting) {
      add(received_[1][(*members_)[m]], 0, at_most(all - fetched_bytes_[m]));
      for (const size_t f : fetchers_) {
        if (f != m) has_sent_[m * members_->size() + f] = 1;
      }
    }
    for (const size_t f : fetchers_) {
      const int64_t others = std::ssize(wanting) - (wants_[f] == wanted ? 1 : 0);
      add(sent_[1][(*members_)[f]], 0, at_most(fetched_bytes_[f] * others));
      fetched_bytes_[f] = 0;
    }
    fetchers_.clear();
  }

  // Among the nearest holders: by turns, or where all fetch the one that was asked for least.
  size_t place_asked(const NearestHolders& near, int64_t parts, int64_t bytes) {
    if (parts > 0) return static_cast<size_t>(turn_of(near, parts)++ % near.count);
    auto& asked = asked_for_[{near.level, near.first}];
    for (auto i = std::ssize(asked); i < near.count; ++i) asked.emplace(0, i);
    const auto [before, place] = *asked.begin();
    asked.erase(asked.begin());
    asked.emplace(saturating_add(before, bytes), place);
    return static_cast<size_t>(place);
  }

  int64_t& turn_of(const NearestHolders& near, int64_t parts) {
    Turns& turns = turns_[near.level][near.first];
    for (auto& [cut_into, asked] : turns) {
      if (cut_into == parts) return asked;
    }
    return turns.emplace_back(parts, 0).second;
  }

  // Of a member's rank in the unit.
  [[nodiscard]] size_t number_of(size_t rank) const {
    return static_cast<size_t>(std::lower_bound(members_->begin(), members_->end(), rank) -
                               members_->begin());
  }
  // In the second phase, from a member to another, by their numbers in the unit.
  void send_inside(size_t sender, size_t member, int64_t bytes) {
    add(received_[1][(*members_)[member]], 0, bytes);
    add(sent_[1][(*members_)[sender]], 0, bytes);
    has_sent_[member * members_->size() + sender] = 1;
  }

  [[nodiscard]] static int64_t at_most(int128 bytes) {
    return static_cast<int64_t>(std::min(bytes, int128{INT64_MAX}));
  }
  static void add(RankTraffic& traffic, size_t level, int64_t bytes) {
    traffic.bytes[level] = saturating_add(traffic.bytes[level], bytes);
  }

  // Several pieces from one rank to another are one peer.
  void fold_peers_inside() {
    const size_t k = members_->size();
    for (size_t to = 0; to < k; ++to) {
      for (size_t from = 0; from < k; ++from) {
        received_[1][(*members_)[to]].peers[0] += has_sent_[to * k + from];
        sent_[1][(*members_)[from]].peers[0] += has_sent_[to * k + from];
      }
    }
  }
  void fold_peers_outside() {
    std::sort(fetched_.begin(), fetched_.end());
    fetched_.erase(std::unique(fetched_.begin(), fetched_.end()), fetched_.end());
    for (const auto& [from, to, level] : fetched_) {
      ++received_[0][to].peers[level];
      ++sent_[0][from].peers[level];
    }
    fetched_.clear();
  }

  const ExchangeView& view_;
  const Listing& listing_;
  UnitHolders holders_;
  std::vector<size_t> place_of_rank_;
  std::vector<size_t> rank_of_place_;
  std::array<std::vector<RankTraffic>, 2> received_;  // per phase and rank
  std::array<std::vector<RankTraffic>, 2> sent_;
  // Per level and first place of a set of nearest holders: of parts of boxes that are cut into so
  // many, how many were asked of it so far.
  using Turns = std::vector<std::pair<int64_t, int64_t>>;
  std::vector<std::vector<Turns>> turns_;
  // Where all fetch, by level and first place: the bytes that each holder was asked for, and which.
  std::map<std::pair<size_t, size_t>, std::set<std::pair<int64_t, int64_t>>> asked_for_;
  ListedPhases listed_;  // in shifts
  // Of the unit at hand.
  const std::vector<size_t>* members_ = nullptr;
  std::vector<size_t> targets_;                              // members on the target's mesh
  std::vector<WantedBox> boxes_;                             // in the order of their first member
  std::vector<size_t> wants_;                                // by member: which of them
  std::vector<Missing> missing_;                             // by box, then by shard
  std::vector<int128> fetched_bytes_;                        // of the box at hand, by member
  std::vector<size_t> fetchers_;                             // that fetched some of it
  size_t first_wanting_ = 0;                                 // of the unit, in listed_.wanting
  std::vector<int8_t> has_sent_;                             // receiver-major: whether it receives
  std::vector<std::tuple<size_t, size_t, size_t>> fetched_;  // from, to, level
};

}  // namespace

std::optional<TwoPhases> exchanged_in_two_phases(const ExchangeView& view) {
  auto listing = Listing::of(view);
  if (!listing) return std::nullopt;
  const auto copies = listing->copies();
  if (!copies) return std::nullopt;
  TwoPhases most;
  int64_t left = most_pieces;
  for (const int64_t base : *copies) {
    listing->list_copy(base);
    if (listing->work() > left) return std::nullopt;
    Phases phases(view, *listing);
    // Where all fetch, they do so for ranks of other classes too.
    const std::vector<bool> which = view.fetched_by_all
                                        ? std::vector<bool>(listing->ranks().size(), true)
                                        : listing->unlike_before();
    if (!phases.count(which, left)) return std::nullopt;
    left -= listing->work();
    phases.fold(most);
    if (view.at_once > 0 && !phases.put_in_stages(most)) return std::nullopt;
  }
  return most;
}

}  // namespace meshplan::verification
