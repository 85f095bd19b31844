// One phase in closed form: the even cut, and whole pieces.
#include "transfer/exchange_digits.h"

#include <algorithm>

#include "base/int_math.h"
#include "transfer/digit_counts.h"

namespace meshplan {
namespace {

// What a holder sends that serves so many ranks a piece each, together with h - 1 others.
int64_t sent_bytes(const DigitCounts& c, const DigitChange& p, ExchangeCut cut, int64_t served,
                   int64_t h) {
  if (h == 1) return saturating_mul(served, c.piece_bytes);
  if (cut == ExchangeCut::whole) return saturating_mul(ceil_div(served, h), c.piece_bytes);
  return saturating_mul(served, floor_div(c.piece_bytes, p.longest) * ceil_div(p.longest, h));
}

// Holders take turns over all levels together: what is asked on inner levels shifts the turns on
// outer ones, unless it is a whole number of rounds. And no product says who sends most over
// several levels in sum.
void mark_turns(const DigitCounts& c, int levels, ExchangeTraffic& out) {
  for (size_t l = 0; l < static_cast<size_t>(levels); ++l) {
    if (c.served[l] == 0) continue;
    for (size_t other = 0; other < static_cast<size_t>(levels); ++other) {
      if (other == l || (c.served[other] == 0 && c.served_matched[other] == 0)) continue;
      if (c.holders[l] > 1 || c.holders[other] > 1) out.sent_is_known = false;
      const bool rounds = floor_mod(c.served[other], c.holders[l]) == 0 &&
                          floor_mod(c.served_matched[other], c.holders[l]) == 0;
      if (other < l && !rounds) out.exact = false;
    }
  }
}

}  // namespace

ExchangeTraffic digits_one_phase(const DigitWorld& world, const DigitChange& change, int levels,
                                 ExchangeCut cut) {
  if (change.total_bytes == 0) return {};
  const DigitCounts c = count_pieces(world, change, levels);
  const bool whole = cut == ExchangeCut::whole;
  ExchangeTraffic out;
  out.wire_bytes = out.received[0] = c.wire_bytes;
  // A holder whose shard mismatches at some level serves no rank inside of it: what it would serve
  // there lies nearer to other ranks.
  int64_t matched = 0;  // bytes that a holder of matching shards sends
  for (size_t l = static_cast<size_t>(levels); l-- > 0;) {
    const int64_t h = c.holders[l];
    const int64_t sent = sent_bytes(c, change, cut, c.served[l], h);
    out.sent_bytes = std::max(out.sent_bytes, saturating_add(matched, sent));
    matched = saturating_add(matched, sent_bytes(c, change, cut, c.served_matched[l], h));
    const int64_t peers_in = h > 1 && !whole
                                 ? saturating_mul(c.received[l], std::min(h, change.longest))
                                 : c.received[l];
    const int64_t peers_out = h > 1 && whole ? ceil_div(c.served[l], h) : c.served[l];
    out.phase[0].bytes[l] = std::max(saturating_mul(c.received[l], c.piece_bytes), sent);
    out.phase[0].peers[l] = std::max(peers_in, peers_out);
  }
  out.sent_bytes = std::max(out.sent_bytes, matched);
  if (whole) mark_turns(c, levels, out);
  return out;
}

ExchangeTraffic digits_whole_pieces(const DigitWorld& world, const DigitChange& change, int levels,
                                    const MostTurns& turns) {
  if (change.total_bytes == 0) return {};
  const DigitCounts c = count_pieces(world, change, levels);
  ExchangeTraffic out;
  out.wire_bytes = out.received[0] = c.wire_bytes;
  out.sent_bytes = saturating_mul(turns.in_all, c.piece_bytes);
  for (size_t l = 0; l < static_cast<size_t>(levels); ++l) {
    out.phase[0].peers[l] = std::max(c.received[l], turns.over[l]);
    out.phase[0].bytes[l] = saturating_mul(out.phase[0].peers[l], c.piece_bytes);
  }
  return out;
}

}  // namespace meshplan
