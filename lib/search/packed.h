// States as bits of words, so that the bound between two of them takes a few instructions
//
// Where every digit (transfer/digits.h) has one size, each product over digits is a power of it:
// only counts of digits matter. Place k of tensor dim d is slot d * digits + k; where there are few
// slots they lie four bits apart in one word, else one bit apart in two:
//
//     taken    the slot holds a digit     name     the digit's number: a nibble a slot, or a
//                                                  word a bit
//     outer    it lies outside of level 0
//
// What `from` holds beyond the target is taken(from) & ~taken(to); a slot is crossed where both are
// taken by different digits.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "base/int_math.h"
#include "search/exchange_way.h"
#include "search/search_nodes.h"
#include "search/search_state.h"

namespace meshplan {

constexpr size_t packed_words = 2;
__extension__ using uint128 = unsigned __int128;
constexpr int packed_slots = 64 * static_cast<int>(packed_words);

struct Packed {
  using Words = std::array<uint64_t, packed_words>;
  Words taken{};
  Words outer{};
  std::array<Words, 5> name{};  // few slots: name[0][0] alone
  Words outer_in_list{};        // bit d * digits + n: list d holds digit n, outside of level 0
  uint32_t digits = 0;          // in any list
  uint16_t pending = 0;         // sub-axes
  uint16_t made = 0;
  uint8_t total = 0;   // digits
  uint8_t outers = 0;  // of them outside of level 0
};
static_assert(max_digits <= 32);

// What units of level 0 have between their members: of a state the digits outside of that level,
// and how many inside of it are pending.
struct OuterPart {
  Packed at;             // with those outside alone taken
  uint32_t pending = 0;  // digits outside
  int inner_pending = 0;
};

class PackedWorld {
 public:
  // Sets up for one question; storage is kept.
  void reset(const PlanProblem& p);
  // Whether the question can be packed: digits of one size, boxes even, at most one level in use
  // beyond the innermost, few enough digits. Where it cannot, states pack to nothing, and bounds
  // are asked of bound_between.
  [[nodiscard]] bool usable() const { return usable_; }

  [[nodiscard]] Packed pack(const SearchState& s) const;
  // Puts a sub-axis into dim d behind `count` digits; returns how many it has. Nothing where the
  // world is not usable.
  int put(Packed& packed, int d, int count, int sub_axis) const;
  [[nodiscard]] int digits_in(const SearchState& s, int d) const {
    int count = 0;
    for (int i = s.begin_of(d); i < s.end_of(d); ++i) count += digits_of(s.sub_axis[as_index(i)]);
    return count;
  }
  [[nodiscard]] int digits_of(int sub_axis) const {
    return digits_[static_cast<size_t>(sub_axis)].count;
  }
  [[nodiscard]] int outer_digits_of(int sub_axis) const {
    return digits_[static_cast<size_t>(sub_axis)].outers;
  }

