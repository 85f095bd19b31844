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
  // Holders take turns over all levels together: what is asked on inner levels shifts the turns on outer ones, unless it is a whole
  // number of rounds; and no product says who sends most over several levels in sum.
  for (size_t l = 0; l < static_cast<size_t>(levels) && cut == ExchangeCut::whole; ++l) {
    if (c.served[l] == 0) continue;
    for (size_t other = 0; other < static_cast<size_t>(levels); ++other) {
      if (other == l || (c.served[other] == 0 && c.served_matched[other] == 0)) continue;
      if (c.holders[l] > 1 || c.holders[other] > 1) out.sent_is_known = false;
      const bool rounds = c.served[other] % c.holders[l] == 0 && c.served_matched[other] % c.holders[l] == 0;
      if (other < l && !rounds) out.exact = false;
    }
  }
  return out;
}

}  // namespace

ExchangeTraffic digits_one_phase(const DigitWorld& world, const DigitChange& change, int levels, ExchangeCut cut) {
  if (change.total_bytes == 0) return {};
  return one_phase(count(world, change, levels), change, levels, cut);
}

ExchangeTraffic digits_whole_pieces(const DigitWorld& world, const DigitChange& change, int levels, const MostTurns& turns) {
  if (change.total_bytes == 0) return {};
  const Counts c = count(world, change, levels);
  ExchangeTraffic out;
  out.wire_bytes = out.received[0] = c.wire_bytes;
  out.sent_bytes = saturating_mul(turns.in_all, c.piece_bytes);
  for (size_t l = 0; l < static_cast<size_t>(levels); ++l) {
    out.phase[0].peers[l] = std::max(c.received[l], turns.over[l]);
    out.phase[0].bytes[l] = saturating_mul(out.phase[0].peers[l], c.piece_bytes);
  }
  return out;
}

namespace {

// How one wanted box is fetched by the members of a unit that want it.
struct Fetching {
  int64_t parts = 1;  // that a missing box is cut into
  int64_t run = 0;    // that each member fetches
  int64_t bytes = 0;  // of a run
};
// nullopt: parts or runs of different sizes.
std::optional<Fetching> fetching(int64_t missing, int64_t sharing, int64_t longest, int64_t piece_bytes) {
  Fetching f;
  if (missing == 0) return f;
  f.parts = parts_to_deal(missing, sharing);
  if (longest % f.parts != 0 || saturating_mul(missing, f.parts) % sharing != 0) return std::nullopt;
  f.run = missing * f.parts / sharing;
  f.bytes = saturating_mul(f.run, piece_bytes / f.parts);
  return f;
}

// What decides how much a rank fetches, sends and hears: which crossed positions its coordinates match, by where their digits lie.
struct Matches {
  bool from_outside = true;     // the digit before outside of units: the unit holds shards of what the rank wants
  bool to_outside = true;       // the digit after outside of units: others of the unit want what the rank holds
  bool own = true;              // all: the rank wants part of what it holds
  bool source_inside = true;    // the digit after inside of units, of those that shard or pend before
  bool after_inside = true;     // the digit after inside of units
  bool wanted_inside = true;    // the digit before inside of units, of those that shard after
};

}  // namespace

