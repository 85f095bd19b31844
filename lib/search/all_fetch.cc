#include "search/all_fetch.h"

#include <algorithm>

#include "base/int_math.h"
#include "cost/collective_time.h"
#include "cost/pipeline.h"
#include "search/search_state.h"

namespace meshplan {

bool members_miss_unevenly(const DigitWorld& world, const DigitChange& change) {
  bool unevenly = false;
  for (size_t i = 0; i < as_index(change.crossed); ++i) {
    if (world.level(change.before[i]) == 0) continue;
    if (world.level(change.after[i]) > 0) return false;
    unevenly = true;
  }
  return unevenly;
}

namespace {

// What some rank moves at least, in bytes and from or to how many others, of an exchange whose
// members miss unevenly.
class AllFetch {
 public:
  struct Moved {
    int64_t bytes = 0;
    int64_t peers = 1;
  };

  AllFetch(const DigitWorld& world, const DigitChange& change, int64_t element)
      : world_(world), change_(change), outer_(world.all() & ~world.at_level(0)) {
    for (size_t i = 0; i < as_index(change.crossed); ++i) {
      crossed_before_ |= DigitMask{1} << change.before[i];
      crossed_after_ |= DigitMask{1} << change.after[i];
    }
    box_ = floor_div(change.total_bytes, world.product(change.dst));
    piece_ = floor_div(box_, world.product(change.src_only));
    slice_ = ceil_div(piece_, change.longest) + element;
    held_in_ = world.product((crossed_before_ | change.src_only) & outer_);
    const int64_t sharing = world.product(world.at_level(0) & ~change.dst);
    share_ = ceil_div(box_ - floor_div(box_, held_in_), sharing);
  }

  // Over links outside of units. Each shard that a unit misses comes to some member, and the first
  // member's share begins with what is missed of one box, every piece of which has a holder of its
  // own.
  [[nodiscard]] Moved outside() const {
    const DigitMask placed = change_.dst & outer_ & ~change_.dst_only;  // that cut shards, too
    const int64_t shards = floor_div(world_.product(change_.src), world_.product(placed));
    const int64_t missed = shards - floor_div(shards, held_in_);
    const int64_t some = box_ - floor_div(box_, world_.product(change_.src_only & outer_));
    const int64_t of_first = std::min(share_ - share_ / 128 - slice_, some > 0 ? some : box_);
    const Moved sent = sent_by_holders(placed);
    return {std::max(share_, sent.bytes),
            std::max({sent.peers, ceil_div(missed, world_.product(world_.at_level(0))),
                      ceil_div(of_first, piece_)})};
  }

  // Inside of a unit. Some member misses all of its box, and fetches no more of it than a share,
  // which is at most a slice and a 128th above the even one; so do those that it gets the rest of.
  [[nodiscard]] Moved inside() const {
    const int64_t share = share_ + share_ / 64 + slice_;
    return {std::max<int64_t>(0, box_ - share), std::max<int64_t>(1, ceil_div(box_, share) - 1)};
  }

 private:
  // Of the shard that most units fetch. `placed` digits tell where units lie that want part of it,
  // those before it where units lie that hold it: no unit does both for some shard where one digit
  // is in two places.
  [[nodiscard]] Moved sent_by_holders(DigitMask placed) const {
    const int64_t wanting = world_.product(outer_ & ~placed);
    const bool apart = (crossed_after_ & outer_ & change_.src) != 0;
    const int64_t near = apart ? 0 : world_.product(outer_ & ~(placed | change_.src));
    const int64_t holders = world_.product(world_.all() & ~change_.src);
    const int64_t boxes = world_.product(change_.dst_only & world_.at_level(0));  // of each unit
    const int64_t bytes = saturating_mul(saturating_mul(wanting - near, boxes), piece_);
    return {ceil_div(bytes, holders), std::max<int64_t>(1, ceil_div(wanting - near, holders))};
  }

  const DigitWorld& world_;
  const DigitChange& change_;
  DigitMask outer_;
  DigitMask crossed_before_ = 0;
  DigitMask crossed_after_ = 0;
  int64_t box_ = 0;      // that a member wants
  int64_t piece_ = 0;    // of one shard in it
  int64_t slice_ = 0;    // of a piece along its longest side, and what rounding leaves
  int64_t held_in_ = 1;  // of so many equal parts of what members want their unit holds one
  int64_t share_ = 0;    // even, of what a unit misses
};

// Those of all outer levels as one's.
TopologyLevel links_outside(const Topology& topology) {
  TopologyLevel links = topology.levels[1];
  if (topology.levels.size() == 2) return links;
  links.mb_per_s = exchange_mb_per_s(links);
  links.exchange_percent = 100;
  links.peer_mb_per_s = 0;
  for (size_t l = 2; l < topology.levels.size(); ++l) {
    const TopologyLevel& level = topology.levels[l];
    links.latency_ns = std::min(links.latency_ns, level.latency_ns);
    links.per_peer_ns = std::min(links.per_peer_ns, level.per_peer_ns);
    links.mb_per_s = saturating_add(links.mb_per_s, exchange_mb_per_s(level));
  }
  return links;
}

PhaseTime time_over(const TopologyLevel& links, const AllFetch::Moved& moved) {
  if (moved.bytes == 0) return {};
  const int64_t ns =
      saturating_add(links.latency_ns, saturating_mul(moved.peers, links.per_peer_ns));
  return {saturating_mul(ns, 1000), least_transfer_ps(links, moved.bytes, 1, moved.peers)};
}

}  // namespace

int64_t all_fetch_floor_ps(const PlanProblem& p, const DigitChange& change) {
  if (!members_miss_unevenly(p.world, change)) return INT64_MAX;
  const AllFetch all(p.world, change, p.element);
  const PhaseTime fetch = time_over(links_outside(*p.topology), all.outside());
  const PhaseTime share_out = time_over(p.topology->levels.front(), all.inside());
  return pipelined_ps(fetch, share_out, best_chunks(fetch, share_out));
}

}  // namespace meshplan
