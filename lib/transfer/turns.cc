#include "transfer/turns.h"

#include <algorithm>
#include <numeric>

#include "base/int_math.h"
#include "transfer/level_units.h"
#include "transfer/rank_places.h"

namespace meshplan {
namespace {

// By digit, how much one step of a coordinate adds to a number of a rank.
using Weights = std::array<int32_t, max_digits>;

// The number of every rank, in that order. It grows digit by digit, so that each rank takes two
// additions and no division.
//
//     digits 2 3, weights 10 1     {0}, {0, 10}, {0, 1, 2, 10, 11, 12}
std::vector<int32_t> numbers_of(const DigitWorld& world, std::span<const int32_t> order,
                                const Weights& weights) {
  std::vector<int32_t> numbers(order.size(), 0);
  size_t known = 1;
  for (int digit = 0; digit < world.count(); ++digit) {
    const auto size = static_cast<size_t>(world.size(digit));
    const int32_t weight = weights[static_cast<size_t>(digit)];
    // Backwards, as each takes the place of others that are read before.
    for (size_t i = known; i-- > 0;) {
      for (size_t c = size; c-- > 0;)
        numbers[i * size + c] = numbers[i] + static_cast<int32_t>(c) * weight;
    }
    known *= size;
  }
  std::vector<int32_t> ordered(order.size());
  for (size_t r = 0; r < order.size(); ++r) ordered[r] = numbers[static_cast<size_t>(order[r])];
  return ordered;
}

// Ranks by a number below `count`: those of number n ascend from begin[n] up to begin[n + 1].
struct Buckets {
  std::vector<int32_t> begin;
  std::vector<int32_t> rank;
  Buckets(const std::vector<int32_t>& number, int64_t count)
      : begin(static_cast<size_t>(count) + 1), rank(number.size()) {
    for (int32_t n : number) ++begin[static_cast<size_t>(n) + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    std::vector<int32_t> next(begin.begin(), begin.end() - 1);
    for (size_t r = 0; r < number.size(); ++r)
      rank[static_cast<size_t>(next[static_cast<size_t>(number[r])]++)] = static_cast<int32_t>(r);
  }
  [[nodiscard]] std::span<const int32_t> of(int64_t n) const {
    const auto first = static_cast<size_t>(begin[static_cast<size_t>(n)]);
    const auto end = static_cast<size_t>(begin[static_cast<size_t>(n) + 1]);
    return std::span(rank).subspan(first, end - first);
  }
};

// Which shard every rank holds, and which it wants part of. A shard is named by its coordinates on
// the digits that cut it before, as base * anys + any: `base` on those that a receiver's wish
// fixes, `any` on the others.
//
//     mesh a 2 x b 2, S(0)[a]S(1)[b] -> S(0)[a]R     a is fixed, b is any; shard = a * 2 + b
//     rank a = 1, b = 0 holds shard 2 and wants part of shards 2 and 3: base 1
struct ShardNumbers {
  std::vector<int32_t> held;  // by rank: base * anys + any
  std::vector<int32_t> base;  // by rank: of the shards that it wants part of
  int64_t anys = 1;
  int64_t bases = 1;
};

ShardNumbers number_shards(const DigitWorld& world, std::span<const int32_t> order,
                           const TurnKey& key) {
  ShardNumbers shards;
  Weights held{};
  Weights base{};
  for (int digit = 0; digit < world.count(); ++digit) {
    if (!has_digit(key.any, digit)) continue;
    held[static_cast<size_t>(digit)] += static_cast<int32_t>(shards.anys);
    shards.anys *= world.size(digit);
  }
  auto fix = [&](int before, int after) {
    held[static_cast<size_t>(before)] += static_cast<int32_t>(shards.bases * shards.anys);
    base[static_cast<size_t>(after)] += static_cast<int32_t>(shards.bases);
    shards.bases *= world.size(before);
  };
  for (int digit = 0; digit < world.count(); ++digit) {
    if (has_digit(key.same, digit)) fix(digit, digit);
  }
  for (const TurnKey::Position& p : key.crossed) fix(p.before, p.after);
  shards.held = numbers_of(world, order, held);
  shards.base = numbers_of(world, order, base);
  return shards;
}

// Counts the turns of one shard after another.
class TurnCounter {
 public:
  TurnCounter(size_t ranks, size_t levels, const std::vector<int32_t>& units)
      : ranks_(ranks), levels_(levels), units_(units) {}

