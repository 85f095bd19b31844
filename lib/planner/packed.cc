#include "planner/packed.h"

#include <algorithm>

#include "base/int_math.h"

namespace meshplan {
namespace {

// Slots marked, at most 15 in a word.
int count(uint64_t marks) { return static_cast<int>((marks * 0x1111111111111111U) >> 60); }

// Slots whose nibbles differ, marked.
uint64_t differing(uint64_t a, uint64_t b) {
  uint64_t x = a ^ b;
  x |= x >> 2;
  x |= x >> 1;
  return x & 0x1111111111111111U;
}

}  // namespace

void PackedWorld::reset(const PlanProblem& p) {
  p_ = &p;
  const int digits = p.world.count();
  usable_ = p.even && p.always_line_up && p.total_elements > 0 && digits > 0 && digits < 16 && digits * p.dims <= packed_slots;
  outer_level_ = 0;
  for (size_t l = 1; l < p.topology->levels.size(); ++l) {
    if (p.world.at_level(static_cast<int>(l)) == 0) continue;
    if (outer_level_ != 0) usable_ = false;
    outer_level_ = l;
  }
  // Finer tiers are not bounded by levels.
  usable_ = usable_ && p.topology->model.empty() && p.topology->tables.empty();
  if (!usable_) return;
  slots_a_dim_ = digits;
  one_word_ = digits * p.dims <= 16;
  power_[0] = 1;
  for (size_t i = 1; i <= static_cast<size_t>(digits); ++i) power_[i] = power_[i - 1] * p.world.size(0);
  inside_ = 0;
  for (int i = 0; i < digits; ++i) inside_ += p.world.level(i) == 0;
  bandwidth_inside_ = inside_ > 0 ? p.topology->levels[0].mb_per_s : 0;
  bandwidth_outside_ = outer_level_ > 0 ? p.topology->levels[outer_level_].mb_per_s : 0;
  int64_t least = INT64_MAX;
  for (size_t l = p.topology->levels.size(); l-- > 0;) {
    least = std::min(least, p.topology->levels[l].latency_ns);
    if (l == outer_level_) latency_outside_ = saturating_mul(least, 1000);
  }
  latency_inside_ = saturating_mul(least, 1000);
  const auto n = static_cast<size_t>(digits);
  transfers_.assign((n + 1) * (n + 2) * (n + 3), -1);
}

Packed PackedWorld::pack(const Spread& s) const {
  Packed packed;
  for (int d = 0; d < p_->dims; ++d) {
    int length = 0;
    for (int i = s.begin_of(d); i < s.end_of(d); ++i) length += put(packed, d, length, s.atom[static_cast<size_t>(i)]);
  }
  packed.pending = s.pending;
  packed.made = s.made;
  return packed;
}

int64_t PackedWorld::remember_inner(int taken, int beyond, bool crossed, bool reaches_out) {
  const int64_t box = p_->digit_bytes / power(taken);
  const int64_t missing = crossed ? box : box - box / power(beyond);
  const int64_t bandwidth = reaches_out ? bandwidth_inside_ + bandwidth_outside_ : bandwidth_inside_;
  int64_t& known = transfers_[slot_of(slots_a_dim_ + (reaches_out ? 2 : 1), taken, beyond, crossed)];
  return known = bandwidth > 0 ? transfer_ps(missing, 1, bandwidth) : 0;
}

int64_t PackedWorld::remember_outer(int taken, int beyond, bool crossed, int kept_inside) {
  const int64_t united = p_->digit_bytes / power(taken);
  const int64_t missing = crossed ? united : united - united / power(beyond);
  const int64_t share = ceil_div(saturating_mul(missing, power(kept_inside)), power(inside_));
  return transfers_[slot_of(kept_inside, taken, beyond, crossed)] = transfer_ps(share, 1, bandwidth_outside_);
}

template <size_t words>
int64_t PackedWorld::bound_of(const Packed& from, const Packed& to) {
  uint64_t crossed = 0;
  uint64_t crossed_outside = 0;
  int beyond = 0;
  int held_outside = 0;
  for (size_t w = 0; w < words; ++w) {
    const uint64_t differ = differing(from.digit[w], to.digit[w]);
    crossed |= differ & from.taken[w] & to.taken[w];
    crossed_outside |= differ & from.outer[w] & to.outer[w];
    beyond += count(from.taken[w] & ~to.taken[w]);
    held_outside += count(from.outer[w] & ~to.outer[w]);
  }
  if (crossed == 0 && beyond == 0) return 0;
  if (crossed_outside == 0 && held_outside == 0)
    return saturating_add(latency_inside_, inner_transfer(to.digits, beyond, crossed != 0, false));
  int kept_inside = 0;
  for (unsigned pending = from.pending | from.made; pending != 0; pending &= pending - 1) {
    const auto atom = static_cast<size_t>(__builtin_ctz(pending));
    kept_inside += __builtin_popcount(p_->digit_set[atom] & p_->world.at_level(0));
  }
  return saturating_add(latency_outside_, std::max(inner_transfer(to.digits, beyond, crossed != 0, true),
                                                   outer_transfer(to.outers, held_outside, crossed_outside != 0, kept_inside)));
}

int64_t PackedWorld::bound_ps(const Packed& from, const Packed& to) { return one_word_ ? bound_of<1>(from, to) : bound_of<2>(from, to); }

int64_t PackedWorld::exchange_floor_ps(const Packed& from, const Packed& to) const {
  bool crossed = false;
  bool crossed_from_outside = false;
  int beyond = 0;
  int beyond_outside = 0;
  for (size_t w = 0; w < packed_words; ++w) {
    const uint64_t differ = differing(from.digit[w], to.digit[w]) & from.taken[w] & to.taken[w];
    crossed = crossed || differ != 0;
    crossed_from_outside = crossed_from_outside || (differ & from.outer[w]) != 0;
    beyond += count(from.taken[w] & ~to.taken[w]);
    beyond_outside += count(from.outer[w] & ~to.taken[w]);
  }
  const int64_t piece = p_->digit_bytes / (power(to.digits) * power(beyond));
  // Pieces received: from the nearest holders, so what some unit mate has comes from inside (exchange_digits.cc).
  const int64_t near = power(beyond - beyond_outside);
  const int64_t inside = crossed && !crossed_from_outside ? near : near - 1;
  const int64_t outside = crossed_from_outside ? power(beyond) : power(beyond) - near;
  Traffic traffic;
  traffic.bytes[0] = inside * piece;
  traffic.peers[0] = inside;
  if (outside > 0) {
    traffic.bytes[outer_level_] = outside * piece;
    traffic.peers[outer_level_] = outside;
  }
  return traffic_ps(*p_->topology, traffic, true, 0);
}

int64_t PackedWorld::two_phase_floor_ps(const Packed& from, const Packed& to) const {
  bool crossed = false;
  bool crossed_outside = false;
  int beyond = 0;
  int held_outside = 0;
  for (size_t w = 0; w < packed_words; ++w) {
    const uint64_t differ = differing(from.digit[w], to.digit[w]);
    crossed = crossed || (differ & from.taken[w] & to.taken[w]) != 0;
    crossed_outside = crossed_outside || (differ & from.outer[w] & to.outer[w]) != 0;
    beyond += count(from.taken[w] & ~to.taken[w]);
    held_outside += count(from.outer[w] & ~to.outer[w]);
  }
  const int64_t united = p_->digit_bytes / power(to.outers);
  const int64_t fetched = ceil_div(crossed_outside ? united : united - united / power(held_outside), power(inside_));
  const int64_t target = p_->digit_bytes / power(to.digits);
  const int64_t missing = crossed ? target : target - target / power(beyond);
  int64_t ps = 0;
  Traffic traffic;
  if (fetched > 0 && outer_level_ > 0) {
    traffic.bytes[outer_level_] = fetched;
    traffic.peers[outer_level_] = 1;
    ps = traffic_ps(*p_->topology, traffic, true, 0);
  }
  if (missing > fetched) {
    traffic = {};
    traffic.bytes[0] = missing - fetched;
    traffic.peers[0] = power(inside_) - 1;
    ps = saturating_add(ps, traffic_ps(*p_->topology, traffic, true, 0));
  }
  return ps;
}

}  // namespace meshplan