  // bound_between's ps of any two states. Law: equal to it.
  [[nodiscard]] int64_t bound_ps(const SearchState& from, const Packed& packed_from,
                                 const SearchState& to, const Packed& packed_to,
                                 int64_t enough_ps = INT64_MAX) {
    return usable_ ? bound_ps(packed_from, packed_to)
                   : bound_between(*p_, from, to, false, enough_ps).ps;
  }
  [[nodiscard]] int64_t bound_ps(const Packed& from, const Packed& to);
  // several_between_ps of any two states. Law: equal to it.
  [[nodiscard]] int64_t several_ps(const SearchState& from, const Packed& packed_from,
                                   const SearchState& to, const Packed& packed_to) {
    return usable_ ? several_ps(packed_from, packed_to) : several_between_ps(*p_, from, to);
  }
  [[nodiscard]] int64_t several_ps(const Packed& from, const Packed& to);
  // bound_between's bytes. Law: equal to them.
  [[nodiscard]] int64_t bound_bytes(const Packed& from, const Packed& to);
  // What bound_ps to the target is at least from every state that `part` grows to. Digits are only
  // put behind those that the lists have.
  [[nodiscard]] int64_t left_from_growing_ps(const SearchState& part, const Packed& packed,
                                             const Packed& target) {
    return usable_ ? bound_from_growing_ps(packed, target) : listed_left_from_growing_ps(part);
  }
  [[nodiscard]] int64_t bound_from_growing_ps(const Packed& part, const Packed& to);
  // The same to every state that `part` grows to where lists before dim `open` are whole and in the
  // end there are at most `total` digits, `outers` of them outside of level 0, none of them
  // pending.
  [[nodiscard]] int64_t bound_to_growing_ps(const Packed& from, const Packed& part, int open,
                                            int total, int outers);
  // What one exchange takes at least that makes units fetch something from outside: alike for all
  // `to` with the same digits in the same outer slots, and the same pending.
  [[nodiscard]] int64_t outer_bound_ps(const Packed& from, const Packed& to);
  // What any plan by way of states takes at least where an outer digit moves within its list: the
  // finest part of the tensor over the outer links. 0 where none does, or where digits are made
  // pending.
  //
  //     2 hosts of 4      [0][] -> [210][]      [][201] -> [2][01]      1/8 of the tensor
  //
  // To a deeper slot: the digit leaves its slot in some step. If another takes the slot there, some
  // rank gets a whole box from outside. If it is left empty, some rank gets a share 1 - 1/size of
  // its box from outside, and the digit is not in its new slot yet, as lists have no gaps: either
  // it is in no list, and the box is larger by it, or it has to leave another slot later, which
  // costs such a share again. To a shallower slot: what enters that slot last is sent as that was
  // received. Where all may fetch, a share 1 - 1/size of that, as others of the unit help.
  // `several`: of plans that communicate in two steps or more.
  [[nodiscard]] int64_t reordered_ps(const Packed& from, const Packed& to,
                                     bool several = false) const;
  [[nodiscard]] OuterPart outer_part(const Packed& at) const;
  // What one step takes at least by what units fetch and reduce, with slices before and after it. 0
  // where slices and what members move between them suffice; INT64_MAX where something is pending
  // after it that was not before. Nothing is made pending.
  //
  // Members that differ on what stays pending inside of the unit have no value in common, and each
  // set of them moves the tensor on links of its own: k such digits of size s cost as s^k tensors,
  // whatever the step. Of one set, of whose unit r further inner digits are reduced, and o outer
  // ones, `united` what its members want, `own` what they hold of that:
  //
  //     an exchange      every contribution goes to the target's owners as it is, so it comes to
  //                      the unit: (united * s^o - own) * s^r over the outer links
  //     reduce_scatter   its members take shares of the unit's own sum: united * (s^o - 1) over the
  //                      outer links whatever r is, and united * s^o * (s^r - 1) inside; its lists
  //                      only grow, by every digit that it reduces
  //     all_reduce       twice what a reduce_scatter does of what it leads to, which may be sliced
  //                      by what was reduced and then is
  //     r alone          (s^r - 1) of what a member wants come to it from its unit:
  //                      united * (s^r - 1) inside, in all three
  //
  // Shares of the unit's members: united / its ranks, as no member wants less than its share.
  //
  //     2 x 2 hosts, P(sum)P(sum) -> S(0)R      an exchange: three values of half of the elements
  //     2 hosts of 2, P(sum)P(sum) -> S(0)S(0)  an exchange: both of the other host's values of a
  //                                             half; a reduce_scatter: their sum
  [[nodiscard]] int64_t outer_step_ps(const OuterPart& from, const OuterPart& to);
  // Where it takes any time, from what so many digits are pending of inside of units.
  [[nodiscard]] int64_t least_outer_step_ps(int inner_pending) const {
    return inner_pending > 0 ? std::min(least_outer_step_ps_, least_inner_step_ps_)
                             : least_outer_step_ps_;
  }
  // Whether two states have the same outer digits in the same slots.
  [[nodiscard]] bool same_outside(const Packed& a, const Packed& b) const;
  [[nodiscard]] size_t hash_outside(const Packed& packed) const;

  // What a step takes at least in which a rank receives so many bytes of so many ranks.
  [[nodiscard]] int64_t least_step_ps(int64_t bytes, int64_t ranks) const {
    return p_->times.ps({ranks}, bytes, 1, links(true));
  }
  // What a step takes at least that moves nothing.
  [[nodiscard]] int64_t another_step_ps() const { return another_step_ps_; }
  // What so many peers cost a rank at least: as many as its unit has may cost the least of any.
  [[nodiscard]] int64_t peers_ps(int64_t peers) const {
    const int64_t inside = std::min(peers, power(inside_) - 1);
    return saturating_add(saturating_mul(inside, least_per_peer_),
                          saturating_mul(peers - inside, least_outer_per_peer_));
  }
  // Law: never above price_between; in one phase never less from a state that holds less.
  [[nodiscard]] ExchangeFloors exchange_floors(const Packed& from, const Packed& to);

