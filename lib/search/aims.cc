#include "search/aims.h"

#include <algorithm>

#include "base/int_math.h"
#include "search/last_step.h"

namespace meshplan {
namespace {

// Of so many sub-axes there are few arrangements, of which bounds on what parts of them grow to
// refuse next to none.
constexpr int few_sub_axes = 3;

class Lister {
 public:
  Lister(const AimQuestion& q, int64_t& visits, AimList& out)
      : q_(q),
        p_(*q.problem),
        world_(*q.world),
        visits_(visits),
        out_(out),
        frozen_(frozen_sub_axes(p_)),
        movable_(static_cast<uint16_t>(p_.all & ~q.pending & ~q.made & ~frozen_)),
        source_elements_(box_elements(p_, p_.source)),
        target_elements_(box_elements(p_, p_.target)) {}

  bool run() {
    SearchState base = like(p_.target);
    for (int d = 0; d < p_.dims; ++d)
      drop_last(base, p_.dims, d, base.length(d) - p_.frozen[static_cast<size_t>(d)]);
    bool complete = true;
    if (is_scalar(p_)) {
      once(base);
    } else {
      Room room;
      bounds_parts_ = __builtin_popcount(movable_) > few_sub_axes;
      for (unsigned left = movable_; left != 0; left &= left - 1) {
        room.digits += world_.digits_of(__builtin_ctz(left));
        room.outers += world_.outer_digits_of(__builtin_ctz(left));
      }
      const Packed packed = world_.pack(base);
      const int64_t left = least_left(base, packed);
      if (useful(left, q_.least_latency_ps))
        complete = arrange(base, packed, frozen_digits(0), movable_, room, 0, left);
      if (!complete) {
        out_.aims.clear();
        out_.keys.clear();
        near_ends();
      }
    }
    if (world_.usable()) number_groups();
    sort_aims(out_);
    return complete;
  }

 private:
  // Digits of the sub-axes that may still be placed.
  struct Room {
    int digits = 0;
    int outers = 0;
  };

  [[nodiscard]] int target_at(int d, int k) const {
    return p_.target.sub_axis[as_index(p_.target.begin_of(d) + k)];
  }
  [[nodiscard]] SearchState like(const SearchState& lists) const {
    SearchState s = lists;
    s.pending = q_.pending;
    s.made = q_.made;
    return s;
  }
  [[nodiscard]] int frozen_digits(int d) const {
    int count = 0;
    if (!world_.usable()) return 0;
    for (int k = 0; k < p_.frozen[static_cast<size_t>(d)]; ++k)
      count += world_.digits_of(target_at(d, k));
    return count;
  }
  // What any plan takes from every state that `part` grows to.
  [[nodiscard]] int64_t least_left(const SearchState& part, const Packed& packed) const {
    if (!bounds_parts_) return 0;
    return world_.left_from_growing_ps(part, packed, *q_.target);
  }

  // Puts sub-axes of `free` into list d and those behind it. `packed`: of `now`; `count`: digits in
  // list d. `left`: the bound from what `now` grows to.
  bool arrange(const SearchState& now, const Packed& packed, int count, uint16_t free, Room room,
               int d, int64_t left) {
    if (d + 1 < p_.dims) {
      if (!world_.usable() || !bounds_parts_ ||
          useful(left,
                 world_.bound_to_growing_ps(*q_.source, packed, d + 1, packed.total + room.digits,
                                            packed.outers + room.outers))) {
        if (!arrange(now, packed, frozen_digits(d + 1), free, room, d + 1, left)) return false;
      }
    } else {
      keep(now, packed);
    }
    for (unsigned rest = free; rest != 0; rest &= rest - 1) {
      const int i = __builtin_ctz(rest);
      if (visits_-- <= 0) return false;
      SearchState next = now;
      append(next, p_.dims, d, static_cast<uint8_t>(i));
      if (p_.only_even && !cuts_evenly(p_, next)) continue;
      Packed next_packed = packed;
      const int added = world_.put(next_packed, d, count, i);
      const int64_t next_left = least_left(next, next_packed);
      if (!useful(next_left, q_.least_latency_ps)) continue;
      const Room next_room{room.digits - added,
                           room.outers - (added > 0 ? world_.outer_digits_of(i) : 0)};
      if (!arrange(next, next_packed, count + added, static_cast<uint16_t>(free & ~(1U << i)),
                   next_room, d, next_left))
        return false;
    }
    return true;
  }
  [[nodiscard]] bool useful(int64_t left, int64_t before) const {
    return saturating_add(left, before) <= q_.most_ps;
  }

