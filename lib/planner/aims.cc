#include "planner/aims.h"

#include <algorithm>

#include "base/int_math.h"

namespace meshplan {
namespace {

class Lister {
 public:
  Lister(const AimQuestion& q, int64_t& visits, std::vector<Aim>& out)
      : q_(q), p_(*q.problem), visits_(visits), out_(out), movable_(static_cast<uint16_t>(p_.all & ~q.pending & ~q.made)) {
    for (int d = 0; d < p_.dims; ++d) {
      for (int k = 0; k < p_.frozen[static_cast<size_t>(d)]; ++k) frozen_ = static_cast<uint16_t>(frozen_ | 1U << target_at(d, k));
    }
    movable_ = static_cast<uint16_t>(movable_ & ~frozen_);
    set_floors();
  }

  bool run() {
    Spread base = like(p_.target);
    for (int d = 0; d < p_.dims; ++d) drop_last(base, p_.dims, d, base.length(d) - p_.frozen[static_cast<size_t>(d)]);
    bool complete = true;
    if (p_.tensor_dim[0] < 0) {
      once(base);
    } else {
      complete = arrange(base, packed_of(base), frozen_items(0), movable_, 0, false);
      if (!complete) {
        out_.clear();
        near_ends();
      }
    }
    std::stable_sort(out_.begin(), out_.end(), [](const Aim& a, const Aim& b) { return a.left < b.left; });
    return complete;
  }

 private:
  [[nodiscard]] int target_at(int d, int k) const { return p_.target.atom[as_index(p_.target.begin_of(d) + k)]; }
  [[nodiscard]] Spread like(const Spread& lists) const {
    Spread s = lists;
    s.pending = q_.pending;
    s.made = q_.made;
    return s;
  }

  // A spread that has another atom than the target at one position holds nothing for some rank: the whole box is still to come; and for
  // some unit, where both atoms lie outside of units. bound_digits says the same of every such spread, so whole branches need no look.
  void set_floors() {
    if (!p_.exact_levels || !p_.even || p_.target.made != q_.made) return;
    const Topology& t = *p_.topology;
    if (!t.model.empty() || !t.tables.empty()) return;
    const DigitMask outside = p_.world.all() & ~p_.world.at_level(0);
    const int64_t bytes = std::min(p_.digit_bytes, p_.digit_reduce_bytes);
    DigitMask target = 0;
    for (int i = 0; i < q_.target->digits.end[static_cast<size_t>(p_.dims - 1)]; ++i)
      target |= DigitMask{1} << q_.target->digits.digit[static_cast<size_t>(i)];
    int64_t all = 0;
    int64_t outer = 0;
    int64_t outer_latency = INT64_MAX;
    for (size_t l = 0; l < t.levels.size(); ++l) {
      if (l > 0) outer_latency = std::min(outer_latency, t.levels[l].latency_ns);
      if (p_.world.at_level(static_cast<int>(l)) == 0) continue;
      all += t.levels[l].mb_per_s;
      if (l > 0) outer += t.levels[l].mb_per_s;
    }
    if (all > 0) floor_ = saturating_add(q_.least_latency_ps, transfer_ps(bytes / p_.world.product(target), 1, all));
    outer_floor_ = floor_;
    if (outer > 0) {
      const int64_t united = bytes / p_.world.product(target & outside);
      const int64_t need = ceil_div(united, p_.world.product(p_.world.at_level(0)));
      outer_floor_ = std::max(floor_, saturating_add(saturating_mul(outer_latency, 1000), transfer_ps(need, 1, outer)));
    }
  }
  // The least that is left where list d gets `atom` at position k instead of what the target has there; 0 where nothing is crossed.
  [[nodiscard]] int64_t floor_of(int d, int k, int atom) const {
    if (k >= p_.target.length(d)) return 0;
    const int wanted = target_at(d, k);
    if (wanted == atom) return 0;
    auto outside = [&](int i) { return p_.world.level(p_.digit_of[static_cast<size_t>(i)][0]) > 0; };
    return floor_ > 0 && outside(atom) && outside(wanted) ? outer_floor_ : floor_;
  }

