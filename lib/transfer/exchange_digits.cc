// The aligned engine: counts of ranks and pieces as products over digits.
//
// Every digit position of the tensor has radix q and at most one controlling digit before (a) and after (b). The rank with coordinates x
// needs the source shards v with v_p = x_b where both control p, any v_p where only a does; each piece is the whole tensor over the product
// of the radices of all controlled positions. A pending digit that is reduced is one that only the source controls and that cuts no piece.
// The nearest holder of v is at the level of the outermost source digit where x_a differs from v; free digits up to that level make h
// holders.
#include "transfer/exchange_digits.h"

#include <algorithm>

#include "base/int_math.h"
#include "transfer/two_phases.h"

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
  // (receiver, piece) pairs that the nearest holders of one shard serve, before sharing among h of them: at most; and of shards that
  // match on every crossed position.
  std::array<int64_t, max_levels> served{};
  std::array<int64_t, max_levels> served_matched{};
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
  c.piece_bytes = p.total_bytes / saturating_mul(world.product(p.src), world.product(p.dst_only));
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
    c.served_matched[at] = reach - reach / world.product(here & ~forced & source);
    c.served[at] = crossed && mismatch_at(world, p, l, p.after, source) ? reach : c.served_matched[at];
    c.holders[at] = holders;
  }
  c.wire_bytes = saturating_mul(crossed ? upto : upto - 1, c.piece_bytes);
  return c;
}

ExchangeTraffic one_phase(const Counts& c, const DigitChange& p, int levels, ExchangeCut cut) {
  ExchangeTraffic out;
  out.wire_bytes = out.received[0] = c.wire_bytes;
  // A holder whose shard mismatches at some level serves nobody inside of it: what it would serve there lies nearer to other ranks.
  int64_t matched = 0;   // bytes that a holder of matching shards sends
  for (size_t l = static_cast<size_t>(levels); l-- > 0;) {
    const int64_t h = c.holders[l];
    auto sent_bytes = [&](int64_t served) {
      if (h == 1) return saturating_mul(served, c.piece_bytes);
      if (cut == ExchangeCut::whole) return saturating_mul(ceil_div(served, h), c.piece_bytes);
      return saturating_mul(served, c.piece_bytes / p.longest * ceil_div(p.longest, h));
    };
    const int64_t sent = sent_bytes(c.served[l]);
    out.sent_bytes = std::max(out.sent_bytes, saturating_add(matched, sent));
    matched = saturating_add(matched, sent_bytes(c.served_matched[l]));
    const bool shared = h > 1 && cut == ExchangeCut::even;
    const int64_t peers_in = shared ? saturating_mul(c.received[l], std::min(h, p.longest)) : c.received[l];
    const int64_t peers_out = h > 1 && cut == ExchangeCut::whole ? ceil_div(c.served[l], h) : c.served[l];
    out.phase[0].bytes[l] = std::max(saturating_mul(c.received[l], c.piece_bytes), sent);
    out.phase[0].peers[l] = std::max(peers_in, peers_out);
  }
  out.sent_bytes = std::max(out.sent_bytes, matched);
  // Holders take turns over all levels together: no product says who sends most over several levels in sum.
  int used = 0;
  bool turns = false;
  for (size_t l = 0; l < static_cast<size_t>(levels) && cut == ExchangeCut::whole; ++l) {
    used += c.served[l] > 0 ? 1 : 0;
    turns = turns || (c.served[l] > 0 && c.holders[l] > 1);
  }
  out.sent_is_known = used <= 1 || !turns;
  return out;
}

}  // namespace

ExchangeTraffic digits_one_phase(const DigitWorld& world, const DigitChange& change, int levels, ExchangeCut cut) {
  if (change.total_bytes == 0) return {};
  return one_phase(count(world, change, levels), change, levels, cut);
}

