// Spreads as nibbles in words, so that the bound between two of them takes a few instructions (OPTIMAL.md, "closed forms over atoms").
//
// An item is the part of an atom that lies on one level. Where every item has a power of one base as its size, each product over items is a
// power of it: only sums of exponents matter. Slot d * items + k is the k-th item of tensor dim d. The words have four bits a slot:
//
//     item     the slot's item, 0 where it is empty       outer    1 where its item lies outside of level 0
//     taken    1 where the slot is taken                  weight   the exponent of its item's size
//
// What `from` holds beyond the target is taken(from) & ~taken(to); a slot is crossed where both are taken by different items.
#pragma once

#include <array>
#include <vector>

#include "base/int_math.h"
#include "planner/spread.h"

namespace meshplan {

constexpr size_t packed_words = 2;
constexpr int packed_slots = 16 * static_cast<int>(packed_words);

struct Packed {
  std::array<uint64_t, packed_words> item{};
  std::array<uint64_t, packed_words> taken{};
  std::array<uint64_t, packed_words> outer{};
  std::array<uint64_t, packed_words> weight{};
  uint16_t pending = 0;  // atoms
  uint16_t made = 0;
  uint8_t total = 0;   // of all weights
  uint8_t outers = 0;  // of those outside of level 0
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
  // Whether the question can be packed: sizes of one base, boxes even, at most one level in use beyond the innermost, few enough items.
  [[nodiscard]] bool usable() const { return usable_; }

  // Usable, and every bound is told.
  [[nodiscard]] bool always_told() const { return usable_ && (!weighted_ || outer_level_ == 0); }
  [[nodiscard]] Packed pack(const Spread& s) const;
  // Puts an atom into dim d behind `count` items; returns how many it has.
  int put(Packed& packed, int d, int count, int atom) const {
    const AtomItems& items = items_[static_cast<size_t>(atom)];
    for (int k = 0; k < items.count; ++k) {
      const int slot = d * slots_a_dim_ + count + k;
      const auto item = as_index(items.first + k);
      const auto word = static_cast<size_t>(slot / 16);
      const int shift = slot % 16 * 4;
      packed.item[word] |= static_cast<uint64_t>(item) << shift;
      packed.taken[word] |= uint64_t{1} << shift;
      packed.outer[word] |= static_cast<uint64_t>(outer_[item]) << shift;
      packed.weight[word] |= static_cast<uint64_t>(weight_[item]) << shift;
      packed.total = static_cast<uint8_t>(packed.total + weight_[item]);
      packed.outers = static_cast<uint8_t>(packed.outers + weight_[item] * outer_[item]);
    }
    return items.count;
  }
  [[nodiscard]] int items_of(int atom) const { return items_[static_cast<size_t>(atom)].count; }

  [[nodiscard]] View view(const Spread& s) const {
    View v;
    if (usable_) v.packed = pack(s);
    v.digits = digits_of(*p_, s);
    return v;
  }
  // bound_between's ps of any two spreads.
  [[nodiscard]] int64_t bound_ps(const Spread& from, const View& from_view, const Spread& to, const View& to_view) {
    if (usable_) {
      const int64_t ps = bound_ps(from_view.packed, to_view.packed);
      if (ps >= 0) return ps;
    }
    return bound_between(*p_, from, from_view.digits, to, to_view.digits).ps;
  }

  // bound_between's ps. Law: equal to it; -1 where items of different sizes meet and there are two
  // levels.
  [[nodiscard]] int64_t bound_ps(const Packed& from, const Packed& to);
  // What the exchange in one phase between two spreads takes at least, by what a rank receives on each level.
  // Law: never above price_between.
  [[nodiscard]] int64_t exchange_floor_ps(const Packed& from, const Packed& to);
  // The same for the exchange in two phases between spreads with the same atoms pending.
  [[nodiscard]] int64_t two_phase_floor_ps(const Packed& from, const Packed& to);

