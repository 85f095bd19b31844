#include "transfer/digit_counts.h"

#include "base/int_math.h"

namespace meshplan {
namespace {

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

// A rank matches a crossed position where its coordinates on the digit before and on the digit
// after are the same: of that position it holds what it wants. Whether some rank matches every
// position of a level above `l` and mismatches one of level `l`. A position's level is that of its
// digit on `side`; `must_be_source`: only a position whose digit after is one of these counts; 0:
// every one.
//
//     crossed positions 0 against 1 (level 1) and 1 against 0 (level 0), l = 0
//     matching the first makes coordinates 0 and 1 equal, so the second matches, too: false
bool mismatch_at(const DigitWorld& world, const DigitChange& p, int l,
                 const std::array<int8_t, max_digits>& side, DigitMask must_be_source) {
  Joined joined(p);
  for (size_t i = 0; i < static_cast<size_t>(p.crossed); ++i) {
    if (world.level(side[i]) > l) joined.join(p.before[i], p.after[i]);
  }
  for (size_t i = 0; i < static_cast<size_t>(p.crossed); ++i) {
    if (world.level(side[i]) != l) continue;
    if (must_be_source != 0 && !has_digit(must_be_source, p.after[i])) continue;
    if (joined.find(p.before[i]) != joined.find(p.after[i])) return true;
  }
  return false;
}

}  // namespace

DigitCounts count_pieces(const DigitWorld& world, const DigitChange& p, int levels) {
  DigitCounts c;
  const bool crossed = p.crossed > 0;
  const DigitMask any = p.src_only | p.reduced;             // what only the source controls
  const DigitMask forced = p.kept | (p.dst & ~p.dst_only);  // what a receiver's wish fixes
  const DigitMask source = p.src | p.reduced | p.kept;
  c.piece_bytes =
      floor_div(p.total_bytes, saturating_mul(world.product(p.src), world.product(p.dst_only)));
  c.target_bytes = floor_div(p.total_bytes, world.product(p.dst));
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
    c.served_matched[at] = reach - floor_div(reach, world.product(here & ~forced & source));
    c.served[at] =
        crossed && mismatch_at(world, p, l, p.after, source) ? reach : c.served_matched[at];
    c.holders[at] = holders;
  }
  c.wire_bytes = saturating_mul(crossed ? upto : upto - 1, c.piece_bytes);
  return c;
}

}  // namespace meshplan
