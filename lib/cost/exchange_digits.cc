// The aligned engine: counts of ranks and pieces as products over digits.
//
// Every digit position of the tensor has radix q and at most one controlling digit before (a) and after (b). The rank with coordinates x
// needs the source shards v with v_p = x_b where both control p, any v_p where only a does; each piece is the whole tensor over the product
// of the radices of all controlled positions. A pending digit that is reduced is one that only the source controls and that cuts no piece.
// The nearest holder of v is at the level of the outermost source digit where x_a differs from v; free digits up to that level make h
// holders.
#include <algorithm>

#include "base/int_math.h"
#include "cost/exchange.h"

namespace meshplan {
namespace {

bool has(DigitMask set, int digit) { return (set >> digit & 1) != 0; }

// Digits joined by "must be equal". Only those that a crossed position names are looked at.
class Joined {
 public:
  explicit Joined(const DigitChange& p) {
    for (int i = 0; i < p.crossed; ++i) {
      const auto at = static_cast<size_t>(i);
      root_[static_cast<size_t>(p.before[at])] = p.before[at];
      root_[static_cast<size_t>(p.after[at])] = p.after[at];
    }
  }
  int find(int i) {
    while (root_[static_cast<size_t>(i)] != i) i = root_[static_cast<size_t>(i)];
    return i;
  }
  void join(int a, int b) { root_[static_cast<size_t>(find(a))] = static_cast<int8_t>(find(b)); }

