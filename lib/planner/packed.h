// Spreads as nibbles in words, so that the bound between two of them takes a few instructions (OPTIMAL.md, "closed forms over atoms").
//
// Where every digit of the mesh has one size q, each product over digits is a power of q: only counts matter. Slot d * digits + k is the
// k-th digit of tensor dim d. The words of a packed spread have four bits a slot:
//
//     digit    the slot's digit, 0 where it is empty      taken    1 where the slot is taken      outer    1 where its digit lies
//                                                                                                          outside of level 0
// What `from` holds beyond the target is taken(from) & ~taken(to); a slot is crossed where both are taken by different digits.
#pragma once

#include <array>
#include <vector>

#include "planner/spread.h"

namespace meshplan {

constexpr size_t packed_words = 2;
constexpr int packed_slots = 16 * static_cast<int>(packed_words);

struct Packed {
  std::array<uint64_t, packed_words> digit{};
  std::array<uint64_t, packed_words> taken{};
  std::array<uint64_t, packed_words> outer{};
  uint16_t pending = 0;  // atoms
  uint16_t made = 0;
  uint8_t digits = 0;  // slots taken
  uint8_t outers = 0;  // of these, by digits outside of level 0
};

// A spread in every form that bounds are asked in.
struct View {
  Packed packed;  // where the world is usable
  DigitSpread digits;
};

class PackedWorld {
 public:
  // Sets up for one question; storage is kept.
  void reset(const PlanProblem& p);
  // Whether the question can be packed: one digit size, boxes even, at most one level in use beyond the innermost, and few enough digits.
  [[nodiscard]] bool usable() const { return usable_; }

  [[nodiscard]] Packed pack(const Spread& s) const;
  // Puts an atom into dim d behind `count` digits; returns how many digits it has.
  int put(Packed& packed, int d, int count, int atom) const {
    const auto at = static_cast<size_t>(atom);
    const int digits = p_->digit_count[at];
    for (int k = 0; k < digits; ++k) {
      const int slot = d * slots_a_dim_ + count + k;
      const int digit = p_->digit_of[at][static_cast<size_t>(k)];
      const auto word = static_cast<size_t>(slot / 16);
      const int shift = slot % 16 * 4;
      const auto out = static_cast<uint64_t>(p_->world.level(digit) > 0);
      packed.digit[word] |= static_cast<uint64_t>(digit) << shift;
      packed.taken[word] |= uint64_t{1} << shift;
      packed.outer[word] |= out << shift;
      ++packed.digits;
      packed.outers = static_cast<uint8_t>(packed.outers + out);
    }
    return digits;
  }

  [[nodiscard]] View view(const Spread& s) const {
    View v;
    if (usable_) v.packed = pack(s);
    v.digits = digits_of(*p_, s);
    return v;
  }
  // bound_between's ps of any two spreads.
  [[nodiscard]] int64_t bound_ps(const Spread& from, const View& from_view, const Spread& to, const View& to_view) {
    if (usable_ && from.pending == to.pending && from.made == to.made) return bound_ps(from_view.packed, to_view.packed);
    return bound_between(*p_, from, from_view.digits, to, to_view.digits).ps;
  }

  // bound_between's ps for spreads with the same atoms pending. Law: equal to it.
  [[nodiscard]] int64_t bound_ps(const Packed& from, const Packed& to);
  // What the exchange in one phase between two spreads with the same atoms pending takes at least, by what a rank receives on each level.
  // Law: never above price_between.
  [[nodiscard]] int64_t exchange_floor_ps(const Packed& from, const Packed& to) const;
  // The same for the exchange in two phases.
  [[nodiscard]] int64_t two_phase_floor_ps(const Packed& from, const Packed& to) const;

 private:
  // Of what a rank misses; over the inner level alone or over both.
  [[nodiscard]] int64_t inner_transfer(int taken, int beyond, bool crossed, bool reaches_out) {
    const int64_t known = transfers_[slot_of(slots_a_dim_ + (reaches_out ? 2 : 1), taken, beyond, crossed)];
    return known >= 0 ? known : remember_inner(taken, beyond, crossed, reaches_out);
  }
  // Of what a unit misses, a member's share. `kept_inside`: pending digits inside the unit.
  [[nodiscard]] int64_t outer_transfer(int taken, int beyond, bool crossed, int kept_inside) {
    const int64_t known = transfers_[slot_of(kept_inside, taken, beyond, crossed)];
    return known >= 0 ? known : remember_outer(taken, beyond, crossed, kept_inside);
  }
  int64_t remember_inner(int taken, int beyond, bool crossed, bool reaches_out);
  int64_t remember_outer(int taken, int beyond, bool crossed, int kept_inside);
  [[nodiscard]] size_t slot_of(int table, int taken, int beyond, bool crossed) const {
    const int n = slots_a_dim_;
    return static_cast<size_t>((table * (n + 1) + taken) * (n + 2) + (crossed ? n + 1 : beyond));
  }
  template <size_t words>
  [[nodiscard]] int64_t bound_of(const Packed& from, const Packed& to);
  [[nodiscard]] int64_t power(int n) const { return power_[static_cast<size_t>(n)]; }

  const PlanProblem* p_ = nullptr;
  bool usable_ = false;
  int slots_a_dim_ = 0;
  size_t outer_level_ = 0;  // 0: every digit is inside
  int inside_ = 0;          // digits inside a unit of level 0
  bool one_word_ = false;   // every slot lies in the first word
  int64_t bandwidth_inside_ = 0;
  int64_t bandwidth_outside_ = 0;
  int64_t latency_inside_ = 0;       // ps; the least at or outside of level 0
  int64_t latency_outside_ = 0;      // at or outside of the outer level
  std::array<int64_t, 16> power_{};  // of the one digit size
  std::vector<int64_t> transfers_;   // remembered, -1 where not asked yet
};

}  // namespace meshplan