// Where positions are crossed, ranks differ in what they match. Two values of every crossed digit make every kind of rank that there is:
// no kind needs more than two positions to differ.
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
  DigitMask crossed_digits = 0;
  DigitMask before_both = p.src & ~p.src_only;  // at positions that both states cut: the source's digits
  const DigitMask after_both = p.dst & ~p.dst_only;
  for (size_t i = 0; i < static_cast<size_t>(p.crossed); ++i) {
    crossed_digits |= DigitMask{1} << p.before[i] | DigitMask{1} << p.after[i];
  }
  constexpr int most_crossed = 10;
  if (__builtin_popcount(crossed_digits) > most_crossed) return std::nullopt;

  const Counts c = count(world, p, levels);
  const int64_t sharing = world.product(inside & ~p.dst);  // members of a unit that want one box
  const int64_t shards_met = world.product(p.src_only);    // by a wanted box
  const int64_t shards_inside = world.product(p.src_only & inside);
  const int64_t holders_inside = world.product(inside & ~p.src);
  if (p.longest % holders_inside != 0) return std::nullopt;
  const auto matched = fetching(shards_met - shards_inside, sharing, p.longest, c.piece_bytes);
  const auto mismatched = fetching(shards_met, sharing, p.longest, c.piece_bytes);
  DigitMask from_outside = 0;  // crossed digits of the source that lie outside of units
  for (size_t i = 0; i < static_cast<size_t>(p.crossed); ++i) from_outside |= outside & DigitMask{1} << p.before[i];
  if (!matched || (from_outside != 0 && !mismatched)) return std::nullopt;
  const int64_t overlapping = world.product(outside & ~after_both);  // units that want part of one shard
  const int64_t askers = world.product(p.dst_only & inside);         // wanted boxes of such a unit

  ExchangeTraffic out;
  const auto at = static_cast<size_t>(outer);
  // Values of the crossed digits, as bits.
  for (DigitMask values = 0;; values = (values - crossed_digits) & crossed_digits) {
    Matches m;
    bool outside_holds = true;    // digits outside of units alone: some unit both holds and wants part of the rank's shard
    bool outside_matches = true;  // some unit that wants part of it holds others of what its members want
    for (size_t i = 0; i < static_cast<size_t>(p.crossed); ++i) {
      const int a = p.before[i];
      const int b = p.after[i];
      if (has(values, a) == has(values, b)) continue;
      m.own = false;
      if (has(outside, a)) m.from_outside = false;
      if (has(outside, b)) m.to_outside = false;
      if (has(inside, b)) m.after_inside = false;
      if (has(inside, b) && has(p.src, b)) m.source_inside = false;
      if (has(inside, a) && has(p.dst, a)) m.wanted_inside = false;
      if (has(outside, b) && has(p.src, b)) outside_holds = false;
      if (has(from_outside, b)) outside_matches = false;
    }
    const Fetching& f = m.from_outside ? *matched : *mismatched;
    // Units that want part of the shard and do not hold it, those that match and those that do not; holders take turns over the parts
    // of each apart, where they are cut differently.
    const int64_t holding = outside_holds ? world.product(outside & ~(p.src | after_both)) : 0;
    const int64_t matching = outside_matches ? world.product(outside & ~(from_outside | after_both)) : 0;
    int64_t turns = 0;
    int64_t served = 0;
    auto serve = [&](int64_t asking, int64_t parts) {
      const int64_t asked = saturating_mul(saturating_mul(asking, askers), parts);
      const int64_t times = ceil_div(asked, world.product(all & ~p.src));
      turns += times;
      served = saturating_add(served, saturating_mul(times, c.piece_bytes / parts));
    };
    if (from_outside != 0 && matched->parts != mismatched->parts) {
      serve(matching - holding, matched->parts);
      serve(overlapping - matching, mismatched->parts);
    } else {
      serve(overlapping - holding, matched->parts);
    }
    out.phase[0].bytes[at] = std::max({out.phase[0].bytes[at], f.bytes, served});
    out.phase[0].peers[at] = std::max({out.phase[0].peers[at], f.run, turns});

    const int64_t rest = c.target_bytes - (m.own ? c.piece_bytes : 0) - f.bytes;
    const int64_t others = f.run > 0 ? sharing - 1 : 0;
    // What the rank hears: holders of other shards of the unit, and others that want its box; those that are both once.
    int64_t heard = others;
    if (m.from_outside) {
      heard += world.product(inside & ~before_both) - (m.own ? world.product(inside & ~p.src) : 0);
      if (others > 0 && m.wanted_inside)
        heard -= world.product(inside & ~(before_both | p.dst)) - (m.own ? world.product(inside & ~(p.src | p.dst)) : 0);
    }
    // And whom it tells.
    int64_t told = others;
    int64_t sent = saturating_mul(f.bytes, sharing - 1);
    if (m.to_outside) {
      const int64_t asking = world.product(inside & ~after_both) - (m.source_inside ? world.product(inside & ~(p.src | after_both)) : 0);
      sent = saturating_add(sent, saturating_mul(asking, c.piece_bytes / holders_inside));
      told += asking;
      if (others > 0 && m.after_inside) told -= world.product(inside & ~p.dst) - world.product(inside & ~(p.src | p.dst));
    }
    out.phase[1].bytes[0] = std::max({out.phase[1].bytes[0], rest, sent});
    out.phase[1].peers[0] = std::max({out.phase[1].peers[0], heard, told});
    out.received[0] = std::max(out.received[0], f.bytes);
    out.received[1] = std::max(out.received[1], rest);
    out.wire_bytes = std::max(out.wire_bytes, f.bytes + rest);
    out.sent_bytes = std::max(out.sent_bytes, saturating_add(served, sent));
    if (values == crossed_digits) break;
  }
  return out;
}

}  // namespace meshplan
