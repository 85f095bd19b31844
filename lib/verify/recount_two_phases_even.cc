// exchanged_evenly_in_two_phases of recount_exchange.h: closed forms where all units are alike.
//
// No place is cut by one digit before and another after. Then every digit does one or more of this:
// it cuts before and after (B), before only (S), after only (A), or holds copies. A rank wants
// every shard with its own digits B, all of S; its unit holds those that have the unit's own digits
// S outside of units. What each member fetches, passes on and sends is the same for all.
#include <algorithm>

#include "base/int_math.h"
#include "verify/common_digits.h"
#include "verify/recount_exchange.h"
#include "verify/units.h"

namespace meshplan::verification {
namespace {

struct EvenUnits {
  // Digits of the ranks that may talk, inside of units and outside; one level outside at most.
  DigitSet inside = 0;
  DigitSet outside = 0;
  size_t level = 0;
  // That cut before, after, and both.
  DigitSet before = 0;
  DigitSet after = 0;
  DigitSet both = 0;
};

// nullopt: digits outside are on several levels.
std::optional<EvenUnits> units_of(const CommonDigits& common, size_t tensor_dims) {
  EvenUnits units;
  const DigitSet kept = common.before.pending & common.after.pending;
  for (size_t i = 0; i < common.digits.count; ++i) {
    if (has(kept, i)) continue;
    (common.level[i] == 0 ? units.inside : units.outside) |= digit_bit(i);
    if (common.level[i] == 0) continue;
    if (units.level != 0 && units.level != common.level[i]) return std::nullopt;
    units.level = common.level[i];
  }
  for (size_t d = 0; d < tensor_dims; ++d) {
    const ShardList a = common.before.shard_list(d);
    const ShardList b = common.after.shard_list(d);
    units.before |= a.set;
    units.after |= b.set;
    units.both |= a.set & b.set;
  }
  return units;
}

// nullopt: holders, or members that want one box, do not have equal parts, or a member has two from
// one holder.
std::optional<TwoPhases> phases_of(const Digits& digits, const EvenUnits& units, const Roles& roles,
                                   int64_t laps) {
  const auto& [inside, outside, level, before, after, both] = units;
  const auto product = [&](DigitSet set) { return product_of(digits, set); };
  const int64_t members = product(inside & ~after);  // that want one box
  const int64_t met = product(before & ~both);       // shards
  const int64_t missing = met - product(inside & before & ~both);
  const int64_t holders = product((inside | outside) & ~before);
  const int64_t holders_inside = product(inside & ~before);
  if (roles.longest % holders_inside != 0) return std::nullopt;
  const int64_t parts = saturating_mul(parts_of_missing(missing, members), laps);
  if (roles.longest % parts != 0 || missing * parts % members != 0) return std::nullopt;
  const int64_t part = roles.piece / parts;
  // Parts that a member fetches: of other shards, or one after the other of other holders.
  const int64_t run = missing * parts / members;
  if (missing > 0 && ceil_div(run, missing) > holders) return std::nullopt;
  const int64_t fetched = saturating_mul(run, part);

  // Boxes that units want of one shard, each in so many parts: all those less what holds the shard.
  const DigitSet boxes = (outside | (inside & after)) & ~both;
  const int64_t asked =
      saturating_mul(product(boxes) - product(boxes & ~(outside & before)), parts);
  const int64_t turns = ceil_div(asked, holders);
  const int64_t served = saturating_mul(turns, part);

  TwoPhases most;
  if (missing > 0) {
    Exchanged& first = most.phase[0];
    first.received = fetched;
    first.sent = served;
    first.traffic.bytes[level] = std::max(fetched, served);
    first.traffic.peers[level] = std::max(run, turns);
  }
  // Inside: members that hold other shards of the box, and those that want the same one.
  const int64_t holding = product(inside & ~both) - product(inside & ~both & ~before);
  const int64_t holding_and_wanting =
      product(inside & ~both & ~after) - product(inside & ~both & ~after & ~before);
  Exchanged& second = most.phase[1];
  second.received = saturating_add(saturating_mul(met - 1, roles.piece), -fetched);
  second.sent = saturating_add(saturating_mul(fetched, members - 1),
                               saturating_mul(holding, roles.piece / holders_inside));
  second.traffic.bytes[0] = std::max(second.received, second.sent);
  second.traffic.peers[0] = holding + (missing > 0 ? members - 1 - holding_and_wanting : 0);
  most.received = saturating_mul(met - 1, roles.piece);
  most.sent = saturating_add(served, second.sent);
  return most;
}

}  // namespace

std::optional<TwoPhases> exchanged_evenly_in_two_phases(const ExchangeView& view) {
  if (view.dst_mesh != view.src_mesh || view.fetched_by_all || view.at_once > 0)
    return std::nullopt;
  const auto common = common_digits(view, Units(*view.src_mesh->universe, *view.topology));
  if (!common) return std::nullopt;
  if (std::any_of(view.shape.begin(), view.shape.end(), [](int64_t n) { return n == 0; }))
    return TwoPhases{};
  const Roles roles = roles_of(*common, view);
  const bool reduces = (common->before.pending & ~common->after.pending) != 0;
  if (!roles.crossed.empty() || reduces) return std::nullopt;
  const auto units = units_of(*common, view.shape.size());
  return units ? phases_of(common->digits, *units, roles, view.laps) : std::nullopt;
}

}  // namespace meshplan::verification
