#include "search/packed.h"

#include <algorithm>

#include "base/int_math.h"

namespace meshplan {
namespace {

using Words = Packed::Words;

constexpr uint64_t ones = 0x1111111111111111U;

// Bits of two words.
int count_bits(uint64_t a, uint64_t b) {
  constexpr uint64_t pairs = 0x3333333333333333U;
  constexpr uint64_t nibbles = 0x0f0f0f0f0f0f0f0fU;
  a -= a >> 1 & 0x5555555555555555U;
  b -= b >> 1 & 0x5555555555555555U;
  const uint64_t sum =
      (a & pairs) + (a >> 2 & pairs) + (b & pairs) + (b >> 2 & pairs);  // at most 8 a nibble
  return static_cast<int>(((sum & nibbles) + (sum >> 4 & nibbles)) * 0x0101010101010101U >> 56);
}

}  // namespace

// Slots that hold another digit in `b`, of those that both take.
inline uint64_t PackedWorld::differing_of_few(const Packed& a, const Packed& b) {
  uint64_t x = a.name[0][0] ^ b.name[0][0];
  x |= x >> 2;
  x |= x >> 1;
  return x & a.taken[0] & b.taken[0];
}

inline Words PackedWorld::differing(const Packed& a, const Packed& b) const {
  Words words{};
  if (few_) {
    words[0] = differing_of_few(a, b);
    return words;
  }
  for (size_t j = 0; j < static_cast<size_t>(name_bits_); ++j) {
    for (size_t w = 0; w < packed_words; ++w) words[w] |= a.name[j][w] ^ b.name[j][w];
  }
  for (size_t w = 0; w < packed_words; ++w) words[w] &= a.taken[w] & b.taken[w];
  return words;
}

// At most 15 marks.
inline int PackedWorld::count_of_few(uint64_t marks) {
  return static_cast<int>(marks * ones >> 60);
}
inline int PackedWorld::count(const Words& marks) const {
  if (few_) return count_of_few(marks[0]);
  return count_bits(marks[0], marks[1]);
}

inline PackedWorld::Difference PackedWorld::difference(const Packed& from, const Packed& to,
                                                       const Words& looked) const {
  return few_ ? difference_of_few(from, to, looked[0]) : difference_of_many(from, to, looked);
}

inline PackedWorld::Difference PackedWorld::difference_of_few(const Packed& from, const Packed& to,
                                                              uint64_t looked) {
  const uint64_t differ = differing_of_few(from, to);
  const uint64_t beyond = from.taken[0] & ~to.taken[0] & looked;
  Difference result;
  result.set(Difference::crossed_at, differ != 0);
  result.set(Difference::crossed_outside_at, (differ & from.outer[0] & to.outer[0]) != 0);
  result.set(Difference::crossed_from_outside_at, (differ & from.outer[0]) != 0);
  result.set(Difference::beyond_at, count_of_few(beyond));
  result.set(Difference::beyond_outside_at, count_of_few(from.outer[0] & beyond));
  result.set(Difference::held_outside_at,
             count_of_few(from.outer[0] & ~to.outer[0] & (looked | to.taken[0])));
  return result;
}

PackedWorld::Difference PackedWorld::difference_of_many(const Packed& from, const Packed& to,
                                                        const Words& looked) const {
  const Words differ = differing(from, to);
  Words beyond{};
  Words beyond_outside{};
  Words held_outside{};
  uint64_t crossed = 0;
  uint64_t crossed_outside = 0;
  uint64_t crossed_from_outside = 0;
  for (size_t w = 0; w < packed_words; ++w) {
    crossed |= differ[w];
    crossed_outside |= differ[w] & from.outer[w] & to.outer[w];
    crossed_from_outside |= differ[w] & from.outer[w];
    beyond[w] = from.taken[w] & ~to.taken[w] & looked[w];
    beyond_outside[w] = from.outer[w] & beyond[w];
    held_outside[w] = from.outer[w] & ~to.outer[w] & (looked[w] | to.taken[w]);
  }
  Difference result;
  result.set(Difference::crossed_at, crossed != 0);
  result.set(Difference::crossed_outside_at, crossed_outside != 0);
  result.set(Difference::crossed_from_outside_at, crossed_from_outside != 0);
  result.set(Difference::beyond_at, count(beyond));
  result.set(Difference::beyond_outside_at, count(beyond_outside));
  result.set(Difference::held_outside_at, count(held_outside));
  return result;
}

[[gnu::noinline]] PackedWorld::Difference PackedWorld::difference_of_sums(
    const Packed& from, const Packed& to, const PendingDigits& w, const Words& looked) const {
  if (w.joined != 0) return difference(without(from, w.joined), to, looked);
  Difference d = difference(from, to, looked);
  if (w.reduced != 0) count_apart(from, to, d);
  return d;
}

void PackedWorld::count_apart(const Packed& from, const Packed& to, Difference& d) const {
  Words same = differing(from, to);
  Words same_outside{};
  for (size_t w = 0; w < packed_words; ++w) {
    same[w] = ~same[w] & from.taken[w] & to.taken[w];
    same_outside[w] = same[w] & from.outer[w];
  }
  const uint32_t both = from.digits & to.digits;
  d.set(Difference::apart_at, (__builtin_popcount(both) - count(same) + 1) / 2);
  d.set(Difference::apart_outside_at,
        (__builtin_popcount(both & outer_set_) - count(same_outside) + 1) / 2);
}

void PackedWorld::count_pending(unsigned before, unsigned after, unsigned joined,
                                PendingDigits& pending) {
  // Figures are told apart by it.
  constexpr unsigned most_numbers = 255;
  if (pending_counted_ == most_numbers) forget_figures();
  pending = {};
  pending.number = ++pending_counted_;
  pending.before = before;
  pending.after = after;
  pending.joined = joined;
  for (unsigned left = before | after; left != 0; left &= left - 1) {
    const int sub_axis = __builtin_ctz(left);
    const SubAxisDigits& digits = digits_[static_cast<size_t>(sub_axis)];
    const int inside = digits.count - digits.outers;
    const bool stays = ((before & after) >> sub_axis & 1) != 0;
    if (stays) pending.kept_at_once_inside += inside;
    if ((joined >> sub_axis & 1) != 0) {
      pending.joined_count += digits.count;
      pending.joined_outside += digits.outers;
    } else if (stays) {
      pending.kept += digits.count;
      pending.kept_inside += inside;
    } else {
      pending.reduced += digits.count;
      pending.reduced_outside += digits.outers;
    }
  }
}

Packed PackedWorld::without(const Packed& from, unsigned sub_axes) const {
  Packed left = from;
  for (; sub_axes != 0; sub_axes &= sub_axes - 1) {
    const SubAxisDigits& digits = digits_[static_cast<size_t>(__builtin_ctz(sub_axes))];
    for (int digit = digits.first; digit < digits.first + digits.count; ++digit) {
      Words here = left.taken;
      if (few_) {
        uint64_t other = left.name[0][0] ^ static_cast<uint64_t>(digit) * ones;
        other |= other >> 2;
        other |= other >> 1;
        here[0] &= ~other;
      } else {
        for (size_t j = 0; j < static_cast<size_t>(name_bits_); ++j) {
          for (size_t w = 0; w < packed_words; ++w)
            here[w] &= (digit >> j & 1) != 0 ? left.name[j][w] : ~left.name[j][w];
        }
      }
      for (size_t w = 0; w < packed_words; ++w) {
        left.taken[w] &= ~here[w];
        left.outer[w] &= ~here[w];
      }
    }
  }
  return left;
}

int64_t PackedWorld::bound_ps(const Packed& from, const Packed& to) {
  const PendingDigits& w = pending_digits(from, to);
  return least_ps(difference_joined(from, to, w, every_slot()), w, to.total, to.outers,
                  FigureKind::bound);
}

int64_t PackedWorld::several_ps(const Packed& from, const Packed& to) {
  if (!p_->times.grow()) {
    const int64_t least = bound_ps(from, to);
    return least == 0 ? 0 : saturating_add(least, another_step_ps_);
  }
  const PendingDigits& w = pending_digits(from, to);
  return least_ps(difference_joined(from, to, w, every_slot()), w, to.total, to.outers,
                  FigureKind::several);
}

int64_t PackedWorld::listed_left_from_growing_ps(const SearchState& part) {
  const auto number = as_index(growing_.intern(part));
  if (number == growing_left_.size())
    growing_left_.push_back(bound_between(*p_, part, p_->target, true).ps);
  return growing_left_[number];
}

int64_t PackedWorld::bound_from_growing_ps(const Packed& part, const Packed& to) {
  const PendingDigits& w = pending_digits(part, to);
  return least_ps(difference_joined(part, to, w, every_slot()), w, to.total, to.outers,
                  FigureKind::growing);
}

int64_t PackedWorld::bound_to_growing_ps(const Packed& from, const Packed& part, int open,
                                         int total, int outers) {
  const PendingDigits& w = pending_digits(from, part);
  const Words& looked = slots_before_[static_cast<size_t>(open)];
  return least_ps(difference_joined(from, part, w, looked), w, total, outers, FigureKind::growing);
}

int64_t PackedWorld::ps_of(const Difference& d, const PendingDigits& w, int total, int outers,
                           bool growing) {
  if (w.reduced != 0) return reducing_ps(d, w, total, outers, growing);
  if (!d.crossed() && d.beyond() == 0) return 0;
  const Carried own{missing(total, d.beyond(), d.crossed())};
  if (!d.crossed_outside() && d.held_outside() == 0)
    return within_unit_ps(d.beyond(), own, growing);
  const Carried of_unit = fetched(outers, d.held_outside(), d.crossed_outside(), w.kept_inside);
  return std::max(reaching_out_ps(d.beyond(), own), outside_ps(d.beyond(), of_unit));
}

// The ranks that differ on what is joined alone are one unit, whose members share what it needs.
int64_t PackedWorld::joined_ps(const Difference& d, const PendingDigits& w, int total,
                               int outers) const {
  if (w.reduced != 0) return reducing_ps(d, w, total, outers, true);
  const int64_t need = joined_missing(d, total);
  if (need == 0) return 0;
  const Carried own{need, power(w.joined_count)};
  if (!d.crossed_outside() && d.held_outside() == 0) return inside_ps(0, own, true);
  const int64_t united = floor_div(least_bytes(), power(outers));
  const int64_t missing =
      d.crossed_outside() ? united : united - floor_div(united, power(d.held_outside()));
  const Carried of_unit{saturating_mul(missing, power(w.kept_inside)),
                        power(inside_ + w.joined_outside)};
  return std::max(reaching_out_ps(0, own), outside_ps(0, of_unit));
}

int64_t PackedWorld::joined_missing(const Difference& d, int total) const {
  const int64_t united = floor_div(least_bytes(), power(total));
  return d.crossed() ? united : united - floor_div(united, power(d.beyond()));
}

int64_t PackedWorld::bound_bytes(const Packed& from, const Packed& to) {
  const PendingDigits& w = pending_digits(from, to);
  if (w.reduced != 0)
    return reducing_bytes(difference_joined(from, to, w, every_slot()), w, to.total);
  if (w.joined != 0) {
    const Difference d = difference(without(from, w.joined), to, every_slot());
    return ceil_div(joined_missing(d, to.total), power(w.joined_count));
  }
  const Difference d = difference(from, to, every_slot());
  return missing(to.total, d.beyond(), d.crossed());
}

// Bytes that all ranks carry, (contributions - 1) + (copies - 1) values an element, which all that
// hold different values share, and one more of those that are apart.
int64_t PackedWorld::carried(int contributions, int copies, int apart) const {
  return saturating_add(saturating_mul(least_bytes(), power(contributions) - 1 + power(copies) - 1),
                        least_bytes() - floor_div(least_bytes(), power(apart)));
}

// Every rank misses its whole target (cost/bounds.cc).
int64_t PackedWorld::reducing_bytes(const Difference& d, const PendingDigits& w, int total) const {
  const int copies = total_ - total - w.kept - w.joined_count;
  return std::max(ceil_div(floor_div(least_bytes(), power(total)), power(w.joined_count)),
                  ceil_div(carried(w.reduced, copies, d.apart()), power(total_ - w.kept)));
}

// The same of units where contributions lie in several.
int64_t PackedWorld::reducing_ps(const Difference& d, const PendingDigits& w, int total, int outers,
                                 bool growing) const {
  const int64_t sharing = power(total_ - w.kept);
  const auto larger_share = [](const Carried& a, const Carried& b) {
    return static_cast<int128>(a.bytes) * b.ranks >= static_cast<int128>(b.bytes) * a.ranks ? a : b;
  };
  const int sources = w.joined != 0 ? 0 : w.reduced + d.beyond();
  const int64_t united = floor_div(least_bytes(), power(outers));
  int64_t missing = united;
  if (w.reduced_outside == 0 && !d.crossed_outside())
    missing = united - floor_div(united, power(d.held_outside()));
  const bool inside_only = missing == 0 || outer_level_ == 0;
  const Carried own = larger_share(
      {floor_div(least_bytes(), power(total)), power(w.joined_count)},
      {carried(w.reduced, total_ - total - w.kept - w.joined_count, d.apart()), sharing});
  if (inside_only) return within_unit_ps(sources, own, growing);
  const int copies = total_ - inside_ - outers - (w.kept - w.kept_inside) - w.joined_outside;
  const Carried of_unit = larger_share(
      {saturating_mul(missing, power(w.kept_inside)), power(inside_ + w.joined_outside)},
      {w.reduced_outside != 0 ? carried(w.reduced_outside, copies, d.apart_outside()) : 0,
       sharing});
  return std::max(reaching_out_ps(sources, own), outside_ps(sources, of_unit));
}

int64_t PackedWorld::missing_contributions(int64_t bytes, int taken, const Difference& d,
                                           int reduced) const {
  const int64_t united = floor_div(bytes, power(taken));
  const int64_t own = d.crossed_outside() ? 0 : floor_div(united, power(d.held_outside()));
  return saturating_mul(united, power(reduced)) - own;
}

// Of one exchange, which makes nothing pending. Contributions go to every member that wants them
// as they are: a unit gets those of all others.
int64_t PackedWorld::outer_bound_ps(const Packed& from, const Packed& to) {
  if (outer_level_ == 0) return 0;
  const PendingDigits& w = pending_digits(from, to);
  const Difference d = difference(from, to, every_slot());
  if (!d.crossed_outside() && d.held_outside() == 0 && w.reduced_outside == 0) return 0;
  const int64_t latency = saturating_add(outer_latency_, outer_per_peer_);
  if (w.reduced == 0)
    return saturating_add(
        latency, fetch_ps(to.outers, d.held_outside(), d.crossed_outside(), w.kept_at_once_inside));
  // Of each that is reduced inside of units one from outside.
  const int inner = w.kept_at_once_inside + w.reduced - w.reduced_outside;
  const int64_t bytes = saturating_mul(
      missing_contributions(p_->digit_reduce_bytes, to.outers, d, w.reduced_outside), power(inner));
  return saturating_add(latency, pace_outside_.ps(floor_div(bytes, power(inside_))));
}

OuterPart PackedWorld::outer_part(const Packed& at) const {
  OuterPart part;
  part.at.taken = part.at.outer = at.outer;
  part.at.digits = at.digits & outer_set_;
  part.at.outers = part.at.total = at.outers;
  for (size_t j = 0; j < (few_ ? 1 : static_cast<size_t>(name_bits_)); ++j) {
    for (size_t w = 0; w < packed_words; ++w)
      part.at.name[j][w] = at.name[j][w] & at.outer[w] * (few_ ? 15 : 1);
  }
  for (unsigned left = at.pending; left != 0; left &= left - 1) {
    const SubAxisDigits& digits = digits_[as_index(__builtin_ctz(left))];
    part.pending |= digits.outer_set;
    part.inner_pending += digits.count - digits.outers;
  }
  return part;
}

int64_t PackedWorld::outer_step_ps(const OuterPart& from, const OuterPart& to) {
  const int inner = from.inner_pending - to.inner_pending;
  if ((to.pending & ~from.pending) != 0 || inner < 0) return INT64_MAX;
  const Difference d = difference(from.at, to.at, every_slot());
  const uint32_t reduces = from.pending & ~to.pending;
  const bool reaches_out = reduces != 0 || d.crossed_outside() || d.held_outside() != 0;
  if (!reaches_out && inner == 0) return 0;
  const int reduced = __builtin_popcount(reduces);
  const int scattered = __builtin_popcount(reduces & to.at.digits);
  const int held = d.crossed_outside() ? total_ + 1 : d.held_outside();
  const uint64_t key = counted_on_ | static_cast<uint64_t>(inner) << 40 |
                       static_cast<uint64_t>(to.inner_pending) << 32 |
                       static_cast<uint64_t>(reduced) << 24 |
                       static_cast<uint64_t>(scattered) << 16 |
                       static_cast<uint64_t>(to.at.outers) << 8 | static_cast<uint64_t>(held);
  OuterStep& known = outer_steps_[key * 0x9e3779b97f4a7c15U >> 56];
  if (known.key == key) return known.ps;
  const int64_t whole = reduced + inner > 0 ? least_bytes() : p_->digit_bytes;
  const auto outside = [&](int64_t bytes) {
    return p_->times.ps({2, static_cast<int>(outer_level_), true},
                        saturating_mul(bytes, power(to.inner_pending)), power(inside_),
                        1U << outer_level_);
  };
  const auto inside = [&](int64_t bytes) {
    return inner == 0 ? 0
                      : p_->times.ps({}, saturating_mul(bytes, power(to.inner_pending)),
                                     power(inside_), links(false));
  };
  known.key = key;
  if (!reaches_out) {
    known.ps = inside(saturating_mul(floor_div(whole, power(to.at.outers)), power(inner) - 1));
    return known.ps;
  }
  known.ps =
      outside(saturating_mul(missing_contributions(whole, to.at.outers, d, reduced), power(inner)));
  if (reduced == 0 || held != 0) return known.ps;
  const int64_t united = floor_div(whole, power(to.at.outers - scattered));
  const int64_t times = scattered == reduced ? 1 : 2;
  known.ps = std::min(
      known.ps, std::max(outside(times * (united - floor_div(united, power(reduced)))),
                         inside(saturating_mul(times, saturating_mul(united, power(inner) - 1)))));
  return known.ps;
}

int64_t PackedWorld::reordered_ps(const Packed& from, const Packed& to, bool several) const {
  if (outer_level_ == 0 || p_->kept != 0 || (from.made | to.made) != 0) return 0;
  const Words shared{from.outer_in_list[0] & to.outer_in_list[0],
                     from.outer_in_list[1] & to.outer_in_list[1]};
  if ((shared[0] | shared[1]) == 0) return 0;
  // Outer digits that both have in one list, and those of them in one slot.
  const int in_one_list = count_bits(shared[0], shared[1]);
  Words in_one_slot = differing(from, to);
  for (size_t w = 0; w < packed_words; ++w)
    in_one_slot[w] = ~in_one_slot[w] & from.outer[w] & to.taken[w];
  return in_one_list > count(in_one_slot) ? finest_part_ps_[several ? 1 : 0] : 0;
}

bool PackedWorld::same_outside(const Packed& a, const Packed& b) const {
  if (a.outer != b.outer) return false;
  const Words differ = differing(a, b);
  uint64_t differ_outside = 0;
  for (size_t w = 0; w < packed_words; ++w) differ_outside |= differ[w] & a.outer[w];
  return differ_outside == 0;
}

size_t PackedWorld::hash_outside(const Packed& packed) const {
  uint64_t h = packed.outer[0] * 0x9e3779b97f4a7c15U ^ packed.outer[1];
  if (few_) {
    h = (h ^ h >> 29 ^ (packed.name[0][0] & packed.outer[0] * 15)) * 0xbf58476d1ce4e5b9U;
  } else {
    for (size_t j = 0; j < static_cast<size_t>(name_bits_); ++j) {
      for (size_t w = 0; w < packed_words; ++w)
        h = (h ^ h >> 29 ^ (packed.name[j][w] & packed.outer[w])) * 0xbf58476d1ce4e5b9U;
    }
  }
  return h ^ h >> 32;
}

ExchangeFloors PackedWorld::exchange_floors(const Packed& from, const Packed& to) {
  const PendingDigits& w = pending_digits(from, to);
  const Difference d = difference(from, to, every_slot());
  bool is_known = false;
  Figures& known = figures_of(FigureKind::floors, d, w, to.total, to.outers, is_known);
  if (!is_known) {
    known.ps = one_phase_floor_ps(d, w, to.total, false);
    known.far_share_ps = one_phase_floor_ps(d, w, to.total, true);
    known.two_phases_ps = w.reduced == 0 ? two_phases_floor_ps(d, w, to.total, to.outers) : 0;
    known.by_all_ps = unevenly_missed(d, w) ? by_all_floor_ps(d, to.total, to.outers) : INT64_MAX;
  }
  const int64_t one_phase_ps =
      has_far_holders(from, w) ? std::min(known.ps, known.far_share_ps) : known.ps;
  // Figures are kept for questions in which that is not offered, too.
  return {one_phase_ps, known.two_phases_ps, p_->all_may_fetch ? known.by_all_ps : INT64_MAX};
}

// members_miss_unevenly of all_fetch.h; where nothing is pending.
bool PackedWorld::unevenly_missed(const Difference& d, const PendingDigits& w) {
  return w.number == 0 && d.crossed_from_outside() && !d.crossed_outside();
}

// Whether some outer digit tells no two shards apart.
bool PackedWorld::has_far_holders(const Packed& from, const PendingDigits& w) const {
  if (w.reduced != 0 || !may_have_far_share(*p_, ExchangeWay::one_phase)) return false;
  return from.outers + w.kept - w.kept_inside < total_ - inside_;
}

}  // namespace meshplan
