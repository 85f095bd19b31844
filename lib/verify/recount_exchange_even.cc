// exchanged_evenly of recount_exchange.h: closed forms over digits.
//
// Every place of a tensor dim's number (mixed radix, major first) is cut by at most one digit
// before, a, and one after, b, of equal size. The rank with digits x wants the shards v with v =
// x[b] where both cut, any v where only a does or where a's contribution is reduced, and v = x[a]
// where what is pending stays. All pieces have one size. The nearest holder of v differs from x on
// the source digits where v does: it is on the level of the outermost of them, and free digits up
// to that level make h holders.
//
// What differs from rank to rank is where x[a] = x[b] at the places that both cut by different
// digits ("crossed"): at which level the outermost mismatch is. Each level that can be the
// outermost is looked at in turn.
#include <algorithm>

#include "base/int_math.h"
#include "verify/lined.h"
#include "verify/recount_exchange.h"
#include "verify/units.h"

namespace meshplan::verification {
namespace {

// Whether some rank has x[a] = x[b] at every crossing whose digit `side` is on a level above
// `level`, and not at one of those on the level itself (with its digit b among `only`).
bool may_mismatch(const Lined& lined, const Roles& roles, size_t Crossing::*side, size_t level,
                  DigitSet only) {
  std::array<size_t, max_digits> equal_to;
  for (size_t i = 0; i < lined.digits.count; ++i) equal_to[i] = i;
  const auto find = [&](size_t digit) {
    while (equal_to[digit] != digit) digit = equal_to[digit];
    return digit;
  };
  for (const Crossing& c : roles.crossed) {
    if (lined.level[c.*side] > level) equal_to[find(c.a)] = find(c.b);
  }
  return std::any_of(roles.crossed.begin(), roles.crossed.end(), [&](const Crossing& c) {
    return lined.level[c.*side] == level && has(only, c.b) && find(c.a) != find(c.b);
  });
}

}  // namespace

std::optional<Exchanged> exchanged_evenly(const ExchangeView& view) {
  if (view.dst_mesh != view.src_mesh) return std::nullopt;
  if (std::any_of(view.shape.begin(), view.shape.end(), [](int64_t n) { return n == 0; }))
    return Exchanged{};
  const Units units(*view.src_mesh->universe, *view.topology);
  const auto lined = line_up(view, units);
  if (!lined) return std::nullopt;
  const Roles roles = roles_of(*lined, view);
  const auto product = [&](DigitSet set, size_t level) {
    int64_t all = 1;
    for (size_t i = 0; i < lined->digits.count; ++i) {
      if (has(set, i) && lined->level[i] == level)
        all = saturating_mul(all, lined->digits.list[i].size);
    }
    return all;
  };
  Exchanged most;
  int64_t values = 1;   // that a rank wants of what it may take, up to the level inside
  int64_t holders = 1;  // of one shard in a unit
  int64_t askers = 1;   // ranks of a unit that want one shard, where it has any
  int64_t sent_outside = 0;
  // sent by a rank whose outermost mismatch is on the level
  std::array<int64_t, most_levels> upto{};
  std::array<int64_t, most_levels> always{};  // and by one with none there
  const DigitSet everything = ~DigitSet{0};
  for (size_t l = 0; l < units.levels(); ++l) {
    const int64_t values_inside = values;
    const int64_t askers_inside = askers;
    values = saturating_mul(values, product(roles.any, l));
    holders = saturating_mul(holders, product(~roles.source, l));
    askers = saturating_mul(askers, product(~roles.forced, l));
    const int64_t pieces =
        may_mismatch(*lined, roles, &Crossing::a, l, everything) ? values : values - values_inside;
    const int64_t unmatched = askers - askers / product(~roles.forced & roles.source, l);
    const bool mismatches = may_mismatch(*lined, roles, &Crossing::b, l, roles.source);
    // Of one shard so many pieces and bytes fall to the holder that has the most to send.
    const auto served = [&](int64_t asked) -> std::pair<int64_t, int64_t> {
      if (holders == 1) return {asked, saturating_mul(asked, roles.piece)};
      if (view.whole_pieces)
        return {ceil_div(asked, holders), saturating_mul(ceil_div(asked, holders), roles.piece)};
      return {asked, saturating_mul(
                         asked, roles.piece / roles.longest * ceil_div(roles.longest, holders))};
    };
    // Holders take turns over all that miss part of the shard: they serve alike on this level where
    // everyone who asks on it does so beside all others of a unit inside, as many as a multiple of
    // the holders.
    const bool asked = mismatches || unmatched > 0;
    if (view.whole_pieces && holders > 1 && asked && l > 0 && askers_inside % holders != 0)
      return std::nullopt;
    const auto [messages, bytes] = served(mismatches ? askers : unmatched);
    upto[l] = mismatches ? bytes : 0;
    always[l] = served(unmatched).second;
    const int64_t from = view.whole_pieces ? 1 : std::min(holders, roles.longest);
    most.traffic.bytes[l] = std::max(saturating_mul(pieces, roles.piece), bytes);
    most.traffic.peers[l] = std::max(saturating_mul(pieces, from), messages);
  }
  for (size_t l = units.levels(); l-- > 0;) {
    if (upto[l] > 0) most.sent = std::max(most.sent, saturating_add(upto[l], sent_outside));
    sent_outside = saturating_add(sent_outside, always[l]);
  }
  most.sent = std::max(most.sent, sent_outside);
  most.received = saturating_mul(roles.crossed.empty() ? values - 1 : values, roles.piece);
  return most;
}

}  // namespace meshplan::verification
