#include "planner/packed.h"

#include <algorithm>

#include "base/int_math.h"

namespace meshplan {
namespace {

constexpr uint64_t ones = 0x1111111111111111U;

// Slots whose nibbles differ, marked.
uint64_t differing(uint64_t a, uint64_t b) {
  uint64_t x = a ^ b;
  x |= x >> 2;
  x |= x >> 1;
  return x & ones;
}

// Sum of the weights in the marked slots; where every weight is 1, of the marks (at most 15).
template <bool weighted>
int sum(uint64_t marks, uint64_t weights) {
  if (!weighted) return static_cast<int>((marks * ones) >> 60);
  constexpr uint64_t low = 0x0f0f0f0f0f0f0f0fU;
  const uint64_t nibbles = (marks * 15) & weights;
  return static_cast<int>(((nibbles & low) + (nibbles >> 4 & low)) * 0x0101010101010101U >> 56);
}

}  // namespace

void PackedWorld::reset(const PlanProblem& p) {
  p_ = &p;
  // Finer tiers are not bounded by levels.
  usable_ = p.even && p.exact_levels && p.total_elements > 0 && p.atoms > 0 && p.topology->model.empty() && p.topology->tables.empty();
  if (!usable_) return;
  outer_level_ = 0;
  for (size_t l = 1; l < p.topology->levels.size(); ++l) {
    if (p.world.at_level(static_cast<int>(l)) == 0) continue;
    if (outer_level_ != 0) usable_ = false;
    outer_level_ = l;
  }
  int64_t base = 2;
  while (p.size[0] % base != 0) ++base;
  power_[0] = 1;
  // Digits where all have one size and there is room for them, so that all items that meet have it too; else whole atoms, cut at levels.
  const bool digits = p.always_line_up && p.world.count() < 16 && p.world.count() * p.dims <= packed_slots;
  if (digits) base = p.world.size(0);
  int count = 0;
  total_ = inside_ = 0;
  weighted_ = false;
  auto add = [&](int atom, int64_t size, bool outer) {
    uint8_t weight = 0;
    for (; size % base == 0; size /= base) ++weight;
    usable_ = usable_ && size == 1 && weight < 16 && count < 15;
    if (!usable_) return;
    weight_[static_cast<size_t>(count)] = weight;
    outer_[static_cast<size_t>(count)] = outer;
    weighted_ = weighted_ || weight != 1;
    total_ += weight;
    if (!outer) inside_ += weight;
    ++count;
    ++items_[static_cast<size_t>(atom)].count;
  };
  for (int a = 0; a < p.atoms && usable_; ++a) {
    items_[static_cast<size_t>(a)] = {count, 0};
    // Digits of an atom go from the outside in.
    int64_t size = 1;
    for (int k = 0; k < p.digit_count[static_cast<size_t>(a)] && usable_; ++k) {
      const int digit = p.digit_of[static_cast<size_t>(a)][static_cast<size_t>(k)];
      const bool last = k + 1 == p.digit_count[static_cast<size_t>(a)];
      size *= p.world.size(digit);
      const bool outer = p.world.level(digit) > 0;
      if (!digits && !last && (p.world.level(p.digit_of[static_cast<size_t>(a)][as_index(k + 1)]) > 0) == outer) continue;
      add(a, size, outer);
      size = 1;
    }
  }
  pending_ = {};
  usable_ = usable_ && count * p.dims <= packed_slots && total_ < static_cast<int>(power_.size());
  if (!usable_) return;
  slots_a_dim_ = count;
  one_word_ = count * p.dims <= 16;
  for (size_t i = 1; i <= static_cast<size_t>(total_); ++i) power_[i] = saturating_mul(power_[i - 1], base);
  bandwidth_inside_ = inside_ > 0 ? p.topology->levels[0].mb_per_s : 0;
  bandwidth_outside_ = outer_level_ > 0 ? p.topology->levels[outer_level_].mb_per_s : 0;
  int64_t least = INT64_MAX;
  for (size_t l = p.topology->levels.size(); l-- > 0;) {
    least = std::min(least, p.topology->levels[l].latency_ns);
    if (l == outer_level_) latency_outside_ = saturating_mul(least, 1000);
  }
  latency_inside_ = saturating_mul(least, 1000);
  const auto n = static_cast<size_t>(total_);
  transfers_.assign(3 * (n + 1) * (n + 2), -1);
}

Packed PackedWorld::pack(const Spread& s) const {
  Packed packed;
  for (int d = 0; d < p_->dims; ++d) {
    int length = 0;
    for (int i = s.begin_of(d); i < s.end_of(d); ++i) length += put(packed, d, length, s.atom[static_cast<size_t>(i)]);
  }
  packed.pending = s.pending;
  packed.made = s.made;
  return packed;
}

template <size_t words, bool weighted>
PackedWorld::Difference PackedWorld::compare(const Packed& from, const Packed& to) const {
  Difference result;
  uint64_t crossed = 0;
  uint64_t crossed_outside = 0;
  uint64_t crossed_from_outside = 0;
  if (weighted) {
    uint64_t off = 0;
    for (size_t w = 0; w < words; ++w) off |= differing(from.weight[w], to.weight[w]) & from.taken[w] & to.taken[w];
    result.aligned = off == 0;
    for (size_t w = 0; w < words && off == 0; ++w) {
      result.beyond += sum<true>(from.taken[w] & ~to.taken[w], from.weight[w]);
      result.beyond_outside += sum<true>(from.outer[w] & ~to.taken[w], from.weight[w]);
      result.held_outside += sum<true>(from.outer[w] & ~to.outer[w], from.weight[w]);
    }
  } else {
    for (size_t w = 0; w < words; ++w) {
      result.beyond += sum<false>(from.taken[w] & ~to.taken[w], 0);
      result.beyond_outside += sum<false>(from.outer[w] & ~to.taken[w], 0);
      result.held_outside += sum<false>(from.outer[w] & ~to.outer[w], 0);
    }
  }
  for (size_t w = 0; w < words; ++w) {
    const uint64_t differ = differing(from.item[w], to.item[w]) & from.taken[w] & to.taken[w];
    crossed |= differ;
    crossed_outside |= differ & from.outer[w] & to.outer[w];
    crossed_from_outside |= differ & from.outer[w];
  }
  result.crossed = crossed != 0;
  result.crossed_outside = crossed_outside != 0;
  result.crossed_from_outside = crossed_from_outside != 0;
  return result;
}

PackedWorld::Difference PackedWorld::difference(const Packed& from, const Packed& to) const {
  if (weighted_) return one_word_ ? compare<1, true>(from, to) : compare<2, true>(from, to);
  return one_word_ ? compare<1, false>(from, to) : compare<2, false>(from, to);
}

const PackedWorld::PendingWeights& PackedWorld::pending_weights(const Packed& from, const Packed& to) {
  const unsigned before = from.pending | from.made;
  const unsigned after = to.pending | to.made;
  if (pending_.before == before && pending_.after == after) return pending_;
  pending_ = {before, after};
  for (unsigned left = before; left != 0; left &= left - 1) {
    const auto atom = static_cast<size_t>(__builtin_ctz(left));
    const AtomItems& items = items_[atom];
    for (auto k = static_cast<size_t>(items.first); k < as_index(items.first + items.count); ++k) {
      if ((after >> atom & 1) != 0) {
        pending_.kept += weight_[k];
        if (outer_[k] == 0) pending_.kept_inside += weight_[k];
      } else {
        pending_.reduced += weight_[k];
        if (outer_[k] != 0) pending_.reduced_outside += weight_[k];
      }
    }
  }
  return pending_;
}

int64_t PackedWorld::bound_ps(const Packed& from, const Packed& to) {
  if ((to.made & ~from.made) != 0) return 0;
  const Difference d = difference(from, to);
  const PendingWeights& w = pending_weights(from, to);
  if (w.reduced != 0) return d.aligned || outer_level_ == 0 || w.reduced_outside != 0 ? reducing_bound_ps(d, w, to) : -1;
  if (!d.aligned && outer_level_ != 0) return -1;  // on one level all that counts is that some rank holds nothing of its target
  if (!d.crossed && d.beyond == 0) return 0;
  if (!d.crossed_outside && d.held_outside == 0)
    return saturating_add(latency_inside_, inner_transfer(to.total, d.beyond, d.crossed, false));
  return saturating_add(latency_outside_, std::max(inner_transfer(to.total, d.beyond, d.crossed, true),
                                                   outer_transfer(to.outers, d.held_outside, d.crossed_outside, w.kept_inside)));
}

// Every rank misses its whole target, and all together carry (contributions - 1) + (copies - 1) values an element; the same of units where
// contributions lie in several (cost/bounds.cc).
int64_t PackedWorld::reducing_bound_ps(const Difference& d, const PendingWeights& w, const Packed& to) const {
  const int64_t bytes = std::min(p_->digit_bytes, p_->digit_reduce_bytes);
  const int64_t sharing = power(total_ - w.kept);
  auto carried = [&](int contributions, int copies) {
    return ceil_div(saturating_mul(bytes, power(contributions) - 1 + power(copies) - 1), sharing);
  };
  const int64_t need = std::max(bytes / power(to.total), carried(w.reduced, total_ - to.total - w.kept));
  const int64_t united = bytes / power(to.outers);
  int64_t missing = united;
  if (w.reduced_outside == 0 && !d.crossed_outside) missing = united - united / power(d.held_outside);
  if (missing == 0 || outer_level_ == 0) return saturating_add(latency_inside_, transfer_ps(need, 1, bandwidth_inside_));
  int64_t share = ceil_div(saturating_mul(missing, power(w.kept_inside)), power(inside_));
  if (w.reduced_outside != 0) share = std::max(share, carried(w.reduced_outside, total_ - inside_ - to.outers - (w.kept - w.kept_inside)));
  return saturating_add(latency_outside_,
                        std::max(transfer_ps(need, 1, bandwidth_inside_ + bandwidth_outside_), transfer_ps(share, 1, bandwidth_outside_)));
}

int64_t PackedWorld::exchange_floor_ps(const Packed& from, const Packed& to) {
  const Difference d = difference(from, to);
  const PendingWeights& w = pending_weights(from, to);
  const int64_t bytes = w.reduced != 0 ? p_->digit_reduce_bytes : p_->digit_bytes;
  Traffic traffic;
  if (!d.aligned) {
    if (outer_level_ != 0) return 0;
    traffic.bytes[0] = bytes / power(to.total);
    traffic.peers[0] = 1;
    return traffic_ps(*p_->topology, traffic, true, 0);
  }
  const int64_t piece = bytes / (power(to.total) * power(d.beyond));
  // Pieces received, contributions among them: from the nearest holders, so what some unit mate has comes from inside (exchange_digits.cc).
  const int64_t all = power(d.beyond) * power(w.reduced);
  const int64_t near = power(d.beyond - d.beyond_outside) * power(w.reduced - w.reduced_outside);
  const int64_t inside = d.crossed && !d.crossed_from_outside ? near : near - 1;
  const int64_t outside = d.crossed_from_outside ? all : all - near;
  traffic.bytes[0] = saturating_mul(inside, piece);
  traffic.peers[0] = inside;
  if (outside > 0) {
    traffic.bytes[outer_level_] = saturating_mul(outside, piece);
    traffic.peers[outer_level_] = outside;
  }
  return traffic_ps(*p_->topology, traffic, true, 0);
}

int64_t PackedWorld::two_phase_floor_ps(const Packed& from, const Packed& to) {
  const Difference d = difference(from, to);
  if (!d.aligned) return 0;
  const int64_t values = power(pending_weights(from, to).kept_inside);
  const int64_t fetched = ceil_div(saturating_mul(missing(to.outers, d.held_outside, d.crossed_outside), values), power(inside_));
  const int64_t wanted = missing(to.total, d.beyond, d.crossed);
  int64_t ps = 0;
  Traffic traffic;
  if (fetched > 0 && outer_level_ > 0) {
    traffic.bytes[outer_level_] = fetched;
    traffic.peers[outer_level_] = 1;
    ps = traffic_ps(*p_->topology, traffic, true, 0);
  }
  if (wanted > fetched) {
    traffic = {};
    traffic.bytes[0] = wanted - fetched;
    traffic.peers[0] = power(inside_) - 1;
    ps = saturating_add(ps, traffic_ps(*p_->topology, traffic, true, 0));
  }
  return ps;
}

}  // namespace meshplan
