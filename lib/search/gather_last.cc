#include "search/gather_last.h"

#include <algorithm>

#include "base/int_math.h"
#include "search/work.h"

namespace meshplan {
namespace {

struct FinerLister {
  const PlanProblem& p;
  PackedWorld& world;
  const Packed& source;
  Packed target;
  Until until;
  int64_t below_ps;
  int64_t last_work;
  std::vector<FinerTarget>& out;

  // `digits`: how many list d has. Each call appends one sub-axis of `free` to it.
  void append_to(const SearchState& base, const Packed& packed, int d, int digits, unsigned free) {
    for (unsigned left = free; left != 0 && p.work <= last_work; left &= left - 1) {
      const int sub_axis = __builtin_ctz(left);
      SearchState finer = base;
      append(finer, p.dims, d, static_cast<uint8_t>(sub_axis));
      if (p.only_even && !cuts_evenly(p, finer)) continue;
      Packed next = packed;
      const int added = world.put(next, d, digits, sub_axis);
      p.work += work::floors;
      const int64_t before = until == Until::one_exchange
                                 ? world.exchange_floors(source, next).one_phase_ps
                                 : world.bound_ps(source, next);
      const int64_t least = saturating_add(before, world.bound_ps(next, target));
      if (least < below_ps) out.push_back({least, finer});
      append_to(finer, next, d, digits + added, free & ~(1U << sub_axis));
    }
  }
};

}  // namespace

void finer_targets(const PlanProblem& p, PackedWorld& world, const Packed& source, Until until,
                   int64_t below_ps, size_t most, int64_t most_work,
                   std::vector<FinerTarget>& out) {
  out.clear();
  if (is_scalar(p)) return;
  FinerLister lister{
      p,  world, source, world.pack(p.target), until, below_ps, saturating_add(p.work, most_work),
      out};
  const unsigned free = p.all & ~p.target.pending & ~sharding(p.target, p.dims);
  for (int d = 0; d < p.dims; ++d) {
    int digits = 0;
    for (int i = p.target.begin_of(d); i < p.target.end_of(d); ++i)
      digits += world.digits_of(p.target.sub_axis[as_index(i)]);
    lister.append_to(p.target, lister.target, d, digits, free);
  }
  const size_t kept = std::min(out.size(), most);
  std::partial_sort(
      out.begin(), out.begin() + static_cast<std::ptrdiff_t>(kept), out.end(),
      [](const FinerTarget& a, const FinerTarget& b) { return a.least_ps < b.least_ps; });
  out.resize(kept);
}

}  // namespace meshplan
