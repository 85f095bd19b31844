// Measured tables with log-log interpolation.
#include "cost/finer_tiers.h"

#include <algorithm>

#include "base/int_math.h"
#include "cost/protocols.h"
#include "cost/step_figures.h"

namespace meshplan {
namespace {

// log2(x) * 2^16, rounded down, for x >= 1: integers only, so that every machine interpolates
// alike.
int64_t log2_fixed(int64_t x) {
  int whole = 63 - __builtin_clzll(static_cast<unsigned long long>(x));
  auto mantissa = static_cast<uint64_t>(x) << (63 - whole);  // 1.63 fixed point
  int64_t log = int64_t{whole} << 16;
  for (int bit = 15; bit >= 0; --bit) {
    __extension__ using wide = unsigned __int128;
    auto square = static_cast<uint64_t>(static_cast<wide>(mantissa) * mantissa >> 63);
    if (static_cast<wide>(mantissa) * mantissa >> 127 != 0) {
      log |= int64_t{1} << bit;
      mantissa = static_cast<uint64_t>(static_cast<wide>(mantissa) * mantissa >> 64);
    } else {
      mantissa = square;
    }
  }
  return log;
}

// The largest n with log2_fixed(n) <= x, for x >= 0 below 2^22.
int64_t exp2_fixed(int64_t x) {
  int64_t lo = int64_t{1} << (x >> 16);
  int64_t hi = (x >> 16) >= 61 ? INT64_MAX : lo * 2;
  while (hi - lo > 1) {
    int64_t middle = lo + (hi - lo) / 2;
    (log2_fixed(middle) <= x ? lo : hi) = middle;
  }
  return lo;
}

// Time in ns at `bytes` on the line through two points in log-log space; beyond the ends the slope
// of the last two is kept, never below proportional growth at the top nor below the first point's
// time at the bottom.
int64_t interpolate(const std::vector<std::pair<int64_t, int64_t>>& points, int64_t bytes) {
  if (points.size() == 1 || bytes <= points.front().first) return points.front().second;
  size_t i = 1;
  while (i + 1 < points.size() && points[i].first < bytes) ++i;
  auto [b0, t0] = points[i - 1];
  auto [b1, t1] = points[i];
  if (bytes == b1) return t1;
  if (bytes > b1) {
    int128 scaled = static_cast<int128>(t1) * bytes / b1;
    return scaled > INT64_MAX ? INT64_MAX : static_cast<int64_t>(scaled);
  }
  int64_t x0 = log2_fixed(b0), x1 = log2_fixed(b1), y0 = log2_fixed(std::max<int64_t>(1, t0)),
          y1 = log2_fixed(std::max<int64_t>(1, t1));
  if (x1 == x0) return t1;
  int64_t y = y0 + (y1 - y0) * (log2_fixed(bytes) - x0) / (x1 - x0);
  return exp2_fixed(std::max<int64_t>(0, y));
}

int outermost_level(const GroupShape& shape) {
  int level = -1;
  int64_t inner = 1;
  for (size_t l = 0; l < shape.members.size(); ++l) {
    if (shape.members[l] != inner) level = static_cast<int>(l);
    inner = shape.members[l];
  }
  return level;
}

const MeasuredTable* table_for(const Topology& topology, const GroupShape& shape, Op op) {
  int level = outermost_level(shape);
  for (const MeasuredTable& table : topology.tables) {
    if (table.op == op && table.level == level && table.ranks == shape.members.back() &&
        !table.points.empty())
      return &table;
  }
  return nullptr;
}

}  // namespace

std::optional<FinerPrice> finer_price(const Topology& topology, const GroupShape& shape,
                                      const CollectiveBytes& bytes) {
  if (!shape.uniform || shape.members.back() <= 1) return std::nullopt;
  if (const MeasuredTable* table = table_for(topology, shape, bytes.op)) {
    return FinerPrice{saturating_mul(interpolate(table->points, bytes.whole), 1000), "measured"};
  }
  if (by_protocols(topology, bytes.op))
    return FinerPrice{protocols_ps(topology, shape.members, bytes), "protocols"};
  return std::nullopt;
}

int64_t finer_ps(const Topology& topology, const std::vector<GroupShape>& shapes,
                 const CollectiveBytes& bytes, std::string& tier) {
  tier = "levels";
  if (!has_tables(topology) && !by_protocols(topology, bytes.op))
    return collective_ps(topology, shapes, bytes);
  int64_t slowest = 0;
  for (const GroupShape& shape : shapes) {
    const auto finer = finer_price(topology, shape, bytes);
    if (finer) tier = finer->tier;
    slowest = std::max(slowest, finer ? finer->ps : collective_ps(topology, shape, bytes));
  }
  return slowest;
}

}  // namespace meshplan
