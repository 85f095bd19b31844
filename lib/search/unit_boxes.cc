#include "search/unit_boxes.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "search/search_state.h"
#include "search/work.h"

namespace meshplan {
namespace {

constexpr size_t most_boxes = size_t{1} << 18;  // remembered

int64_t number_on(const PlanProblem& p, unsigned sub_axes, size_t rank) {
  int64_t number = 0;
  for (; sub_axes != 0; sub_axes &= sub_axes - 1) {
    const size_t a = as_index(__builtin_ctz(sub_axes));
    number = number * p.size[a] + p.sides.coordinate(rank, a);
  }
  return number;
}

// What tells boxes and contributions of members from one another.
struct MemberBox {
  int64_t apart = 0;
  int64_t number = 0;
  int64_t contribution = 0;
  size_t member = 0;
  [[nodiscard]] bool same_box(const MemberBox& other) const {
    return apart == other.apart && number == other.number;
  }
};

}  // namespace

UnitBoxes list_unit_boxes(const PlanProblem& p, const UnitRanks& unit, const SearchState& s,
                          uint16_t contributions, uint16_t apart) {
  p.share_work(unit.members() * work::rank_side);
  const auto& sides = p.sides.lists(p, s).along;
  thread_local std::vector<MemberBox> have;
  have.clear();
  for (size_t m = 0; m < unit.count; ++m) {
    const size_t rank = unit.first + m;
    MemberBox box{number_on(p, apart, rank), 0, number_on(p, contributions, rank), m};
    for (int d = 0; d < p.dims; ++d)
      box.number = box.number * sides[as_index(d)]->numbers + sides[as_index(d)]->number[rank];
    have.push_back(box);
  }
  std::sort(have.begin(), have.end(), [](const MemberBox& a, const MemberBox& b) {
    return std::tie(a.apart, a.number, a.contribution, a.member) <
           std::tie(b.apart, b.number, b.contribution, b.member);
  });
  UnitBoxes boxes;
  boxes.box.reserve(unit.count);
  boxes.of_member.resize(unit.count);
  thread_local std::vector<size_t> first;  // member that has each
  first.clear();
  for (size_t i = 0; i < have.size(); ++i) {
    const bool fresh = i == 0 || !have[i].same_box(have[i - 1]);
    if (fresh) {
      boxes.box.push_back({have[i].apart, 1, 0, 0});
      first.push_back(have[i].member);
    }
    UnitBoxes::Of& box = boxes.box.back();
    ++box.members;
    if (fresh || have[i].contribution != have[i - 1].contribution) ++box.contributions;
    boxes.of_member[have[i].member] = static_cast<uint8_t>(boxes.size() - 1);
  }
  boxes.low.reserve(boxes.size() * as_index(p.dims));
  boxes.high.reserve(boxes.size() * as_index(p.dims));
  for (int d = 0; d < p.dims; ++d) {
    for (size_t b = 0; b < boxes.size(); ++b) {
      const Interval& side = sides[as_index(d)]->side[unit.first + first[b]];
      boxes.low.push_back(side.lo);
      boxes.high.push_back(side.hi);
      boxes.box[b].elements *= width(side);
    }
  }
  return boxes;
}

const UnitBoxes& UnitBoxTable::OfState::of(const PlanProblem& p, size_t unit) const {
  if (units_.empty()) units_.resize(p.units.size());
  UnitBoxes& boxes = units_[unit];
  if (boxes.of_member.empty())
    boxes = list_unit_boxes(p, p.units[unit], lists_, contributions_, apart_);
  return boxes;
}

int64_t UnitBoxTable::OfState::parts(const PlanProblem& p) const {
  if (parts_ == 0) parts_ = group_size(p, sharding(lists_, p.dims));
  return parts_;
}

const UnitBoxTable::OfState& UnitBoxTable::of(const SearchState& s, uint16_t contributions,
                                              uint16_t apart) {
  SearchState key = s;
  key.pending = contributions;
  key.made = apart;
  if (slots_.size() < 2 * (known_.size() + 1)) grow();
  const size_t mask = slots_.size() - 1;
  size_t i = hash_of(key) & mask;
  while (slots_[i].boxes != 0 && !(slots_[i].key == key)) i = (i + 1) & mask;
  if (slots_[i].boxes == 0) {
    known_.push_back(std::make_shared<OfState>(s, contributions, apart));
    slots_[i] = {key, static_cast<uint32_t>(known_.size())};
  }
  return *known_[slots_[i].boxes - 1];
}

void UnitBoxTable::grow() {
  const std::vector<Slot> before = std::move(slots_);
  slots_.assign(std::max<size_t>(64, before.size() * 2), {});
  for (const Slot& slot : before) {
    if (slot.boxes == 0) continue;
    size_t i = hash_of(slot.key) & (slots_.size() - 1);
    while (slots_[i].boxes != 0) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = slot;
  }
}

void UnitBoxTable::limit_memory(size_t boxes_a_state) {
  if (known_.size() * boxes_a_state <= most_boxes) return;
  known_.clear();
  slots_.clear();
}

}  // namespace meshplan