  // `packed`: of `now`, and `count` the items of list d, where the world packs.
  bool arrange(const Spread& now, const Packed& packed, int count, uint16_t left, int d, bool crossed_here) {
    if (d == p_.dims) {
      if (visits_-- <= 0) return false;
      consider(now, packed);
      return true;
    }
    if (!arrange(now, packed, d + 1 < p_.dims ? frozen_items(d + 1) : 0, left, d + 1, false)) return false;
    const int k = now.length(d);
    for (unsigned rest = left; rest != 0; rest &= rest - 1) {
      const int i = __builtin_ctz(rest);
      const int64_t floor = crossed_here ? 0 : floor_of(d, k, i);
      if (saturating_add(floor, q_.least_latency_ps) > q_.most_ps) continue;
      Spread next = now;
      append(next, p_.dims, d, static_cast<uint8_t>(i));
      if (p_.only_even && !cuts_evenly(p_, next)) continue;
      Packed next_packed = packed;
      const int added = q_.world->usable() ? q_.world->put(next_packed, d, count, i) : 0;
      if (!arrange(next, next_packed, count + added, static_cast<uint16_t>(left & ~(1U << i)), d, crossed_here || floor > 0)) return false;
    }
    return true;
  }
  [[nodiscard]] int frozen_items(int d) const {
    int count = 0;
    if (!q_.world->usable()) return 0;
    for (int k = 0; k < p_.frozen[static_cast<size_t>(d)]; ++k) count += q_.world->items_of(target_at(d, k));
    return count;
  }

  // `s` cuts evenly where only such spreads are looked at.
  void consider(const Spread& s, const Packed& packed) {
    View view;
    view.packed = packed;
    const bool packs = q_.world->always_told();
    if (!packs) view.digits = digits_of(p_, s);
    const int64_t left = s == p_.target ? 0 : q_.world->bound_ps(s, view, p_.target, *q_.target);
    if (saturating_add(left, q_.least_latency_ps) > q_.most_ps) return;
    if (packs) view.digits = digits_of(p_, s);
    const int64_t before = q_.world->bound_ps(p_.source, *q_.source, s, view);
    if (saturating_add(left, before) > q_.most_ps) return;
    if (p_.state_limit != INT64_MAX && saturating_mul(box_elements(p_, s), p_.element) > p_.state_limit) return;
    out_.push_back({left, before, INT64_MAX, view, s});
  }

  // Too many arrangements: the target, what one gather, slice or move leads from to it, and the same around the source.
  void near_ends() {
    for (const Spread* end : {&p_.target, &p_.source}) {
      Spread base = like(*end);
      // Atoms that are not movable here leave the lists' ends; an end that has one elsewhere has no counterpart.
      for (int d = 0; d < p_.dims; ++d) {
        while (base.length(d) > p_.frozen[static_cast<size_t>(d)] &&
               (movable_ >> base.atom[static_cast<size_t>(base.end_of(d) - 1)] & 1) == 0) {
          drop_last(base, p_.dims, d, 1);
        }
      }
      if ((sharding(base, p_.dims) & ~movable_ & ~frozen_) != 0) continue;
      once(base);
      extend(base, 3);
      for (int d = 0; d < p_.dims; ++d) {
        Spread cut = base;
        while (cut.length(d) > p_.frozen[static_cast<size_t>(d)]) {
          drop_last(cut, p_.dims, d, 1);
          once(cut);
          extend(cut, 1);
        }
      }
    }
  }
  void extend(const Spread& base, int depth) {
    if (depth == 0) return;
    for (unsigned free = movable_ & ~sharding(base, p_.dims); free != 0; free &= free - 1) {
      for (int d = 0; d < p_.dims; ++d) {
        Spread next = base;
        append(next, p_.dims, d, static_cast<uint8_t>(__builtin_ctz(free)));
        once(next);
        extend(next, depth - 1);
      }
    }
  }
  [[nodiscard]] Packed packed_of(const Spread& s) const { return q_.world->usable() ? q_.world->pack(s) : Packed{}; }
  void once(const Spread& s) {
    if (p_.only_even && !cuts_evenly(p_, s)) return;
    if (std::none_of(out_.begin(), out_.end(), [&](const Aim& a) { return a.at == s; })) consider(s, packed_of(s));
  }

  const AimQuestion& q_;
  const PlanProblem& p_;
  int64_t& visits_;
  std::vector<Aim>& out_;
  uint16_t movable_;
  uint16_t frozen_ = 0;
  int64_t floor_ = 0;
  int64_t outer_floor_ = 0;
};

}  // namespace

bool list_aims(const AimQuestion& question, int64_t& visits, std::vector<Aim>& out) {
  out.clear();
  return Lister(question, visits, out).run();
}

}  // namespace meshplan