 private:
  struct SubAxisDigits {
    int first = 0;
    int count = 0;
    int outers = 0;
    uint32_t set = 0;        // digits
    uint32_t outer_set = 0;  // of them outside of level 0
    // The words of few slots with the sub-axis's digits in the first ones.
    uint64_t taken = 0;
    uint64_t outer = 0;
    uint64_t name = 0;
  };
  [[nodiscard]] SubAxisDigits digits_of_sub_axis(int sub_axis) const;
  // Where states do not pack: worked out once a state, as many steps lead to each.
  [[nodiscard]] int64_t listed_left_from_growing_ps(const SearchState& part);
  // reset in parts: which levels are in use (false: too many), slots, times.
  bool find_outer_level();
  // Everything that figures are worked out from.
  using Basis = std::array<int64_t, 20>;
  [[nodiscard]] Basis basis_now() const;
  void lay_out_slots();
  void time_levels();
  // Where two states differ, in digits: numbers of a few bits each in one word, as figures are
  // found by them. Each is set once.
  struct Difference {
    enum At : int {
      held_outside_at = 12,
      beyond_outside_at = 18,
      beyond_at = 24,
      crossed_at = 30,
      crossed_outside_at = 31,
      crossed_from_outside_at = 32,
      apart_outside_at = 35,
      apart_at = 40,
    };
    void set(At at, int number) { bits |= static_cast<uint64_t>(number) << at; }
    void set(At at, bool holds) { bits |= static_cast<uint64_t>(holds) << at; }
    [[nodiscard]] bool holds(At at) const { return (bits >> at & 1) != 0; }
    [[nodiscard]] int number(At at) const { return static_cast<int>(bits >> at & 63); }

    [[nodiscard]] bool crossed() const { return holds(crossed_at); }
    // Both digits lie outside of level 0; the one before does.
    [[nodiscard]] bool crossed_outside() const { return holds(crossed_outside_at); }
    [[nodiscard]] bool crossed_from_outside() const { return holds(crossed_from_outside_at); }
    // What only `from` cuts, and of that by outer digits; what it cuts by outer digits where the
    // target does not.
    [[nodiscard]] int beyond() const { return number(beyond_at); }
    [[nodiscard]] int beyond_outside() const { return number(beyond_outside_at); }
    [[nodiscard]] int held_outside() const { return number(held_outside_at); }
    // Of sums: at least so many of the digits that cut both, elsewhere, say something by themselves
    // of where elements are (share_apart of cost/bounds.cc).
    [[nodiscard]] int apart() const { return number(apart_at) & 31; }
    [[nodiscard]] int apart_outside() const { return number(apart_outside_at) & 31; }