// Every unit looks alike, or positions are crossed by digits outside of units, and a unit either holds
// all that it wants or nothing of it. Every wanted box then misses equally many shards in each unit that
// fetches, and all pieces have one size, so near-equal runs of parts are runs of equal bytes.
std::optional<ExchangeTraffic> digits_two_phases(const DigitWorld& world, const DigitChange& p, int levels) {
  if (p.reduced != 0) return std::nullopt;
  if (p.total_bytes == 0) return ExchangeTraffic{};
  const DigitMask all = world.all() & ~p.kept;  // ranks that differ on what stays pending do not talk
  const DigitMask inside = world.at_level(0) & all;
  const DigitMask outside = all & ~inside;
  int outer = 0;  // the one level outside of units
  for (int l = 1; l < levels; ++l) {
    if ((world.at_level(l) & all) == 0) continue;
    if (outer != 0) return std::nullopt;
    outer = l;
  }
  const bool crossed = p.crossed > 0;
  for (size_t i = 0; i < static_cast<size_t>(p.crossed); ++i) {
    if (!has(outside, p.before[i]) || !has(outside, p.after[i])) return std::nullopt;
  }
  if (crossed && (p.src_only & outside) != 0) return std::nullopt;
  const DigitMask both = p.dst & ~p.dst_only;  // the target's digits at positions that the source cuts too
  const Counts c = count(world, p, levels);
  const int64_t members = world.product(inside);
  const int64_t boxes_wanted = world.product(p.dst & inside);
  const int64_t sharing = members / boxes_wanted;  // members that want one box
  const int64_t shards_met = world.product(p.src_only);
  const int64_t shards_inside = world.product(p.src_only & inside);
  const int64_t holders_inside = world.product(inside & ~p.src);
  if (p.longest % holders_inside != 0) return std::nullopt;

  // What the units that fetch miss, and how it is dealt.
  const int64_t missing = crossed ? shards_met : shards_met - shards_inside;  // for one wanted box
  int64_t run = 0;  // parts that a member fetches
  int64_t parts = 1;
  if (missing > 0) {
    const int64_t boxes = saturating_mul(missing, boxes_wanted);
    parts = parts_to_deal(boxes, members);
    if (p.longest % parts != 0 || saturating_mul(boxes, parts) % members != 0) return std::nullopt;
    run = boxes * parts / members;
  }
  const int64_t part_bytes = c.piece_bytes / parts;
  const int64_t fetched = saturating_mul(run, part_bytes);

  ExchangeTraffic out;
  const auto at = static_cast<size_t>(outer);
  // Units that hold what they want of crossed positions and, where there are crossed ones, those that do not.
  for (const bool matches : {true, false}) {
    if (!matches && !crossed) continue;
    const bool fetches = missing > 0 && matches != crossed;
    // Units that ask for one shard of such a unit, and the parts that they ask of one holder.
    const int64_t overlapping = world.product(outside & ~both);
    const int64_t asking = matches ? overlapping - world.product(outside & ~(p.src | both)) : overlapping;
    const int64_t asked = saturating_mul(saturating_mul(asking, world.product(p.dst_only & inside)), parts);
    const int64_t turns = missing > 0 ? ceil_div(asked, world.product(all & ~p.src)) : 0;
    const int64_t served = saturating_mul(turns, part_bytes);
    const int64_t got = fetches ? fetched : 0;
    out.phase[0].bytes[at] = std::max({out.phase[0].bytes[at], got, served});
    out.phase[0].peers[at] = std::max({out.phase[0].peers[at], fetches ? run : 0, turns});
    // Inside: the other shards of the unit that meet the box, and what others of the unit fetched of it.
    const bool from_holders = matches && shards_inside > 1;
    const int64_t rest = c.target_bytes - (matches ? c.piece_bytes : 0) - got;
    int64_t sent = saturating_mul(got, sharing - 1);
    if (from_holders) sent = saturating_add(sent, saturating_mul(c.served[0], c.piece_bytes / holders_inside));
    out.phase[1].bytes[0] = std::max({out.phase[1].bytes[0], rest, sent});
    int64_t peers = from_holders ? world.product(inside & ~both) - world.product(inside & ~p.src) : 0;
    if (fetches) {
      peers += sharing - 1;
      // Holders that want the same box are peers once.
      if (from_holders) peers -= world.product(inside & ~(both | p.dst)) - world.product(inside & ~(p.src | p.dst));
    }
    out.phase[1].peers[0] = std::max(out.phase[1].peers[0], peers);
    out.received[0] = std::max(out.received[0], got);
    out.received[1] = std::max(out.received[1], rest);
    out.wire_bytes = std::max(out.wire_bytes, got + rest);
    out.sent_bytes = std::max(out.sent_bytes, saturating_add(served, sent));
  }
  return out;
}

}  // namespace meshplan