  // `holds`: the shard's holders; `wants`: ranks that want part of it. Both ascend.
  void add(std::span<const int32_t> holds, std::span<const int32_t> wants, int64_t shard,
           const std::vector<int32_t>& held) {
    sent_.assign(levels_ * holds.size(), 0);
    nearest_ = {};
    int64_t turn = 0;
    for (int32_t r : wants) {
      if (held[static_cast<size_t>(r)] == shard) continue;
      ask(holds, static_cast<size_t>(r), turn++);
    }
    for (size_t h = 0; h < holds.size(); ++h) {
      int64_t all = 0;
      for (size_t l = 0; l < levels_; ++l) {
        most_.over[l] = std::max(most_.over[l], sent_[l * holds.size() + h]);
        all += sent_[l * holds.size() + h];
      }
      most_.in_all = std::max(most_.in_all, all);
    }
  }
  [[nodiscard]] const MostTurns& most() const { return most_; }

 private:
  // Holders in one unit of a level: from `near` up to `end` of the shard's holders.
  struct Range {
    int32_t near = 0;
    int32_t end = 0;
    int32_t unit = -1;
  };

  // The rank asks on the innermost level where its unit has holders. Ranks ask in ascending order,
  // so that the range of each level only moves on.
  void ask(std::span<const int32_t> holds, size_t rank, int64_t turn) {
    const auto count = static_cast<int32_t>(holds.size());
    for (size_t l = 0;; ++l) {
      const int32_t* unit = units_.data() + l * ranks_;
      Range& range = nearest_[l];
      if (const int32_t mine = unit[rank]; range.unit != mine) {
        range.unit = mine;
        range.near = range.end;
        while (range.near < count && unit[holds[static_cast<size_t>(range.near)]] < mine)
          ++range.near;
        range.end = range.near;
        while (range.end < count && unit[holds[static_cast<size_t>(range.end)]] == mine)
          ++range.end;
      }
      if (range.near == range.end) continue;
      const int64_t holder = range.near + turn % (range.end - range.near);
      ++sent_[l * holds.size() + static_cast<size_t>(holder)];
      return;
    }
  }

  size_t ranks_;
  size_t levels_;
  const std::vector<int32_t>& units_;
  std::array<Range, max_levels> nearest_{};
  std::vector<int64_t> sent_;  // level-major, of one shard's holders
  MostTurns most_;
};

void order_ranks(const LevelMap& levels, TurnMemory& memory) {
  const std::vector<MeshRank> ranks = ranks_by_id(levels.mesh());
  for (const MeshRank& rank : ranks) memory.order.push_back(static_cast<int32_t>(rank.index));
  const std::vector<int64_t> level_ranks = level_ranks_of(levels.topology());
  const LevelUnits units(level_ranks);
  for (int l = 0; l < units.levels(); ++l) {
    int32_t unit = 0;
    for (size_t r = 0; r < ranks.size(); ++r) {
      if (r > 0 && units.unit(ranks[r].id, l) != units.unit(ranks[r - 1].id, l)) ++unit;
      memory.units.push_back(unit);
    }
  }
}

MostTurns count_turns(const LevelMap& levels, const DigitWorld& world, const TurnKey& key) {
  TurnMemory& memory = levels.turns();
  if (memory.order.empty()) order_ranks(levels, memory);
  const ShardNumbers shards = number_shards(world, memory.order, key);
  const Buckets holders(shards.held, shards.bases * shards.anys);
  const Buckets wanters(shards.base, shards.bases);
  TurnCounter counter(memory.order.size(), static_cast<size_t>(levels.levels()), memory.units);
  for (int64_t shard = 0; shard < shards.bases * shards.anys; ++shard) {
    const std::span<const int32_t> holds = holders.of(shard);
    if (!holds.empty()) counter.add(holds, wanters.of(shard / shards.anys), shard, shards.held);
  }
  return counter.most();
}

}  // namespace

const MostTurns* TurnTable::find(const LevelMap& levels, const DigitWorld& world,
                                 const DigitChange& change, int64_t most_steps) {
  const int64_t ranks = world.product(world.all());
  TurnKey key;
  key.any = change.src_only | change.reduced;
  const int64_t missed = world.product(key.any);
  if (ranks > most_steps || saturating_mul(ranks, missed) > most_steps || ranks > INT32_MAX)
    return nullptr;
  key.same = change.kept | (change.src & ~change.src_only);
  key.crossed.reserve(static_cast<size_t>(change.crossed));
  for (int i = 0; i < change.crossed; ++i) {
    const auto at = static_cast<size_t>(i);
    key.crossed.push_back({change.before[at], change.after[at]});
    key.same &= ~(DigitMask{1} << change.before[at]);
  }
  std::sort(key.crossed.begin(), key.crossed.end());
  for (int digit = 0; digit < world.count(); ++digit) key.sizes.push_back(world.size(digit));
  auto& known = levels.turns().known;
  auto found = known.find(key);
  if (found == known.end()) {
    const MostTurns turns = count_turns(levels, world, key);
    found = known.emplace(std::move(key), turns).first;
  }
  if (asked_.insert(&found->second).second) steps_ += ranks * missed;
  return &found->second;
}

}  // namespace meshplan