    uint64_t bits = 0;
  };
  // Digits of what is pending before and after.
  struct PendingDigits {
    unsigned number = 0;  // among those counted on one basis; 0: nothing is pending
    unsigned before = 0;  // sub-axes
    unsigned after = 0;
    unsigned joined = 0;  // sub-axes (joined_sub_axes)
    int reduced = 0;
    int reduced_outside = 0;
    int kept = 0;  // and not joined
    int kept_inside = 0;
    int kept_at_once_inside = 0;  // by one step, joined or not
    int joined_count = 0;
    int joined_outside = 0;
  };
  [[nodiscard]] const PendingDigits& pending_digits(const Packed& from, const Packed& to) {
    const unsigned before = from.pending | from.made;
    const unsigned after = to.pending | to.made;
    if ((before | after) == 0) return none_pending_;
    const unsigned joined = (to.made & ~from.made) | (to.pending & ~from.pending) |
                            (from.pending & to.pending & p_->kept);
    PendingDigits& known = pending_[(before * 7 + after * 3 + joined) % pending_.size()];
    if (known.before != before || known.after != after || known.joined != joined)
      count_pending(before, after, joined, known);
    return known;
  }
  void forget_figures();
  void count_pending(unsigned before, unsigned after, unsigned joined, PendingDigits& pending);
  // Figures are functions of a few small numbers, which many pairs of states have in common: those
  // last worked out are kept, from one question to the next where it has the same basis.
  struct Figures {
    uint64_t key = 0;  // 0: none
    int64_t ps = 0;
    int64_t two_phases_ps = 0;
    int64_t by_all_ps = 0;
    int64_t far_share_ps = 0;  // in one phase
  };
  enum class FigureKind : uint8_t { bound, growing, floors, several };
  // Where they are kept, with `is_known` set where they are those asked for.
  Figures& figures_of(FigureKind kind, const Difference& d, const PendingDigits& w, int total,
                      int outers, bool& is_known) {
    // Around the bits of the difference.
    const uint64_t key = counted_on_ | uint64_t{w.number} << 45 | d.bits |
                         static_cast<uint64_t>(kind) << 33 | static_cast<uint64_t>(total) << 6 |
                         static_cast<uint64_t>(outers);
    Figures& known = figures_[key * 0x9e3779b97f4a7c15U >> (64 - figures_bits)];
    is_known = known.key == key;
    known.key = key;
    return known;
  }
  // `growing`: one of the ends is not whole yet, and may come to need the links of every level.
  [[nodiscard]] int64_t least_ps(const Difference& d, const PendingDigits& w, int total, int outers,
                                 FigureKind kind) {
    bool is_known = false;
    Figures& known = figures_of(kind, d, w, total, outers, is_known);
    if (is_known) return known.ps;
    several_ = kind == FigureKind::several;
    known.ps = w.joined != 0 ? joined_ps(d, w, total, outers)
                             : ps_of(d, w, total, outers, kind == FigureKind::growing);
    return known.ps;
  }
  [[nodiscard]] int64_t ps_of(const Difference& d, const PendingDigits& w, int total, int outers,
                              bool growing);
  [[nodiscard]] int64_t joined_ps(const Difference& d, const PendingDigits& w, int total,
                                  int outers) const;
  [[nodiscard]] int64_t joined_missing(const Difference& d, int total) const;
  // Of the whole tensor, in the narrower of the two dtypes that it moves in.
  [[nodiscard]] int64_t least_bytes() const {
    return std::min(p_->digit_bytes, p_->digit_reduce_bytes);
  }
  // `from` without the digits of these sub-axes: what the ranks that differ on them alone hold
  // together.
  [[nodiscard]] Packed without(const Packed& from, unsigned sub_axes) const;
  [[nodiscard]] int64_t carried(int contributions, int copies, int apart) const;
  [[nodiscard]] int64_t reducing_bytes(const Difference& d, const PendingDigits& w,
                                       int total) const;
  [[nodiscard]] int64_t reducing_ps(const Difference& d, const PendingDigits& w, int total,
                                    int outers, bool growing) const;
  // `looked`: slots where what only `from` has counts.
  [[nodiscard]] Difference difference(const Packed& from, const Packed& to,
                                      const Packed::Words& looked) const;
  [[nodiscard]] static Difference difference_of_few(const Packed& from, const Packed& to,
                                                    uint64_t looked);
  [[nodiscard]] Difference difference_of_many(const Packed& from, const Packed& to,
                                              const Packed::Words& looked) const;
  // The same between `to` and what ranks that differ on what is joined alone hold together.
  [[nodiscard]] Difference difference_joined(const Packed& from, const Packed& to,
                                             const PendingDigits& w,
                                             const Packed::Words& looked) const {
    return few_ && w.number == 0 ? difference_of_few(from, to, looked[0])
                                 : difference_of_sums(from, to, w, looked);
  }
  [[nodiscard]] Difference difference_of_sums(const Packed& from, const Packed& to,
                                              const PendingDigits& w,
                                              const Packed::Words& looked) const;
  void count_apart(const Packed& from, const Packed& to, Difference& d) const;
  [[nodiscard]] const Packed::Words& every_slot() const {
    return slots_before_[static_cast<size_t>(p_->dims)];
  }
  [[nodiscard]] Packed::Words differing(const Packed& a, const Packed& b) const;
  [[nodiscard]] int count(const Packed::Words& marks) const;
  // Of few slots, in the first word.
  [[nodiscard]] static uint64_t differing_of_few(const Packed& a, const Packed& b);
  [[nodiscard]] static int count_of_few(uint64_t marks);

