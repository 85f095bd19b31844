#include "transfer/turns.h"

#include <algorithm>
#include <numeric>

#include "base/int_math.h"

namespace meshplan {
namespace {

bool has(DigitMask set, int digit) { return (set >> digit & 1) != 0; }

// What follows of every rank's coordinates: sums of coordinate times weight.
class Coordinates {
 public:
  Coordinates(const DigitWorld& world, std::span<const int32_t> order) : world_(world), order_(order) {
    int64_t below = 1;
    for (int digit = world.count(); digit-- > 0; below *= world.size(digit)) below_[static_cast<size_t>(digit)] = below;
  }
  // Adds coordinate(digit) * weight to every rank's sum.
  void add(int digit, int64_t weight, std::vector<int32_t>& sums) const {
    const int64_t below = below_[static_cast<size_t>(digit)];
    const int64_t size = world_.size(digit);
    for (size_t r = 0; r < order_.size(); ++r) sums[r] += static_cast<int32_t>(order_[r] / below % size * weight);
  }

 private:
  const DigitWorld& world_;
  std::span<const int32_t> order_;
  std::array<int64_t, max_digits> below_{};  // ranks that share the digit's coordinate, next to one another in the mesh
};

// Ranks by a number below `count`: those of number n are at [begin[n], begin[n + 1]), ascending.
struct Buckets {
  std::vector<int32_t> begin;
  std::vector<int32_t> rank;
  Buckets(const std::vector<int32_t>& number, int64_t count) : begin(static_cast<size_t>(count) + 1), rank(number.size()) {
    for (int32_t n : number) ++begin[static_cast<size_t>(n) + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    std::vector<int32_t> next(begin.begin(), begin.end() - 1);
    for (size_t r = 0; r < number.size(); ++r) rank[static_cast<size_t>(next[static_cast<size_t>(number[r])]++)] = static_cast<int32_t>(r);
  }
};

}  // namespace

void TurnTable::order_ranks(const LevelMap& levels) {
  const Mesh& mesh = levels.mesh();
  const auto ranks = static_cast<size_t>(mesh_size(mesh));
  std::vector<std::pair<int64_t, int32_t>> by_id(ranks);
  for (size_t i = 0; i < ranks; ++i) {
    by_id[i] = {rank_at(*mesh.universe, position_of(mesh, 0, static_cast<int64_t>(i))), static_cast<int32_t>(i)};
  }
  if (!std::is_sorted(by_id.begin(), by_id.end())) std::sort(by_id.begin(), by_id.end());
  order_.resize(ranks);
  for (size_t r = 0; r < ranks; ++r) order_[r] = by_id[r].second;
  units_.resize(ranks * static_cast<size_t>(levels.levels()));
  for (int l = 0; l < levels.levels(); ++l) {
    int32_t* unit = units_.data() + static_cast<size_t>(l) * ranks;
    const bool last = l + 1 == levels.levels();
    const int64_t size = levels.topology().levels[static_cast<size_t>(l)].ranks;
    for (size_t r = 1; r < ranks; ++r) {
      unit[r] = unit[r - 1] + (!last && by_id[r].first / size != by_id[r - 1].first / size ? 1 : 0);
    }
  }
}

const MostTurns* TurnTable::find(const LevelMap& levels, const DigitWorld& world, const DigitChange& change, int64_t most_steps) {
  const int64_t ranks = world.product(world.all());
  Key key;
  key.any = change.src_only | change.reduced;
  const int64_t missed = world.product(key.any);
  if (ranks > most_steps || saturating_mul(ranks, missed) > most_steps || ranks > INT32_MAX) return nullptr;
  key.same = change.kept | (change.src & ~change.src_only);
  key.crossed.reserve(static_cast<size_t>(change.crossed));
  for (int i = 0; i < change.crossed; ++i) {
    const auto at = static_cast<size_t>(i);
    key.crossed.push_back({change.before[at], change.after[at]});
    key.same &= ~(DigitMask{1} << change.before[at]);
  }
  std::sort(key.crossed.begin(), key.crossed.end());
  const auto found = known_.find(key);
  if (found != known_.end()) return &found->second;
  if (order_.empty()) order_ranks(levels);
  steps_ += ranks * missed;
  const MostTurns turns = count(levels, world, key);
  return &known_.emplace(std::move(key), turns).first->second;
}

// A shard is named by its coordinates on the digits that cut it before: `base` on those that a receiver's wish fixes, `any` on the others.
MostTurns TurnTable::count(const LevelMap& levels, const DigitWorld& world, const Key& key) {
  const size_t ranks = order_.size();
  const auto level_count = static_cast<size_t>(levels.levels());
  const Coordinates coordinates(world, order_);
  std::vector<int32_t> held(ranks, 0);  // the shard that a rank holds: base * anys + any
  std::vector<int32_t> base(ranks, 0);  // of the shards that it wants part of
  const int64_t anys = world.product(key.any);
  int64_t weight = 1;
  for (int digit = 0; digit < world.count(); ++digit) {
    if (!has(key.any, digit)) continue;
    coordinates.add(digit, weight, held);
    weight *= world.size(digit);
  }
  int64_t bases = 1;
  auto fix = [&](int before, int after) {
    coordinates.add(before, bases * anys, held);
    coordinates.add(after, bases, base);
    bases *= world.size(before);
  };
  for (int digit = 0; digit < world.count(); ++digit) {
    if (has(key.same, digit)) fix(digit, digit);
  }
  for (const Position& p : key.crossed) fix(p.before, p.after);
  const Buckets holders(held, bases * anys);
  const Buckets wanters(base, bases);

  // Holders in one unit with the rank at hand: [near, end) of the shard's holders, per level.
  struct Range {
    int32_t near = 0;
    int32_t end = 0;
    int32_t unit = -1;
  };
  MostTurns most;
  std::vector<int64_t> sent;  // level-major, of one shard's holders
  for (int64_t shard = 0; shard < bases * anys; ++shard) {
    const std::span<const int32_t> holds(holders.rank.data() + holders.begin[static_cast<size_t>(shard)],
                                         holders.rank.data() + holders.begin[static_cast<size_t>(shard) + 1]);
    const std::span<const int32_t> wants(wanters.rank.data() + wanters.begin[static_cast<size_t>(shard / anys)],
                                         wanters.rank.data() + wanters.begin[static_cast<size_t>(shard / anys) + 1]);
    if (holds.empty()) continue;
    const auto count = static_cast<int32_t>(holds.size());
    sent.assign(level_count * holds.size(), 0);
    std::array<Range, max_levels> ranges{};
    int64_t turn = 0;
    for (int32_t r : wants) {
      if (held[static_cast<size_t>(r)] == shard) continue;
      for (size_t l = 0;; ++l) {
        const int32_t* unit = units_.data() + l * ranks;
        Range& range = ranges[l];
        if (const int32_t mine = unit[r]; range.unit != mine) {
          range.unit = mine;
          range.near = range.end;
          while (range.near < count && unit[holds[static_cast<size_t>(range.near)]] < mine) ++range.near;
          range.end = range.near;
          while (range.end < count && unit[holds[static_cast<size_t>(range.end)]] == mine) ++range.end;
        }
        if (range.near == range.end) continue;
        ++sent[l * holds.size() + static_cast<size_t>(range.near + turn % (range.end - range.near))];
        break;
      }
      ++turn;
    }
    for (size_t h = 0; h < holds.size(); ++h) {
      int64_t all = 0;
      for (size_t l = 0; l < level_count; ++l) {
        most.over[l] = std::max(most.over[l], sent[l * holds.size() + h]);
        all += sent[l * holds.size() + h];
      }
      most.in_all = std::max(most.in_all, all);
    }
  }
  return most;
}

}  // namespace meshplan
