#include "search/least_outside.h"

#include <algorithm>

#include "base/int_math.h"
#include "search/work.h"

namespace meshplan {
namespace {

bool is_pending(const OuterPart& part) { return part.pending != 0 || part.inner_pending != 0; }

// Whether sums that join those of `part`, which takes no time, may lead to `more`.
bool may_join(const OuterPart& part, const OuterPart& more) {
  return is_pending(part) && (part.pending & ~more.pending) == 0 &&
         part.inner_pending <= more.inner_pending &&
         (part.pending != more.pending || part.inner_pending != more.inner_pending);
}

}  // namespace

void LeastOutside::clear() {
  parts_.clear();
  before_ps_.clear();
  left_.clear();
  slots_.clear();
  settled_ = false;
}

size_t LeastOutside::slot_of(const PackedWorld& world, const OuterPart& part) const {
  const size_t mask = slots_.size() - 1;
  size_t i = (world.hash_outside(part.at) ^ part.pending * 0x9e3779b9U ^
              static_cast<size_t>(part.inner_pending) * 0x85ebca6bU) &
             mask;
  while (slots_[i] != 0) {
    const OuterPart& other = parts_[slots_[i] - 1];
    if (other.pending == part.pending && other.inner_pending == part.inner_pending &&
        world.same_outside(other.at, part.at))
      break;
    i = (i + 1) & mask;
  }
  return i;
}

void LeastOutside::make_room(const PackedWorld& world) {
  slots_.assign(std::max<size_t>(64, 4 * slots_.size()), 0);
  for (size_t i = 0; i < parts_.size(); ++i)
    slots_[slot_of(world, parts_[i])] = static_cast<uint32_t>(i + 1);
}

void LeastOutside::add(const PackedWorld& world, const Packed& at, int64_t before_ps) {
  if (slots_.size() < 2 * (parts_.size() + 1)) make_room(world);
  const OuterPart part = world.outer_part(at);
  uint32_t& slot = slots_[slot_of(world, part)];
  if (slot == 0) {
    parts_.push_back(part);
    before_ps_.push_back(before_ps);
    slot = static_cast<uint32_t>(parts_.size());
  }
  int64_t& least = before_ps_[slot - 1];
  least = std::min(least, before_ps);
}

OutsideLeft LeastOutside::left(const PackedWorld& world, const Packed& at) const {
  if (!settled_) return {};
  const uint32_t number = slots_[slot_of(world, world.outer_part(at))];
  return number == 0 ? OutsideLeft{} : left_[number - 1];
}

void LeastOutside::lower_by_joins() {
  // One of each kind of sums, that from which one step takes least.
  std::vector<uint32_t> kinds;
  for (uint32_t i = 0; i < parts_.size(); ++i) {
    const auto alike = std::find_if(kinds.begin(), kinds.end(), [&](uint32_t k) {
      return parts_[k].pending == parts_[i].pending &&
             parts_[k].inner_pending == parts_[i].inner_pending;
    });
    if (alike == kinds.end()) {
      kinds.push_back(i);
    } else if (left_[i].one_ps < left_[*alike].one_ps) {
      *alike = i;
    }
  }
  for (uint32_t i = 0; i < parts_.size(); ++i) {
    for (const uint32_t k : kinds) {
      if (may_join(parts_[i], parts_[k]))
        left_[i].one_ps = std::min(left_[i].one_ps, left_[k].one_ps);
    }
  }
}

// Slices go nowhere and may come at any time, so a step is taken to lead to what slices make of it:
// of a class that has more digits in its lists a unit wants less. So the last step may be taken to
// lead to the target itself, and slices before a step to be left out.
void LeastOutside::settle(const PlanProblem& p, PackedWorld& world, const Packed& target,
                          int64_t most_ps, int64_t most_work) {
  const int64_t work_before = p.work;
  const OuterPart goal = world.outer_part(target);
  left_.assign(parts_.size(), {});
  const auto least = [&](uint32_t i) { return std::min(left_[i].one_ps, left_[i].several_ps); };
  std::vector<uint32_t> open;      // whose cheapest way is not known yet
  std::vector<uint32_t> improves;  // whose ways in several steps are not
  for (uint32_t i = 0; i < parts_.size(); ++i) {
    left_[i] = {world.outer_step_ps(parts_[i], goal), INT64_MAX};
  }
  if (p.joins != 0) lower_by_joins();
  for (uint32_t i = 0; i < parts_.size(); ++i) {
    if (left_[i].one_ps > 0) open.push_back(i);
  }
  improves = open;
  // Backwards from the target, the nearest class first (Dijkstra).
  while (!open.empty() && !improves.empty()) {
    p.work += static_cast<int64_t>(open.size()) / 8 +
              static_cast<int64_t>(improves.size()) * work::outer_step;
    const auto nearest = std::min_element(
        open.begin(), open.end(), [&](uint32_t a, uint32_t b) { return least(a) < least(b); });
    const uint32_t to = *nearest;
    *nearest = open.back();
    open.pop_back();
    const bool ends = p.work - work_before > most_work;
    for (size_t k = 0; k < improves.size();) {
      const uint32_t i = improves[k];
      // What is not known yet takes so long at least.
      const int64_t soonest =
          p.joins != 0 && is_pending(parts_[i])
              ? least(to)
              : saturating_add(least(to), world.least_outer_step_ps(parts_[i].inner_pending));
      OutsideLeft& left = left_[i];
      const int64_t one = saturating_add(left.one_ps, world.another_step_ps());
      if (ends || std::min(left.several_ps, one) <= soonest ||
          saturating_add(before_ps_[i], soonest) > most_ps) {
        left.several_ps = std::min(left.several_ps, soonest);
        improves[k] = improves.back();
        improves.pop_back();
        continue;
      }
      const bool joined = p.joins != 0 && may_join(parts_[i], parts_[to]);
      const int64_t step = joined ? 0 : world.outer_step_ps(parts_[i], parts_[to]);
      if (step > 0 || joined)
        left.several_ps = std::min(left.several_ps, saturating_add(step, least(to)));
      ++k;
    }
  }
  settled_ = true;
}

}  // namespace meshplan