  [[nodiscard]] int64_t one_phase_floor_ps(const Difference& d, const PendingDigits& w, int total,
                                           bool far_share);
  [[nodiscard]] static bool unevenly_missed(const Difference& d, const PendingDigits& w);
  [[nodiscard]] bool has_far_holders(const Packed& from, const PendingDigits& w) const;
  [[nodiscard]] int64_t two_phases_floor_ps(const Difference& d, const PendingDigits& w, int total,
                                            int outers);
  [[nodiscard]] int64_t by_all_floor_ps(const Difference& d, int total, int outers);
  [[nodiscard]] int64_t in_two_phases_ps(int64_t fetched, int64_t inside) const;
  // Levels in use, a bit each.
  [[nodiscard]] uint32_t links(bool outside) const {
    return (inside_ > 0 ? 1U : 0U) | (outside && outer_level_ > 0 ? 1U << outer_level_ : 0U);
  }
  // Bytes that so many ranks carry together.
  struct Carried {
    int64_t bytes = 0;
    int64_t ranks = 1;
  };
  // What steps take at least that bring the parts of so many digits to one rank and carry bytes:
  // inside of units, over every link or over those outside alone.
  [[nodiscard]] int64_t inside_ps(int digits, const Carried& carried, bool every_link) const {
    return p_->times.ps({power(digits), 0, false, several_}, carried.bytes, carried.ranks,
                        links(every_link));
  }
  [[nodiscard]] int64_t reaching_out_ps(int digits, const Carried& carried) const {
    return p_->times.ps({power(digits), static_cast<int>(outer_level_), false, several_},
                        carried.bytes, carried.ranks, links(true));
  }
  // Of what lies inside of units: a gather may bring some of it from outside all the same, where
  // slices left shares of it there, at the latency of that level.
  [[nodiscard]] int64_t within_unit_ps(int digits, const Carried& carried, bool growing) const {
    const int64_t inside = inside_ps(digits, carried, growing);
    return growing || outer_level_ == 0 ? inside
                                        : std::min(inside, reaching_out_ps(digits, carried));
  }
  [[nodiscard]] int64_t outside_ps(int digits, const Carried& carried) const {
    return p_->times.ps({power(digits), static_cast<int>(outer_level_), true, several_},
                        carried.bytes, carried.ranks, 1U << outer_level_);
  }
  // What a unit misses of `bytes`, of which it wants one part and has one of so many contributions.
  [[nodiscard]] int64_t missing_contributions(int64_t bytes, int taken, const Difference& d,
                                              int reduced) const;
  // What a unit misses, which its members share. `kept_inside`: pending digits inside the unit.
  [[nodiscard]] Carried fetched(int taken, int beyond, bool crossed, int kept_inside) {
    return {saturating_mul(missing(taken, beyond, crossed), power(kept_inside)), power(inside_)};
  }
  // The same over the outer links in an exchange.
  [[nodiscard]] int64_t fetch_ps(int taken, int beyond, bool crossed, int kept_inside) {
    int64_t& ps = known_[slot_of(2, taken, beyond, crossed)];
    if (ps >= 0 && kept_inside == 0) return ps;
    const Carried carried = fetched(taken, beyond, crossed, kept_inside);
    const int64_t transfer = transfer_ps(carried.bytes, carried.ranks, exchanged_outside_);
    if (kept_inside == 0) ps = transfer;
    return transfer;
  }
  [[nodiscard]] int64_t missing(int taken, int beyond, bool crossed) {
    int64_t& bytes = known_[slot_of(0, taken, beyond, crossed)];
    if (bytes < 0) {
      bytes = floor_div(p_->digit_bytes, power(taken));
      if (!crossed) bytes -= floor_div(bytes, power(beyond));
    }
    return bytes;
  }
  [[nodiscard]] int64_t share(int taken, int beyond, bool crossed, int kept_inside) {
    int64_t& bytes = known_[slot_of(1, taken, beyond, crossed)];
    if (bytes >= 0 && kept_inside == 0) return bytes;
    const int64_t share = ceil_div(
        saturating_mul(missing(taken, beyond, crossed), power(kept_inside)), power(inside_));
    if (kept_inside == 0) bytes = share;
    return share;
  }
  // Bytes of the tensor cut so many times, while it is reduced or not.
  [[nodiscard]] int64_t piece(int cuts, bool reduced) {
    int64_t& bytes = pieces_[as_index(2 * cuts + (reduced ? 1 : 0))];
    if (bytes < 0)
      bytes = floor_div(reduced ? p_->digit_reduce_bytes : p_->digit_bytes, power(cuts));
    return bytes;
  }
  [[nodiscard]] size_t slot_of(int table, int taken, int beyond, bool crossed) const {
    const int n = total_;
    return as_index((table * (n + 1) + taken) * (n + 2) + (crossed ? n + 1 : beyond));
  }
  // Time of bytes over a level's links in an exchange: as traffic_ps has it, without a division.
  class Pace {
   public:
    Pace() = default;
    explicit Pace(const TopologyLevel& level);
    [[nodiscard]] int64_t divisor() const { return whole_ ? divisor_ : -divisor_; }
    [[nodiscard]] int64_t ps(int64_t bytes) const {
      if (!whole_) bytes = saturating_mul(bytes, 100);
      uint64_t scaled = 0;
      if (__builtin_mul_overflow(static_cast<uint64_t>(bytes), uint64_t{1'000'000}, &scaled))
        return transfer_ps(bytes, 1, divisor_);
      // The reciprocal is rounded down: one less at most.
      uint64_t quotient = static_cast<uint64_t>(static_cast<uint128>(scaled) * reciprocal_ >> 64);
      uint64_t rest = scaled - quotient * static_cast<uint64_t>(divisor_);
      if (rest >= static_cast<uint64_t>(divisor_)) {
        ++quotient;
        rest -= static_cast<uint64_t>(divisor_);
      }
      return static_cast<int64_t>(quotient + (rest != 0 ? 1 : 0));
    }