 private:
  std::array<int8_t, max_digits> root_;
};

struct Counts {
  int64_t piece_bytes = 0;
  int64_t target_bytes = 0;
  int64_t wire_bytes = 0;
  std::array<int64_t, max_levels> received{};  // pieces
  std::array<int64_t, max_levels> served{};  // (receiver, piece) pairs that one shard's holder groups serve, before sharing among h holders
  std::array<int64_t, max_levels> holders{};  // h
};

// Whether coordinates exist with every crossed position of level above `l` (by the digit `side` of it) matched and one at exactly l not.
bool mismatch_at(const DigitWorld& world, const DigitChange& p, int l, const std::array<int8_t, max_digits>& side,
                 DigitMask must_be_source) {
  Joined joined(p);
  for (size_t i = 0; i < static_cast<size_t>(p.crossed); ++i) {
    if (world.level(side[i]) > l) joined.join(p.before[i], p.after[i]);
  }
  for (size_t i = 0; i < static_cast<size_t>(p.crossed); ++i) {
    if (world.level(side[i]) != l || (must_be_source != 0 && !has(must_be_source, p.after[i]))) continue;
    if (joined.find(p.before[i]) != joined.find(p.after[i])) return true;
  }
  return false;
}

Counts count(const DigitWorld& world, const DigitChange& p, int levels) {
  Counts c;
  const bool crossed = p.crossed > 0;
  const DigitMask any = p.src_only | p.reduced;             // what only the source controls
  const DigitMask forced = p.kept | (p.dst & ~p.dst_only);  // what a receiver's wish fixes
  const DigitMask source = p.src | p.reduced | p.kept;
  c.piece_bytes = p.total_bytes / (world.product(p.src) * world.product(p.dst_only));
  c.target_bytes = p.total_bytes / world.product(p.dst);
  int64_t upto = 1;  // product of `any` up to the level below
  int64_t holders = 1;
  int64_t reach = 1;  // unforced digits up to the level below
  for (int l = 0; l < levels; ++l) {
    const auto at = static_cast<size_t>(l);
    const DigitMask here = world.at_level(l);
    const int64_t below = upto;
    upto *= world.product(any & here);
    c.received[at] = crossed && mismatch_at(world, p, l, p.before, 0) ? upto : upto - below;
    holders *= world.product(here & ~source);
    reach *= world.product(here & ~forced);
    c.served[at] = crossed && mismatch_at(world, p, l, p.after, source) ? reach : reach - reach / world.product(here & ~forced & source);
    c.holders[at] = holders;
  }
  c.wire_bytes = saturating_mul(crossed ? upto : upto - 1, c.piece_bytes);
  return c;
}

ExchangeCost one_phase(const Topology& topology, const DigitChange& p, const Counts& c, bool whole, int64_t copied) {
  ExchangeCost cost;
  cost.whole_pieces = whole;
  cost.wire_bytes = c.wire_bytes;
  for (size_t l = 0; l < topology.levels.size(); ++l) {
    int64_t h = c.holders[l];
    int64_t sent = 0;
    int64_t peers_in = c.received[l];
    int64_t peers_out = c.served[l];
    if (h == 1) {
      sent = saturating_mul(c.served[l], c.piece_bytes);
    } else if (whole) {
      peers_out = ceil_div(c.served[l], h);
      sent = saturating_mul(peers_out, c.piece_bytes);
    } else {
      int64_t parts = std::min(h, p.longest);
      sent = saturating_mul(c.served[l], c.piece_bytes / p.longest * ceil_div(p.longest, h));
      peers_in = c.received[l] * parts;
    }
    cost.sent_bytes = saturating_add(cost.sent_bytes, sent);
    cost.traffic.bytes[l] = std::max(saturating_mul(c.received[l], c.piece_bytes), sent);
    cost.traffic.peers[l] = std::max(peers_in, peers_out);
  }
  cost.predicted_ps = traffic_ps(topology, cost.traffic, true, copied);
  return cost;
}

// Each unit of level 0 fetches what none of its members holds once, spread over its members, then they exchange inside. Units and ranks
// differ in what they miss by which crossed positions (both ends control, with different atoms) they mismatch; each kind of rank that can
// exist counts.
ExchangeCost two_phases(const Topology& topology, const DigitWorld& world, const DigitChange& p, const Counts& c) {
  ExchangeCost cost;
  const DigitMask inside = world.at_level(0);
  const DigitMask outside = world.all() & ~inside;
  const int64_t ranks_inside = world.product(inside);
  bool outer_crossed = false;
  DigitMask held = p.src_only & outside;  // source digits outside of the unit at positions that no outside digit of the target cuts
  DigitMask wanted = p.src & ~outside;    // source digits at such positions, on any level
  Joined matched(p);                      // crossed positions between digits outside of the unit
  for (size_t i = 0; i < static_cast<size_t>(p.crossed); ++i) {
    const int a = p.before[i];
    const int b = p.after[i];
    if (!has(outside, a) && has(outside, b)) wanted &= ~(DigitMask{1} << a);
    if (!has(outside, a)) continue;
    if (has(outside, b)) {
      outer_crossed = true;
      matched.join(a, b);
    } else {
      held |= DigitMask{1} << a;
    }
  }
  wanted |= held;
  bool crossed_into = false;  // a rank can want what is outside although its unit mismatches nowhere
  for (size_t i = 0; i < static_cast<size_t>(p.crossed); ++i) {
    crossed_into =
        crossed_into || (has(outside, p.before[i]) && !has(outside, p.after[i]) && matched.find(p.before[i]) != matched.find(p.after[i]));
  }
  const bool crossed_inside = mismatch_at(world, p, 0, p.before, 0);
  int outermost = 0;
  for (size_t l = 1; l < topology.levels.size(); ++l) {
    if ((p.src & world.at_level(static_cast<int>(l))) != 0) outermost = static_cast<int>(l);
  }
  const int64_t union_parts = world.product(p.dst & outside);  // cuts of the tensor that the unit's target union has
  const int64_t held_parts = world.product(held);              // further cuts of it by source digits outside of the unit
  const int64_t source_parts = world.product(p.src_only);      // cuts by positions that only the source controls
  const int64_t outer_source_parts = world.product(p.src_only & outside);
  // Pending digits inside the unit: each coordinate holds values of its own.
  const int64_t values_inside = world.product(p.kept & inside);
  const int64_t wanted_pieces = world.product(wanted) * values_inside;  // source shards that meet the union
  const int64_t union_bytes = saturating_mul(p.total_bytes / union_parts, values_inside);
  const int64_t target = c.target_bytes;
  const int64_t least = ceil_div(union_bytes - union_bytes / held_parts, ranks_inside);  // fetched by a member of a unit without mismatch
  const int64_t most = outer_crossed ? ceil_div(union_bytes, ranks_inside) : least;
  const int64_t abroad = target - target / outer_source_parts;  // of the target, what no member of the unit need hold
  int64_t rest = target - target / source_parts - std::min(least, abroad);
  if (crossed_inside) rest = std::max(rest, target - std::min(least, abroad));
  if (crossed_into) rest = std::max(rest, target - std::min(least, target));
  cost.wire_bytes = least + rest;
  if (outer_crossed) {
    int64_t after_most = target - std::min(most, target);
    rest = std::max(rest, after_most);
    cost.wire_bytes = std::max(cost.wire_bytes, most + after_most);
  }
  auto out = static_cast<size_t>(outermost);
  if (most > 0) {
    cost.traffic.bytes[out] = most;
    cost.traffic.peers[out] = ceil_div(outer_crossed ? wanted_pieces : wanted_pieces - wanted_pieces / held_parts, ranks_inside);
  }
  if (rest > 0) {
    cost.inner.bytes[0] = rest;
    cost.inner.peers[0] = ranks_inside - 1;
  }
  cost.sent_bytes = cost.wire_bytes;
  cost.predicted_ps = saturating_add(traffic_ps(topology, cost.traffic, true, 2 * most), traffic_ps(topology, cost.inner, true, 2 * rest));
  return cost;
}

}  // namespace

namespace {

ExchangeCost price_by_levels(const Topology& topology, const DigitWorld& world, const DigitChange& change, int phases,
                             std::optional<bool> whole_pieces) {
  const int levels = static_cast<int>(topology.levels.size());
  Counts c = count(world, change, levels);
  if (phases == 2) return two_phases(topology, world, change, c);
  int64_t copied = saturating_mul(2, c.wire_bytes);
  if (whole_pieces) return one_phase(topology, change, c, *whole_pieces, copied);
  ExchangeCost cut = one_phase(topology, change, c, false, copied);
  bool shared = false;
  for (int l = 0; l < levels; ++l) shared = shared || (c.holders[static_cast<size_t>(l)] > 1 && c.received[static_cast<size_t>(l)] > 0);
  if (!shared) return cut;
  ExchangeCost whole = one_phase(topology, change, c, true, copied);
  return whole.predicted_ps < cut.predicted_ps ? whole : cut;
}

}  // namespace

ExchangeCost price_digits(const Topology& topology, const DigitWorld& world, const DigitChange& change, int phases,
                          std::optional<bool> whole_pieces) {
  ExchangeCost cost = price_by_levels(topology, world, change, phases, whole_pieces);
  if (has_finer_tiers(topology)) {
    cost.least = same_boxes(topology, world, change);
    cost.predicted_ps = std::max(cost.predicted_ps, cost.least.price.ps);
  }
  return cost;
}

}  // namespace meshplan
