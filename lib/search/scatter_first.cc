#include "search/scatter_first.h"

#include <algorithm>
#include <array>

#include "base/int_math.h"
#include "search/moves.h"
#include "search/work.h"

namespace meshplan {
namespace {

// States that have more sub-axes than `base` behind their lists, each once.
template <typename Visit>
class Grower {
 public:
  Grower(const PlanProblem& p, const PackedWorld& world, int64_t most_work, Visit visit)
      : p_(p), world_(world), last_work_(saturating_add(p.work, most_work)), visit_(visit) {}

  void from(const SearchState& base, unsigned free) { grow(base, world_.pack(base), 0, free); }

 private:
  // List d and those behind it may grow.
  void grow(const SearchState& now, const Packed& packed, int d, unsigned free) {
    if (p_.work > last_work_) return;
    if (d >= p_.dims) {
      visit_(now, packed);
      return;
    }
    grow(now, packed, d + 1, free);
    for (unsigned left = free; left != 0; left &= left - 1) {
      const int i = __builtin_ctz(left);
      SearchState next = now;
      append(next, p_.dims, d, static_cast<uint8_t>(i));
      if (p_.only_even && !cuts_evenly(p_, next)) continue;
      Packed next_packed = packed;
      world_.put(next_packed, d, world_.digits_in(now, d), i);
      grow(next, next_packed, d, free & ~(1U << i));
    }
  }

  const PlanProblem& p_;
  const PackedWorld& world_;
  const int64_t last_work_;
  Visit visit_;
};

// What a scatter to states of so many digits takes, each priced once.
class ScatterTimes {
 public:
  ScatterTimes(const PlanProblem& p, uint16_t reduced) : p_(p), reduced_(reduced) {
    known_.fill(-1);
  }
  int64_t ps(const SearchState& to, int digits) {
    if (reduced_ == 0) return 0;
    int64_t& known = known_[as_index(digits)];
    if (known >= 0) return known;
    Edge edge;
    edge.op = Op::reduce_scatter;
    edge.group = edge.reduced = reduced_;
    edge.to = to;
    price_collective(p_, before_scatter(p_, to, reduced_), edge);
    return known = edge.cost.ps;
  }