  void keep(const SearchState& s, const Packed& packed) {
    int64_t least_before = q_.least_latency_ps;
    if (!world_.usable()) {
      const int64_t elements = box_elements(p_, s);
      least_before =
          std::max(least_before, larger_box_ps(p_, p_.source, s, source_elements_, elements));
      if (!useful(larger_box_ps(p_, s, p_.target, elements, target_elements_), least_before))
        return;
    }
    int64_t left =
        s == p_.target ? 0 : world_.bound_ps(s, packed, p_.target, *q_.target, q_.most_ps);
    if (!useful(left, least_before)) return;
    int64_t before = world_.bound_ps(p_.source, *q_.source, s, packed, q_.most_ps - left);
    if (world_.usable()) before = std::max(before, world_.reordered_ps(*q_.source, packed));
    if (!useful(left, before)) return;
    left = rest_floor_ps(p_, world_, s, packed, *q_.target, left, q_.least_latency_ps > 0);
    if (!useful(left, std::max(before, q_.least_latency_ps))) return;
    if (p_.state_limit != INT64_MAX &&
        saturating_mul(box_elements(p_, s), p_.element) > p_.state_limit)
      return;
    out_.keys.push_back({left, INT64_MAX, static_cast<uint32_t>(out_.aims.size()), 0});
    out_.aims.push_back({before, packed, s});
  }

  // In the order of listing.
  void number_groups() {
    thread_local std::vector<uint32_t> slots;   // 1 + the number of a group
    thread_local std::vector<uint32_t> firsts;  // the first aim of each group
    size_t size = 16;
    while (size < 2 * out_.keys.size()) size *= 2;
    slots.assign(size, 0);
    firsts.clear();
    for (AimKey& key : out_.keys) {
      const Packed& packed = out_.aims[key.aim].packed;
      size_t i = world_.hash_outside(packed) & (size - 1);
      while (slots[i] != 0 && !world_.same_outside(packed, out_.aims[firsts[slots[i] - 1]].packed))
        i = (i + 1) & (size - 1);
      if (slots[i] == 0) {
        firsts.push_back(key.aim);
        slots[i] = static_cast<uint32_t>(firsts.size());
      }
      key.group = slots[i] - 1;
    }
  }

  // Too many arrangements: the target, what one gather, slice or move leads from to it, and the
  // same around the source.
  void near_ends() {
    for (const SearchState* end : {&p_.target, &p_.source}) {
      SearchState base = like(*end);
      // Sub-axes that are not movable here leave the lists' ends; an end that has one elsewhere has
      // no counterpart.
      for (int d = 0; d < p_.dims; ++d) {
        while (base.length(d) > p_.frozen[static_cast<size_t>(d)] &&
               (movable_ >> base.sub_axis[static_cast<size_t>(base.end_of(d) - 1)] & 1) == 0) {
          drop_last(base, p_.dims, d, 1);
        }
      }
      if ((sharding(base, p_.dims) & ~movable_ & ~frozen_) != 0) continue;
      once(base);
      extend(base, 3);
      for (int d = 0; d < p_.dims; ++d) {
        SearchState cut = base;
        while (cut.length(d) > p_.frozen[static_cast<size_t>(d)]) {
          drop_last(cut, p_.dims, d, 1);
          once(cut);
          extend(cut, 1);
        }
      }
    }
  }
  void extend(const SearchState& base, int depth) {
    if (depth == 0) return;
    for (unsigned free = movable_ & ~sharding(base, p_.dims); free != 0; free &= free - 1) {
      for (int d = 0; d < p_.dims; ++d) {
        SearchState next = base;
        append(next, p_.dims, d, static_cast<uint8_t>(__builtin_ctz(free)));
        once(next);
        extend(next, depth - 1);
      }
    }
  }
  void once(const SearchState& s) {
    if (p_.only_even && !cuts_evenly(p_, s)) return;
    if (std::any_of(out_.aims.begin(), out_.aims.end(), [&](const Aim& a) { return a.at == s; }))
      return;
    keep(s, world_.pack(s));
  }

  const AimQuestion& q_;
  const PlanProblem& p_;
  PackedWorld& world_;
  int64_t& visits_;
  AimList& out_;
  uint16_t frozen_;
  uint16_t movable_;
  int64_t source_elements_;  // of the largest box
  int64_t target_elements_;
  bool bounds_parts_ = true;  // whether states are bounded while they grow
};

}  // namespace

void sort_aims(AimList& list) {
  thread_local std::vector<int64_t> nearest;  // the least that is left from an aim of each group
  nearest.clear();
  for (const AimKey& key : list.keys) {
    if (key.group >= nearest.size()) nearest.resize(key.group + 1, INT64_MAX);
    nearest[key.group] = std::min(nearest[key.group], key.left);
  }
  std::sort(list.keys.begin(), list.keys.end(), [](const AimKey& a, const AimKey& b) {
    if (a.group != b.group)
      return nearest[a.group] != nearest[b.group] ? nearest[a.group] < nearest[b.group]
                                                  : a.group < b.group;
    return a.left != b.left ? a.left < b.left : a.aim < b.aim;
  });
  list.groups.clear();
  for (uint32_t i = 0; i < list.keys.size(); ++i) {
    if (i == 0 || list.keys[i].group != list.keys[i - 1].group) list.groups.push_back({i, i});
    ++list.groups.back().end;
  }
}

bool list_aims(const AimQuestion& question, int64_t& visits, AimList& out) {
  out.aims.clear();
  out.keys.clear();
  out.groups.clear();
  return Lister(question, visits, out).run();
}

}  // namespace meshplan
