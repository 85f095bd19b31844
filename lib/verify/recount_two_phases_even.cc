// exchanged_evenly_in_two_phases of recount_exchange.h: closed forms where all units are alike.
//
// No place is cut by one digit before and another after. Then every digit does one or more of this:
// it cuts before and after (B), before only (S), after only (A), or holds copies. A rank wants
// every shard with its own digits B, all of S; its unit holds those that have the unit's own digits
// S outside of units. What each member fetches, passes on and sends is the same for all.
#include <algorithm>

#include "base/int_math.h"
#include "verify/lined.h"
#include "verify/recount_exchange.h"
#include "verify/units.h"

namespace meshplan::verification {

std::optional<TwoPhases> exchanged_evenly_in_two_phases(const ExchangeView& view) {
  if (view.dst_mesh != view.src_mesh) return std::nullopt;
  const Units units(*view.src_mesh->universe, *view.topology);
  const auto lined = line_up(view, units);
  if (!lined) return std::nullopt;
  if (std::any_of(view.shape.begin(), view.shape.end(), [](int64_t n) { return n == 0; })) {
    return TwoPhases{};
  }
  const Roles roles = roles_of(*lined, view);
  const DigitSet kept = lined->before.pending & lined->after.pending;
  if (!roles.crossed.empty() || lined->before.pending != kept) return std::nullopt;

  // Digits of the ranks that may talk, inside of units and outside; one level outside at most.
  DigitSet inside = 0;
  DigitSet outside = 0;
  size_t level = 0;
  for (size_t i = 0; i < lined->digits.count; ++i) {
    if (has(kept, i)) continue;
    (lined->level[i] == 0 ? inside : outside) |= digit_bit(i);
    if (lined->level[i] == 0) continue;
    if (level != 0 && level != lined->level[i]) return std::nullopt;
    level = lined->level[i];
  }
  DigitSet before = 0;
  DigitSet after = 0;
  DigitSet both = 0;
  for (size_t d = 0; d < view.shape.size(); ++d) {
    const ShardList a = lined->before.shard_list(d);
    const ShardList b = lined->after.shard_list(d);
    before |= a.set;
    after |= b.set;
    both |= a.set & b.set;
  }
  const auto product = [&](DigitSet set) { return product_of(lined->digits, set); };
  const int64_t members = product(inside & ~after);  // that want one box
  const int64_t met = product(before & ~both);       // shards
  const int64_t met_inside = product(inside & before & ~both);
  const int64_t holders = product((inside | outside) & ~before);
  const int64_t holders_inside = product(inside & ~before);
  const int64_t missing = met - met_inside;
  if (roles.longest % holders_inside != 0) return std::nullopt;

  int64_t parts = 1;
  if (missing > 0) {
    while (16 * members * ceil_div(missing * parts, members) > 17 * missing * parts) ++parts;
  }
  if (roles.longest % parts != 0 || missing * parts % members != 0) return std::nullopt;
  const int64_t part = roles.piece / parts;
  // parts that a member fetches, each of another shard
  const int64_t run = missing * parts / members;
  const int64_t got = saturating_mul(run, part);

  // Boxes that units want of one shard, each in so many parts: all those less what holds the shard.
  const DigitSet boxes = (outside | (inside & after)) & ~both;
  const int64_t asked =
      saturating_mul(product(boxes) - product(boxes & ~(outside & before)), parts);
  const int64_t turns = ceil_div(asked, holders);
  const int64_t served = saturating_mul(turns, part);

  TwoPhases most;
  if (missing > 0) {
    Exchanged& first = most.phase[0];
    first.received = got;
    first.sent = served;
    first.traffic.bytes[level] = std::max(got, served);
    first.traffic.peers[level] = std::max(run, turns);
  }
  // Inside: members that hold other shards of the box, and those that want the same one.
  const int64_t holding = product(inside & ~both) - product(inside & ~both & ~before);
  const int64_t holding_and_wanting =
      product(inside & ~both & ~after) - product(inside & ~both & ~after & ~before);
  Exchanged& second = most.phase[1];
  second.received = saturating_add(saturating_mul(met - 1, roles.piece), -got);
  second.sent = saturating_add(saturating_mul(got, members - 1),
                               saturating_mul(holding, roles.piece / holders_inside));
  second.traffic.bytes[0] = std::max(second.received, second.sent);
  second.traffic.peers[0] = holding + (missing > 0 ? members - 1 - holding_and_wanting : 0);
  most.received = saturating_mul(met - 1, roles.piece);
  most.sent = saturating_add(served, second.sent);
  return most;
}

}  // namespace meshplan::verification