 private:
  const PlanProblem& p_;
  uint16_t reduced_;
  std::array<int64_t, max_digits + 1> known_;
};

bool may_scatter(const PlanProblem& p, uint16_t sums) {
  return sums != 0 && p.allowed[sums] != 0 && may_reduce(p, p.source, sums);
}

int64_t exchange_ps(PackedWorld& world, const Packed& from, const Packed& to) {
  return world.exchange_floors(from, to).least_ps(from.pending != to.pending);
}

// Of those alike the first listed.
void keep_soonest(size_t most, std::vector<ScatterWay>& ways) {
  const auto sooner = [](const ScatterWay& a, const ScatterWay& b) {
    return a.least_ps < b.least_ps;
  };
  if (ways.size() > most) {
    std::vector<int64_t> times;
    for (const ScatterWay& way : ways) times.push_back(way.least_ps);
    const auto last = times.begin() + static_cast<std::ptrdiff_t>(most) - 1;
    std::nth_element(times.begin(), last, times.end());
    const int64_t latest = *last;
    auto room = static_cast<std::ptrdiff_t>(most) -
                std::count_if(ways.begin(), ways.end(),
                              [&](const ScatterWay& way) { return way.least_ps < latest; });
    std::erase_if(ways, [&](const ScatterWay& way) {
      return way.least_ps > latest || (way.least_ps == latest && room-- <= 0);
    });
  }
  std::stable_sort(ways.begin(), ways.end(), sooner);
}

}  // namespace

SearchState before_scatter(const PlanProblem& p, const SearchState& aim, uint16_t reduced) {
  SearchState at = aim;
  at.pending = static_cast<uint16_t>(at.pending | reduced);
  for (int d = 0; d < p.dims; ++d) {
    int stay = 0;
    while (stay < aim.length(d) &&
           (reduced >> aim.sub_axis[as_index(aim.begin_of(d) + stay)] & 1) == 0)
      ++stay;
    drop_last(at, p.dims, d, at.length(d) - stay);
  }
  return at;
}

std::optional<SearchState> scattered_as(const PlanProblem& p, const SearchState& aim,
                                        uint16_t reduced) {
  SearchState to = p.source;
  const auto free = static_cast<uint16_t>(p.all & ~(sharding(to, p.dims) | to.pending | to.made));
  to.pending = static_cast<uint16_t>(to.pending & ~reduced);
  for (const uint16_t sub_axes : {free, reduced}) {
    for (int d = 0; d < p.dims; ++d) {
      for (int i = aim.begin_of(d); i < aim.end_of(d); ++i) {
        const uint8_t sub_axis = aim.sub_axis[as_index(i)];
        if ((sub_axes >> sub_axis & 1) == 0) continue;
        SearchState longer = to;
        append(longer, p.dims, d, sub_axis);
        if (!p.only_even || cuts_evenly(p, longer)) to = longer;
      }
    }
  }
  if ((reduced & ~sharding(to, p.dims)) != 0) return std::nullopt;
  return to;
}

uint16_t sums_inside_units(const PlanProblem& p, uint16_t sums) {
  uint16_t inside = 0;
  for (unsigned left = sums; left != 0; left &= left - 1) {
    const int sub_axis = __builtin_ctz(left);
    if ((p.digit_set[as_index(sub_axis)] & ~p.world.at_level(0)) == 0)
      inside = static_cast<uint16_t>(inside | 1U << sub_axis);
  }
  return inside;
}

void list_scattered(const PlanProblem& p, PackedWorld& world, int64_t below_ps, size_t most,
                    int64_t most_work, std::vector<ScatterWay>& out) {
  out.clear();
  const Packed target = world.pack(p.target);
  const int64_t last_work = saturating_add(p.work, most_work);
  const unsigned free = p.all & ~p.source.pending & ~sharding(p.source, p.dims);
  const uint16_t open = p.source.pending;
  for (uint16_t q = open;; q = static_cast<uint16_t>((q - 1) & open)) {
    SearchState base = p.source;
    base.pending = static_cast<uint16_t>(base.pending & ~q);
    if ((q == 0 || p.allowed[q] != 0) && may_reduce(p, p.source, q) &&
        may_reduce(p, base, base.pending)) {
      ScatterTimes times(p, q);
      const auto visit = [&](const SearchState& at, const Packed& packed) {
        if (q != 0 ? (q & ~sharding(at, p.dims)) != 0 : at == p.source) return;
        p.work += work::floors;
        const int64_t least =
            saturating_add(times.ps(at, packed.total), exchange_ps(world, packed, target));
        if (least < below_ps) out.push_back({least, at, q});
      };
      Grower(p, world, last_work - p.work, visit).from(base, free | q);
    }
    if (q == 0) break;
  }
  keep_soonest(most, out);
}

void list_gathered(const PlanProblem& p, PackedWorld& world, int64_t below_ps, size_t most,
                   int64_t most_work, std::vector<ScatterWay>& out) {
  out.clear();
  const uint16_t reduced = p.source.pending;
  const uint16_t inside = sums_inside_units(p, reduced);
  const Packed source = world.pack(p.source);
  const Packed target = world.pack(p.target);
  ScatterTimes times(p, reduced);
  ScatterTimes times_inside(p, inside);
  const auto visit = [&](const SearchState& aim, const Packed& packed) {
    p.work += work::floors;
    const int64_t gather = world.bound_ps(packed, target);
    if (gather >= below_ps) return;
    const auto keep = [&](int64_t before, uint16_t sums, bool arranged) {
      const int64_t least = saturating_add(before, gather);
      if (least < below_ps) out.push_back({least, aim, sums, arranged});
    };
    const auto scatter = [&](uint16_t sums, ScatterTimes& of) {
      const auto at = scattered_as(p, aim, sums);
      if (!at) return;
      p.work += 2 * work::floors;
      const Packed scattered = world.pack(*at);
      keep(saturating_add(of.ps(*at, scattered.total), exchange_ps(world, scattered, packed)), sums,
           false);
    };
    if (may_scatter(p, inside) && inside != reduced) scatter(inside, times_inside);
    if (!may_scatter(p, reduced) || (reduced & ~sharding(aim, p.dims)) != 0) return;
    scatter(reduced, times);
    p.work += 2 * work::floors;
    keep(saturating_add(times.ps(aim, packed.total),
                        exchange_ps(world, source, world.pack(before_scatter(p, aim, reduced)))),
         reduced, true);
  };
  Grower(p, world, most_work, visit).from(p.target, p.all & ~sharding(p.target, p.dims));
  keep_soonest(most, out);
}

}  // namespace meshplan