 private:
  struct AtomItems {
    int first = 0;
    int count = 0;
  };
  // Where two spreads differ, in sums of weights.
  struct Difference {
    bool crossed = false;
    bool crossed_outside = false;       // both items outside of level 0
    bool crossed_from_outside = false;  // the item before is
    bool aligned = true;                // items that meet have one size
    int beyond = 0;                     // what only `from` cuts
    int beyond_outside = 0;
    int held_outside = 0;  // what `from` cuts by outer items where the target does not
  };
  // Weights of what is pending before and after.
  struct PendingWeights {
    unsigned before = 0;  // atoms
    unsigned after = 0;
    int reduced = 0;
    int reduced_outside = 0;
    int kept = 0;
    int kept_inside = 0;
  };
  [[nodiscard]] const PendingWeights& pending_weights(const Packed& from, const Packed& to);
  [[nodiscard]] int64_t reducing_bound_ps(const Difference& d, const PendingWeights& w, const Packed& to) const;
  template <size_t words, bool weighted>
  [[nodiscard]] Difference compare(const Packed& from, const Packed& to) const;
  [[nodiscard]] Difference difference(const Packed& from, const Packed& to) const;

  // Of what a rank misses; over the inner level alone or over both.
  [[nodiscard]] int64_t inner_transfer(int taken, int beyond, bool crossed, bool reaches_out) {
    int64_t& known = transfers_[slot_of(reaches_out ? 1 : 0, taken, beyond, crossed)];
    if (known < 0) known = transfer_ps(missing(taken, beyond, crossed), 1, bandwidth_inside_ + (reaches_out ? bandwidth_outside_ : 0));
    return known;
  }
  // Of what a unit misses, a member's share. `kept_inside`: weight of pending items inside the unit.
  [[nodiscard]] int64_t outer_transfer(int taken, int beyond, bool crossed, int kept_inside) {
    int64_t& known = transfers_[slot_of(2, taken, beyond, crossed)];
    if (known >= 0 && kept_inside == 0) return known;
    const int64_t share = ceil_div(saturating_mul(missing(taken, beyond, crossed), power(kept_inside)), power(inside_));
    const int64_t ps = transfer_ps(share, 1, bandwidth_outside_);
    if (kept_inside == 0) known = ps;
    return ps;
  }
  [[nodiscard]] int64_t missing(int taken, int beyond, bool crossed) const {
    const int64_t wanted = p_->digit_bytes / power(taken);
    return crossed ? wanted : wanted - wanted / power(beyond);
  }
  [[nodiscard]] size_t slot_of(int table, int taken, int beyond, bool crossed) const {
    const int n = total_;
    return as_index((table * (n + 1) + taken) * (n + 2) + (crossed ? n + 1 : beyond));
  }
  [[nodiscard]] int64_t power(int n) const { return power_[static_cast<size_t>(n)]; }

  const PlanProblem* p_ = nullptr;
  bool usable_ = false;
  bool one_word_ = false;  // every slot lies in the first word
  bool weighted_ = false;  // some weight is not 1
  int slots_a_dim_ = 0;
  size_t outer_level_ = 0;  // 0: every item is inside
  int inside_ = 0;          // weight inside a unit of level 0
  int total_ = 0;           // of every item
  int64_t bandwidth_inside_ = 0;
  int64_t bandwidth_outside_ = 0;
  int64_t latency_inside_ = 0;   // ps; the least at or outside of level 0
  int64_t latency_outside_ = 0;  // at or outside of the outer level
  std::array<AtomItems, max_atoms> items_{};
  std::array<uint8_t, 16> weight_{};
  std::array<uint8_t, 16> outer_{};
  std::array<int64_t, 64> power_{};  // of the base
  PendingWeights pending_;           // those last asked for
  std::vector<int64_t> transfers_;   // remembered, -1 where not asked yet
};

}  // namespace meshplan