   private:
    bool whole_ = true;  // exchanges reach the whole bandwidth
    int64_t divisor_ = 1;
    uint64_t reciprocal_ = 0;  // of the divisor, times 2^64
  };
  [[nodiscard]] int64_t power(int n) const { return power_[static_cast<size_t>(n)]; }

  const PlanProblem* p_ = nullptr;
  NodeTable growing_;                  // states that were asked for
  std::vector<int64_t> growing_left_;  // from each, ps
  bool usable_ = false;
  bool few_ = false;  // slots lie four bits apart in the first word
  int name_bits_ = 0;
  size_t outer_level_ = 0;         // 0: every digit is inside
  int inside_ = 0;                 // digits inside a unit of level 0
  uint32_t outer_set_ = 0;         // digits outside of it
  int total_ = 0;                  // all digits, and slots a dim
  int64_t exchanged_outside_ = 0;  // MB/s of exchanges over the outer links
  Pace pace_inside_;               // of exchanges
  Pace pace_outside_;              // of the outer level
  Pace pace_together_;             // of both at once, as a far share has it
  int64_t first_latency_ = 0;      // ps; of level 0
  int64_t outer_latency_ = 0;      // of the outer level
  int64_t first_per_peer_ = 0;     // ps
  int64_t outer_per_peer_ = 0;
  int64_t least_per_peer_ = 0;
  int64_t another_step_ps_ = 0;
  int64_t least_outer_step_ps_ = 0;
  int64_t least_inner_step_ps_ = 0;
  int64_t least_outer_per_peer_ = 0;  // at or outside of the outer level
  // Of one part of the finest from outside; in two steps or more.
  std::array<int64_t, 2> finest_part_ps_{};
  std::array<Packed::Words, max_search_dims + 1> slots_before_{};  // of dims before the d-th
  std::array<SubAxisDigits, max_sub_axes> digits_{};
  std::array<bool, max_digits> outer_{};             // by digit
  std::array<int64_t, 2 * max_digits + 1> power_{};  // of the size
  PendingDigits none_pending_;
  std::array<PendingDigits, 32> pending_;  // those last asked for, by hash
  unsigned pending_counted_ = 0;
  static constexpr int figures_bits = 10;
  std::array<Figures, size_t{1} << figures_bits> figures_{};  // by hash
  struct OuterStep {
    uint64_t key = 0;  // 0: none
    int64_t ps = 0;
  };
  std::array<OuterStep, 256> outer_steps_{};  // by hash
  uint64_t counted_on_ = 0;  // a number of the basis in the key's upper bits, never 0
  Basis basis_{};
  LeastTimes basis_times_;  // belongs to it
  bool several_ = false;    // what is worked out now is of two steps or more
  // Remembered, -1 where not asked yet.
  std::vector<int64_t> known_;
  std::array<int64_t, 4 * max_digits + 2> pieces_{};
};

}  // namespace meshplan
