#include "verify/group_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/int_math.h"
#include "verify/op_rules.h"
#include "verify/protocol_time.h"

namespace meshplan::verification {
namespace {

constexpr int64_t longest_time = std::numeric_limits<int64_t>::max();

// What the collective moves over each level, where units have equally many members.
LevelTraffic traffic_of(const OpRule& rule, const GroupPattern& pattern, size_t levels,
                        const Moved& moved) {
  std::array<int128, most_levels> numerators{};
  std::array<int64_t, most_levels> peers{};
  int64_t inside = 1;
  const int64_t ranks = pattern.members[levels - 1];
  for (size_t l = 0; l < levels; ++l) {
    const int64_t here = pattern.members[l];
    if (here == inside) continue;
    if (rule.between_pairs) {
      peers[l] = here - inside;
      numerators[l] = int128{moved.whole} * (here - inside);
    } else {
      // whole * (1 / inside - 1 / here): every rank's share of what its unit takes over this level.
      // Both counts divide the ranks.
      peers[l] = 1;
      numerators[l] = int128{moved.whole} * (ranks / inside - ranks / here) * rule.rounds;
    }
    inside = here;
  }
  LevelTraffic traffic = held_in_64_bits(numerators, ranks);
  traffic.peers = peers;
  return traffic;
}

// The level whose links a group needs that lies furthest outside; -1: none.
int64_t outermost(const GroupPattern& pattern, size_t levels) {
  int64_t found = -1;
  for (size_t l = 0; l < levels; ++l) {
    if (pattern.members[l] > (l == 0 ? 1 : pattern.members[l - 1])) found = static_cast<int64_t>(l);
  }
  return found;
}

// The same members, each in a unit of its own of every level inside the outermost that some need.
GroupPattern on_outermost_links(const GroupPattern& pattern, size_t levels) {
  GroupPattern apart = pattern;
  apart.alike = true;
  size_t needed = levels;
  while (needed > 1 && pattern.more[needed - 1] == 0) --needed;
  for (size_t l = 0; l + 1 < needed; ++l) apart.members[l] = 1;
  for (size_t l = needed - 1; l < levels; ++l) apart.members[l] = pattern.members[levels - 1];
  return apart;
}

TimeRange exactly(int64_t ns) {
  const int64_t ps = saturating_mul(ns, 1000);
  return {ps, ps};
}

// Between two points ns = 2^y, where y goes along log2(bytes) in a line. Logarithms are kept to 16
// binary places (cost/finer_tiers.h): that much on either side.
TimeRange between(std::pair<int64_t, int64_t> a, std::pair<int64_t, int64_t> b, int64_t bytes) {
  const auto log = [](int64_t x) {
    return std::log2(static_cast<double>(std::max<int64_t>(1, x)));
  };
  const double slope = (log(b.second) - log(a.second)) / (log(b.first) - log(a.first));
  const double y = log(a.second) + slope * (log(bytes) - log(a.first));
  const double off = (4 + 4 * std::abs(slope)) / 65'536;
  const auto ns = [](double power) {
    return power >= 62 ? longest_time : static_cast<int64_t>(std::exp2(power));
  };
  return {saturating_mul(std::max<int64_t>(0, ns(y - off) - 1), 1000),
          saturating_mul(saturating_add(ns(y + off), 1), 1000)};
}

TimeRange measured_time(const MeasuredTable& table, int64_t bytes) {
  const auto& points = table.points;
  const auto after = std::lower_bound(points.begin(), points.end(), std::pair{bytes, int64_t{0}});
  if (points.size() == 1 || after == points.begin()) return exactly(points.front().second);
  if (after == points.end()) {
    // In proportion to the bytes.
    const auto& [most_bytes, ns] = points.back();
    return exactly(saturated(int128{ns} * bytes / most_bytes));
  }
  if (after->first == bytes) return exactly(after->second);
  return between(*(after - 1), *after, bytes);
}

// What finer tiers than levels say; nullopt: none covers the collective.
std::optional<TimeRange> finer_time(const Topology& topology, Op op, const GroupPattern& pattern,
                                    const Moved& moved) {
  const size_t levels = topology.levels.size();
  const int64_t ranks = pattern.members[levels - 1];
  if (!pattern.alike || ranks <= 1) return std::nullopt;
  for (const MeasuredTable& table : topology.tables) {
    if (table.op == op && table.ranks == ranks && table.level == outermost(pattern, levels) &&
        !table.points.empty())
      return measured_time(table, moved.whole);
  }
  const OpRule rule = rule_of(op);
  if (!has_protocol(topology, op)) return std::nullopt;
  const LevelTraffic traffic = traffic_of(rule, pattern, levels, moved);
  int64_t ps = protocol_time(topology, op, rule, pattern, traffic, moved);
  // What goes between pairs takes no less than by levels.
  if (rule.between_pairs) ps = std::max(ps, time_ps(topology, traffic, true, moved.copied));
  return TimeRange{ps, ps};
}

}  // namespace

TimeRange group_time(const Topology& topology, Op op, const GroupPattern& pattern,
                     const Moved& moved) {
  if (const auto finer = finer_time(topology, op, pattern, moved)) return *finer;
  const OpRule rule = rule_of(op);
  const size_t levels = topology.levels.size();
  if (pattern.alike) {
    const int64_t ps = time_ps(topology, traffic_of(rule, pattern, levels, moved),
                               rule.between_pairs, moved.copied);
    return {ps, ps};
  }
  // Units hold different numbers of members: every member has its piece sent to it by each other
  // one.
  LevelTraffic traffic;
  for (size_t l = 0; l < levels; ++l) {
    traffic.peers[l] = pattern.more[l];
    traffic.bytes[l] = saturating_mul(moved.piece, pattern.more[l]);
  }
  const int64_t once = time_ps(topology, traffic, true, moved.copied);
  int64_t ps = saturating_mul(once, rule.rounds);
  if (!rule.between_pairs && has_protocol(topology, op)) {
    const GroupPattern apart = on_outermost_links(pattern, levels);
    const LevelTraffic around = traffic_of(rule, apart, levels, moved);
    ps = std::min(ps, protocol_time(topology, op, rule, apart, around, moved));
  }
  return {ps, ps};
}

}  // namespace meshplan::verification
