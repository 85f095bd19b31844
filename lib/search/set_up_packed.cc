// How packed states are set up for a question (slots, digits of sub-axes, times of levels), and how
// states are packed.
#include <algorithm>

#include "base/int_math.h"
#include "cost/collective_time.h"
#include "search/packed.h"

namespace meshplan {

void PackedWorld::reset(const PlanProblem& p) {
  p_ = &p;
  growing_.clear();
  growing_left_.clear();
  total_ = p.world.count();
  // Measured tables are not bounded by levels.
  usable_ = p.even && p.always_line_up && p.total_elements > 0 && p.sub_axes > 0 &&
            p.topology->tables.empty() && total_ * p.dims <= packed_slots;
  usable_ = usable_ && find_outer_level();
  if (!usable_) return;
  lay_out_slots();
  power_[0] = 1;
  for (size_t i = 1; i <= 2 * static_cast<size_t>(total_); ++i)
    power_[i] = saturating_mul(power_[i - 1], p.world.size(0));
  time_levels();
  const Basis basis = basis_now();
  if (basis == basis_ && p.times == basis_times_) return;
  basis_ = basis;
  basis_times_ = p.times;
  forget_figures();
  const auto n = static_cast<size_t>(total_);
  known_.assign(3 * (n + 1) * (n + 2), -1);
  std::fill_n(pieces_.begin(), 4 * n + 2, -1);
}

PackedWorld::Basis PackedWorld::basis_now() const {
  Basis basis{total_,
              p_->dims,
              inside_,
              p_->world.size(0),
              p_->digit_bytes,
              p_->digit_reduce_bytes,
              pace_inside_.divisor(),
              pace_outside_.divisor(),
              first_latency_,
              outer_latency_,
              first_per_peer_,
              outer_per_peer_,
              static_cast<int64_t>(outer_level_),
              p_->sub_axes,
              p_->element,
              static_cast<int64_t>(p_->tensor.shape.size())};
  // Digits outside of level 0, and where sub-axes begin.
  int64_t begins = 0;
  for (int a = 0; a < p_->sub_axes; ++a) {
    basis[basis.size() - 2] |= int64_t{digits_[as_index(a)].outer_set};
    begins |= int64_t{1} << digits_[as_index(a)].first;
  }
  basis.back() = begins;
  return basis;
}

bool PackedWorld::find_outer_level() {
  outer_level_ = 0;
  for (size_t l = 1; l < p_->topology->levels.size(); ++l) {
    if (p_->world.at_level(static_cast<int>(l)) == 0) continue;
    if (outer_level_ != 0) return false;
    outer_level_ = l;
  }
  inside_ = 0;
  outer_set_ = 0;
  for (int i = 0; i < total_; ++i) {
    outer_[static_cast<size_t>(i)] = p_->world.level(i) > 0;
    outer_set_ |= static_cast<uint32_t>(outer_[static_cast<size_t>(i)]) << i;
    if (p_->world.level(i) == 0) ++inside_;
  }
  return true;
}

void PackedWorld::lay_out_slots() {
  few_ = total_ < 16 && total_ * p_->dims <= 16;
  for (int a = 0; a < p_->sub_axes; ++a) digits_[as_index(a)] = digits_of_sub_axis(a);
  for (name_bits_ = 1; total_ > 1 << name_bits_;) ++name_bits_;
  Packed::Words slots{};
  for (int d = 0; d < p_->dims; ++d) {
    slots_before_[static_cast<size_t>(d)] = slots;
    for (int k = 0; k < total_; ++k) {
      const int bit = (d * total_ + k) * (few_ ? 4 : 1);
      slots[static_cast<size_t>(bit / 64)] |= uint64_t{1} << bit % 64;
    }
  }
  slots_before_[static_cast<size_t>(p_->dims)] = slots;
}

void PackedWorld::time_levels() {
  const std::vector<TopologyLevel>& levels = p_->topology->levels;
  const TopologyLevel& inner = levels[0];
  const TopologyLevel& outer = levels[outer_level_];
  // Of exchanges alone, which are the last kind.
  exchanged_outside_ = p_->times.mb_per_s(p_->times.kinds() - 1, outer_level_);
  pace_inside_ = Pace(inner);
  pace_outside_ = Pace(outer);
  TopologyLevel both;
  both.mb_per_s = saturating_add(exchange_mb_per_s(inner), exchange_mb_per_s(outer));
  pace_together_ = Pace(both);
  first_latency_ = saturating_mul(inner.latency_ns, 1000);
  outer_latency_ = saturating_mul(outer.latency_ns, 1000);
  first_per_peer_ = saturating_mul(inner.per_peer_ns, 1000);
  outer_per_peer_ = saturating_mul(outer.per_peer_ns, 1000);
  least_per_peer_ = INT64_MAX;
  for (size_t l = levels.size(); l-- > 0;) {
    least_per_peer_ = std::min(least_per_peer_, saturating_mul(levels[l].per_peer_ns, 1000));
    if (l == outer_level_) least_outer_per_peer_ = least_per_peer_;
  }
  another_step_ps_ = least_step_ps(0, 2);
  finest_part_ps_ = {};
  least_outer_step_ps_ = least_inner_step_ps_ = 0;
  if (outer_level_ == 0) return;
  // A unit wants no less than the part that all outer digits cut, and misses half of it at least.
  least_outer_step_ps_ =
      p_->times.ps({2, static_cast<int>(outer_level_), true},
                   floor_div(least_bytes(), saturating_mul(2, power(total_ - inside_))),
                   power(inside_), 1U << outer_level_);
  // Or has one more value of all that it wants, where ranks lie inside of units.
  if (inside_ > 0)
    least_inner_step_ps_ = p_->times.ps({}, floor_div(least_bytes(), power(total_ - inside_)),
                                        power(inside_), links(false));
  // Where all may fetch, members whose unit has their part fetch for others.
  const int64_t shared =
      p_->all_may_fetch ? least_bytes() - ceil_div(least_bytes(), power(1)) : least_bytes();
  for (const bool several : {false, true})
    finest_part_ps_[several ? 1 : 0] =
        p_->times.ps({2, static_cast<int>(outer_level_), true, several}, shared, power(total_),
                     1U << outer_level_);
}

PackedWorld::Pace::Pace(const TopologyLevel& level)
    : whole_(level.exchange_percent == 100),
      divisor_(whole_ ? level.mb_per_s : saturating_mul(level.mb_per_s, level.exchange_percent)),
      reciprocal_(UINT64_MAX / static_cast<uint64_t>(divisor_)) {}

// Digits of a sub-axis follow one another.
PackedWorld::SubAxisDigits PackedWorld::digits_of_sub_axis(int sub_axis) const {
  SubAxisDigits digits;
  digits.first = p_->digit_of[as_index(sub_axis)][0];
  digits.count = p_->digit_count[as_index(sub_axis)];
  for (int k = 0; k < digits.count; ++k) {
    const int digit = digits.first + k;
    const bool outer = outer_[as_index(digit)];
    digits.outers += outer ? 1 : 0;
    digits.set |= uint32_t{1} << digit;
    digits.outer_set |= static_cast<uint32_t>(outer) << digit;
    if (!few_) continue;
    digits.taken |= uint64_t{1} << 4 * k;
    digits.outer |= static_cast<uint64_t>(outer) << 4 * k;
    digits.name |= static_cast<uint64_t>(digit) << 4 * k;
  }
  return digits;
}

// The number of the basis is in the 11 bits above those of a key.
void PackedWorld::forget_figures() {
  pending_.fill({});
  pending_counted_ = 0;
  counted_on_ += uint64_t{1} << 53;
  if (counted_on_ != 0) return;
  figures_.fill({});
  outer_steps_.fill({});
  counted_on_ = uint64_t{1} << 53;
}

int PackedWorld::put(Packed& packed, int d, int count, int sub_axis) const {
  if (!usable_) return 0;
  const SubAxisDigits& digits = digits_[static_cast<size_t>(sub_axis)];
  packed.digits |= digits.set;
  packed.total = static_cast<uint8_t>(packed.total + digits.count);
  packed.outers = static_cast<uint8_t>(packed.outers + digits.outers);
  if (few_) {
    const int shift = (d * total_ + count) * 4;
    packed.taken[0] |= digits.taken << shift;
    packed.outer[0] |= digits.outer << shift;
    packed.name[0][0] |= digits.name << shift;
    packed.outer_in_list[0] |= uint64_t{digits.outer_set} << d * total_;
    return digits.count;
  }
  const uint128 in_list = static_cast<uint128>(digits.outer_set) << d * total_;
  packed.outer_in_list[0] |= static_cast<uint64_t>(in_list);
  packed.outer_in_list[1] |= static_cast<uint64_t>(in_list >> 64);
  for (int k = 0; k < digits.count; ++k) {
    const int digit = digits.first + k;
    const int bit = d * total_ + count + k;
    const auto word = static_cast<size_t>(bit / 64);
    const int shift = bit % 64;
    packed.taken[word] |= uint64_t{1} << shift;
    packed.outer[word] |= static_cast<uint64_t>(outer_[as_index(digit)]) << shift;
    for (int j = 0; j < name_bits_; ++j)
      packed.name[static_cast<size_t>(j)][word] |= static_cast<uint64_t>(digit >> j & 1) << shift;
  }
  return digits.count;
}

Packed PackedWorld::pack(const SearchState& s) const {
  Packed packed;
  packed.pending = s.pending;
  packed.made = s.made;
  if (!usable_) return packed;
  for (int d = 0; d < p_->dims; ++d) {
    int length = 0;
    for (int i = s.begin_of(d); i < s.end_of(d); ++i)
      length += put(packed, d, length, s.sub_axis[static_cast<size_t>(i)]);
  }
  return packed;
}

}  // namespace meshplan
