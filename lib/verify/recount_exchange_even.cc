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
#include "verify/common_digits.h"
#include "verify/recount_exchange.h"
#include "verify/units.h"

namespace meshplan::verification {
namespace {

// Whether some rank has x[a] = x[b] at every crossing whose digit `side` is on a level above
// `level`, and not at one of those on the level itself (with its digit b among `only`).
bool may_mismatch(const CommonDigits& common, const Roles& roles, size_t Crossing::*side,
                  size_t level, DigitSet only) {
  std::array<size_t, max_digits> equal_to;
  for (size_t i = 0; i < common.digits.count; ++i) equal_to[i] = i;
  const auto find = [&](size_t digit) {
    while (equal_to[digit] != digit) digit = equal_to[digit];
    return digit;
  };
  for (const Crossing& c : roles.crossed) {
    if (common.level[c.*side] > level) equal_to[find(c.a)] = find(c.b);
  }
  return std::any_of(roles.crossed.begin(), roles.crossed.end(), [&](const Crossing& c) {
    return common.level[c.*side] == level && has(only, c.b) && find(c.a) != find(c.b);
  });
}

// The product of the sizes of those digits of a set that are on one level.
int64_t product_on(const CommonDigits& common, DigitSet set, size_t level) {
  int64_t all = 1;
  for (size_t i = 0; i < common.digits.count; ++i) {
    if (has(set, i) && common.level[i] == level)
      all = saturating_mul(all, common.digits.list[i].size);
  }
  return all;
}

// What the holder of a shard sends that sends the most, where so many ranks ask its holders for it.
struct Sent {
  int64_t messages = 0;
  int64_t bytes = 0;
};
Sent most_sent(const Roles& roles, bool whole_pieces, int64_t asking, int64_t holders) {
  if (holders == 1) return {asking, saturating_mul(asking, roles.piece)};
  if (whole_pieces) {
    const int64_t messages = ceil_div(asking, holders);
    return {messages, saturating_mul(messages, roles.piece)};
  }
  const int64_t part = roles.piece / roles.longest * ceil_div(roles.longest, holders);
  return {asking, saturating_mul(asking, part)};
}

// Levels from the innermost on: numbers of what lies up to the level at hand.
class EvenLevels {
 public:
  EvenLevels(const CommonDigits& common, const Roles& roles, bool whole_pieces)
      : common_(common), roles_(roles), whole_pieces_(whole_pieces) {}

  // The next level. False: the turns of the holders depend on the order of the ranks.
  bool add_level(size_t l, LevelTraffic& traffic) {
    const int64_t values_inside = values_;
    const int64_t asking_inside = asking_;
    const DigitSet everything = ~DigitSet{0};
    values_ = saturating_mul(values_, product_on(common_, roles_.any, l));
    holders_ = saturating_mul(holders_, product_on(common_, ~roles_.source, l));
    asking_ = saturating_mul(asking_, product_on(common_, ~roles_.forced, l));
    const bool crosses = may_mismatch(common_, roles_, &Crossing::a, l, everything);
    const int64_t pieces = crosses ? values_ : values_ - values_inside;
    const int64_t unmatched =
        asking_ - asking_ / product_on(common_, ~roles_.forced & roles_.source, l);
    const bool mismatches = may_mismatch(common_, roles_, &Crossing::b, l, roles_.source);
    // Holders take turns over all that miss part of the shard: they serve alike on this level where
    // everyone who asks on it does so beside all others of a unit inside, as many as a multiple of
    // the holders.
    const bool asked = mismatches || unmatched > 0;
    if (whole_pieces_ && holders_ > 1 && asked && l > 0 && asking_inside % holders_ != 0)
      return false;
    const Sent sent = most_sent(roles_, whole_pieces_, mismatches ? asking_ : unmatched, holders_);
    upto_[l] = mismatches ? sent.bytes : 0;
    always_[l] = most_sent(roles_, whole_pieces_, unmatched, holders_).bytes;
    const int64_t from = whole_pieces_ ? 1 : std::min(holders_, roles_.longest);
    traffic.bytes[l] = std::max(saturating_mul(pieces, roles_.piece), sent.bytes);
    traffic.peers[l] = std::max(saturating_mul(pieces, from), sent.messages);
    return true;
  }

  [[nodiscard]] int64_t received() const {
    return saturating_mul(roles_.crossed.empty() ? values_ - 1 : values_, roles_.piece);
  }
  [[nodiscard]] int64_t sent(size_t levels) const {
    int64_t most = 0;
    int64_t outside = 0;
    for (size_t l = levels; l-- > 0;) {
      if (upto_[l] > 0) most = std::max(most, saturating_add(upto_[l], outside));
      outside = saturating_add(outside, always_[l]);
    }
    return std::max(most, outside);
  }

 private:
  const CommonDigits& common_;
  const Roles& roles_;
  bool whole_pieces_;
  int64_t values_ = 1;   // that a rank wants of what it may fetch
  int64_t holders_ = 1;  // of one shard in a unit
  int64_t asking_ = 1;   // ranks of a unit that want one shard, where it has any
  // Per level: sent by a rank whose outermost mismatch is on it, and by one with none there.
  std::array<int64_t, most_levels> upto_{};
  std::array<int64_t, most_levels> always_{};
};

}  // namespace

std::optional<Exchanged> exchanged_evenly(const ExchangeView& view) {
  if (view.dst_mesh != view.src_mesh) return std::nullopt;
  if (std::any_of(view.shape.begin(), view.shape.end(), [](int64_t n) { return n == 0; }))
    return Exchanged{};
  const Units units(*view.src_mesh->universe, *view.topology);
  const auto common = common_digits(view, units);
  if (!common) return std::nullopt;
  const Roles roles = roles_of(*common, view);
  Exchanged most;
  EvenLevels levels(*common, roles, view.whole_pieces);
  for (size_t l = 0; l < units.levels(); ++l) {
    if (!levels.add_level(l, most.traffic)) return std::nullopt;
  }
  most.sent = levels.sent(units.levels());
  most.received = levels.received();
  return most;
}

}  // namespace meshplan::verification
