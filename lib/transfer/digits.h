// Two states of one mesh, lined up digit by digit. Closed forms of exchanges and bounds are
// products over digits.
//
//     mesh a 2 x b 8 on hosts of 4, [16, 16], S(0)[b a] -> S(0)[a]S(1)[b]
//     digits            0 = a, 1 = b:(1)2 (across hosts), 2 = b:(2)4 (inside a host)
//     tensor dim 0      before 1 2 0, after 0
//                       position 0 is crossed: digit 1 cuts before, digit 0 after
//                       positions 1 and 2 are cut by the source only: digits 2 and 0
//     tensor dim 1      before nothing, after 1 2: both are cut by the target only
//
// A digit is a sub-axis on one level of the topology: ranks that differ only on it are in one unit
// of that level and in different units below it. Digits are cut so finely that sharding and pending
// reductions of both states are made of whole ones, and that at every position that both states cut
// the two digits have one size. So every piece of the exchange has the same size, and the number of
// pieces, holders and ranks of a kind is a product of the sizes of some digits.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "plan/plan.h"
#include "transfer/level_map.h"
#include "transfer/traffic.h"

namespace meshplan {

constexpr int max_digits = 32;
using DigitMask = uint32_t;  // a set of digits; bit i: digit i

[[nodiscard]] constexpr bool has_digit(DigitMask set, int digit) { return (set >> digit & 1) != 0; }

// The digits of one mesh. Products over sets of them are looked up by chunks of five bits.
class DigitWorld {
 public:
  DigitWorld() { products_[0][0] = 1; }
  // False: no room for another.
  bool add(int64_t size, int level) {
    if (count_ == max_digits) return false;
    auto& table = products_[static_cast<size_t>(count_ / chunk)];
    const int in_chunk = count_ % chunk;
    if (in_chunk == 0) table[0] = 1;
    for (size_t i = 0; i < size_t{1} << in_chunk; ++i)
      table[i | size_t{1} << in_chunk] = table[i] * size;
    size_[static_cast<size_t>(count_)] = size;
    level_[static_cast<size_t>(count_)] = static_cast<int8_t>(level);
    at_level_[static_cast<size_t>(level)] |= DigitMask{1} << count_;
    all_ |= DigitMask{1} << count_;
    ++count_;
    return true;
  }
  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] int64_t size(int digit) const { return size_[static_cast<size_t>(digit)]; }
  [[nodiscard]] int level(int digit) const { return level_[static_cast<size_t>(digit)]; }
  [[nodiscard]] DigitMask all() const { return all_; }
  [[nodiscard]] DigitMask at_level(int level) const {
    return at_level_[static_cast<size_t>(level)];
  }
  // Product of the sizes in the set.
  [[nodiscard]] int64_t product(DigitMask set) const {
    int64_t n = products_[0][set & mask];
    for (size_t c = 1; (set >>= chunk) != 0; ++c) n *= products_[c][set & mask];
    return n;
  }

 private:
  static constexpr int chunk = 5;
  static constexpr DigitMask mask = (1U << chunk) - 1;
  int count_ = 0;
  DigitMask all_ = 0;
  std::array<DigitMask, max_levels> at_level_{};
  std::array<int64_t, max_digits> size_;
  std::array<int8_t, max_digits> level_;
  // by chunk and the set's bits in it; written by add, for its own chunk
  std::array<std::array<int64_t, size_t{1} << chunk>, (max_digits + chunk - 1) / chunk> products_;
};

struct DigitChange {
  DigitMask src = 0;       // digits that shard the tensor before
  DigitMask dst = 0;       // and after
  DigitMask src_only = 0;  // of src, those at positions that the target does not cut
  DigitMask dst_only = 0;
  DigitMask kept = 0;     // pending before and after
  DigitMask reduced = 0;  // pending before, not after
  // Positions that both states cut, by different digits: before[i] against after[i].
  int crossed = 0;
  std::array<int8_t, max_digits> before;
  std::array<int8_t, max_digits> after;
  int64_t total_bytes = 0;  // of the whole tensor
  int64_t longest = 1;      // extent of the longest dim of one piece, in elements

  DigitChange() {}  // the lists are written up to `crossed`

  // Adds the positions of one tensor dim, major first. False where sizes differ at a position.
  bool add_dim(const DigitWorld& world, const int8_t* a, int a_count, const int8_t* b,
               int b_count) {
    const int both = a_count < b_count ? a_count : b_count;
    for (int i = 0; i < both; ++i) {
      src |= DigitMask{1} << a[i];
      dst |= DigitMask{1} << b[i];
      if (a[i] == b[i]) continue;
      if (world.size(a[i]) != world.size(b[i])) return false;
      before[static_cast<size_t>(crossed)] = a[i];
      after[static_cast<size_t>(crossed)] = b[i];
      ++crossed;
    }
    for (int i = both; i < a_count; ++i) src_only |= DigitMask{1} << a[i];
    for (int i = both; i < b_count; ++i) dst_only |= DigitMask{1} << b[i];
    src |= src_only;
    dst |= dst_only;
    return true;
  }
};

// The digits of the mesh and of the tensor under both states; nullopt where levels, sizes or
// extents do not divide cleanly.
struct DigitProblem {
  DigitWorld world;
  DigitChange change;
  DigitMask made = 0;  // pending after, not before
};
[[nodiscard]] std::optional<DigitProblem> align_digits(const LevelMap& levels,
                                                       std::span<const int64_t> shape,
                                                       int64_t element_bytes, const State& src,
                                                       const State& dst);

}  // namespace meshplan
