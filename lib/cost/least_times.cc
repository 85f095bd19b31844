#include "cost/least_times.h"

#include <algorithm>

#include "base/int_math.h"
#include "cost/collective_time.h"
#include "cost/protocols.h"

namespace meshplan {
namespace {

// Sizes of one step that are tried; larger ones count as if nothing were left after them.
constexpr int most_tried = 256;

using Numbers = std::array<int64_t, max_levels>;

// The least of each level and those outside of it.
Numbers least_from(Numbers numbers, size_t levels) {
  for (size_t l = levels - 1; l-- > 0;) numbers[l] = std::min(numbers[l], numbers[l + 1]);
  return numbers;
}

// What each level outside of the innermost, or one further out, takes more than `least`.
Numbers beyond(const Numbers& numbers, size_t levels, int64_t least) {
  Numbers more = least_from(numbers, levels);
  if (levels > 1) more[0] = more[1];
  for (size_t l = 0; l < levels; ++l) more[l] -= least;
  return more;
}

}  // namespace

LeastTimes::LeastTimes(const Topology& topology, bool reduces) {
  const size_t levels = topology.levels.size();
  unit_ranks_ = levels > 1 ? topology.levels[0].ranks : INT64_MAX;
  if (topology.protocols.empty()) {
    Kind& kind = kinds_.emplace_back();
    for (size_t l = 0; l < levels; ++l) {
      kind.base_ns[l] = topology.levels[l].latency_ns;
      kind.mb_per_s[l] = topology.levels[l].mb_per_s;
    }
    kind.base_ns = least_from(kind.base_ns, levels);
    remember();
    return;
  }
  for (const Protocol& protocol : topology.protocols) {
    if (protocol.ops == 0 || (protocol.ops & default_ops) != 0)
      add_protocol(topology, protocol, reduces);
  }
  add_exchanges(topology);
  remember();
}

void LeastTimes::remember() {
  constexpr size_t most_topologies = 8;
  thread_local std::vector<std::shared_ptr<Memory>> memories;
  for (const std::shared_ptr<Memory>& memory : memories) {
    if (memory->unit_ranks != unit_ranks_ || memory->kinds != kinds_) continue;
    memory_ = memory;
    return;
  }
  if (memories.size() == most_topologies) memories.erase(memories.begin());
  memory_ = std::make_shared<Memory>();
  memory_->unit_ranks = unit_ranks_;
  memory_->kinds = kinds_;
  memories.push_back(memory_);
}

void LeastTimes::add_protocol(const Topology& topology, const Protocol& protocol, bool reduces) {
  const size_t levels = topology.levels.size();
  Numbers hops{};
  Numbers tree_hops{};
  Kind ring;
  ring.growth = Growth::hops;
  ring.base_ns.fill(protocol.base_ns);
  Kind tree = ring;
  tree.growth = Growth::doubling;
  int outermost_switches = -1;
  for (size_t l = 0; l < levels; ++l) {
    const TopologyLevel& level = topology.levels[l];
    const ProtocolLevel& at = protocol.levels[l];
    hops[l] = at.hop_ns;
    tree_hops[l] = l == 0 ? at.hop_ns : at.tree_ns;
    ring.mb_per_s[l] = share_of(level.mb_per_s, at.share);
    tree.mb_per_s[l] = share_of(level.mb_per_s, at.tree_share);
    if (level.switch_mb_per_s > 0) outermost_switches = static_cast<int>(l);
  }
  ring.rank_ns = least_from(hops, levels)[0];
  ring.outer_ns = beyond(hops, levels, ring.rank_ns);
  tree.rank_ns = saturating_mul(2, least_from(tree_hops, levels)[0]);
  kinds_.push_back(ring);
  if (reduces && protocol.trees) kinds_.push_back(tree);
  if (!reduces || protocol.switch_ns == 0 || outermost_switches < 0) return;
  Kind switches = tree;
  switches.base_ns.fill(protocol.switch_ns);
  switches.rank_ns = 0;
  const auto outside = static_cast<size_t>(outermost_switches) + 1;
  switches.alike = INT64_MAX;
  if (outside < levels) {
    switches.alike = topology.levels[outside - 1].ranks;
    switches.rank_ns = saturating_mul(2, least_from(tree_hops, levels)[outside]);
  }
  for (size_t l = 0; l < outside; ++l) {
    switches.mb_per_s[l] = topology.levels[l].mb_per_s;
    if (topology.levels[l].switch_mb_per_s > 0)
      switches.mb_per_s[l] = std::max<int64_t>(1, reached_by_switches(topology, l));
  }
  kinds_.push_back(switches);
}

// All_to_alls as well.
void LeastTimes::add_exchanges(const Topology& topology) {
  const size_t levels = topology.levels.size();
  Kind kind;
  kind.growth = Growth::peers;
  Numbers peers{};
  for (size_t l = 0; l < levels; ++l) {
    const TopologyLevel& level = topology.levels[l];
    kind.base_ns[l] = level.latency_ns;
    peers[l] = level.per_peer_ns;
    kind.mb_per_s[l] = exchange_mb_per_s(level);
  }
  kind.base_ns = least_from(kind.base_ns, levels);
  kind.rank_ns = least_from(peers, levels)[0];
  kind.outer_ns = beyond(peers, levels, kind.rank_ns);
  kinds_.push_back(kind);
}

// What so many ranks outside of a unit of level 0 take more, of which one is as far as `level`; the
// others may all be no further than level 1.
int64_t LeastTimes::outside_ns(const Kind& kind, int64_t ranks, int level) {
  const int64_t ns = saturating_mul(ranks, kind.outer_ns[0]);
  return level > 1
             ? saturating_add(ns, kind.outer_ns[static_cast<size_t>(level)] - kind.outer_ns[1])
             : ns;
}

int64_t LeastTimes::step_ns(const Kind& kind, int64_t ranks, int level) const {
  const auto at = static_cast<size_t>(level);
  const int64_t outside = level > 0 ? 1 : 0;
  int64_t ns = kind.base_ns[at];
  switch (kind.growth) {
    case Growth::none:
      break;
    case Growth::hops: {
      const int64_t units = std::max(outside, ceil_div(ranks, unit_ranks_) - 1);
      ns = saturating_add(ns, saturating_mul(ranks - 1, kind.rank_ns));
      ns = saturating_add(ns, outside_ns(kind, units, level));
      break;
    }
    case Growth::peers: {
      const int64_t peers = std::max<int64_t>(0, std::max(outside, ranks - unit_ranks_));
      ns = saturating_add(ns, saturating_mul(ranks - 1, kind.rank_ns));
      ns = saturating_add(ns, outside_ns(kind, peers, level));
      break;
    }
    case Growth::doubling:
      ns = saturating_add(ns, saturating_mul(doublings(ceil_div(ranks, kind.alike)), kind.rank_ns));
      break;
  }
  return ns;
}

int64_t LeastTimes::with_step_ns(const Kind& kind, const Asked& asked, int64_t below_ns) const {
  int64_t best = below_ns;
  int64_t size = 2;
  if (kind.growth == Growth::none) size = asked.ranks;
  if (kind.growth == Growth::doubling) size = std::max(size, std::min(kind.alike, asked.ranks));
  for (int tried = 0;; ++tried) {
    size = std::min(size, asked.ranks);
    const int64_t least = step_ns(kind, size, 0);
    if (least >= best) return best;
    if (tried == most_tried) return least;
    const int64_t rest = std::max<int64_t>(asked.several ? 2 : 1, ceil_div(asked.ranks, size));
    best = std::min(best, saturating_add(step_ns(kind, size, asked.level), steps_ns(rest, 0)));
    if (asked.level > 0 && !asked.kind_does && rest > 1)
      best = std::min(best, saturating_add(least, steps_ns(rest, asked.level)));
    if (size == asked.ranks) return best;
    size = kind.growth == Growth::doubling ? saturating_mul(size, 2) : size + 1;
  }
}

int64_t LeastTimes::steps_ns(int64_t ranks, int level) const {
  if (ranks <= 1) return 0;
  const auto known = memory_->steps.find({ranks, level});
  if (known != memory_->steps.end()) return known->second;
  int64_t best = INT64_MAX;
  for (const Kind& kind : kinds_) best = with_step_ns(kind, {ranks, level}, best);
  memory_->steps.emplace(std::pair{ranks, level}, best);
  return best;
}

int64_t LeastTimes::latency_ns(const Kind& kind, const Asked& asked) const {
  const int64_t best = with_step_ns(kind, asked, INT64_MAX);
  if (asked.level == 0 || asked.kind_does || asked.several || asked.ranks > 2) return best;
  // A step of the kind inside a unit, and another that reaches the level.
  return std::min(best, saturating_add(step_ns(kind, 2, 0), steps_ns(2, asked.level)));
}

std::vector<int64_t> LeastTimes::latencies_ns(const Asked& asked) const {
  Asked two = asked;
  two.ranks = std::max<int64_t>(2, asked.ranks);
  std::vector<int64_t> latencies;
  for (const Kind& kind : kinds_) latencies.push_back(latency_ns(kind, two));
  return latencies;
}

int64_t LeastTimes::bandwidth(const Kind& kind, uint32_t levels) {
  int64_t mb_per_s = 0;
  for (uint32_t left = levels; left != 0; left &= left - 1)
    mb_per_s += kind.mb_per_s[static_cast<size_t>(__builtin_ctz(left))];
  return mb_per_s;
}

// No kind is of use that takes longer to start than another and reaches no more.
void LeastTimes::add_lines(Known& known) const {
  const std::vector<int64_t> latencies = latencies_ns(known.asked);
  std::vector<Line> lines;
  for (size_t k = 0; k < kinds_.size(); ++k)
    lines.push_back({saturating_mul(latencies[k], 1000), bandwidth(kinds_[k], known.levels)});
  std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return a.latency_ps != b.latency_ps ? a.latency_ps < b.latency_ps : a.mb_per_s > b.mb_per_s;
  });
  known.begin = static_cast<uint32_t>(memory_->lines.size());
  for (const Line& line : lines) {
    if (known.end != 0 && line.mb_per_s <= memory_->lines.back().mb_per_s) continue;
    memory_->lines.push_back(line);
    known.end = static_cast<uint32_t>(memory_->lines.size());
  }
}

std::span<const LeastTimes::Line> LeastTimes::lines_of(const Asked& asked, uint32_t levels) const {
  std::vector<Known>& slots = memory_->slots;
  if (slots.size() < 2 * (memory_->known + 1)) make_room();
  const size_t mask = slots.size() - 1;
  const uint64_t key = static_cast<uint64_t>(asked.ranks) << 14 |
                       static_cast<uint64_t>(levels) << 6 |
                       static_cast<uint64_t>(asked.level) << 2 | (asked.several ? 2U : 0U) |
                       (asked.kind_does ? 1U : 0U);
  for (size_t i = key * 0x9e3779b97f4a7c15U >> 32 & mask;; i = (i + 1) & mask) {
    Known& known = slots[i];
    if (known.end == 0) {
      ++memory_->known;
      known.asked = asked;
      known.levels = levels;
      add_lines(known);
    }
    if (known.asked == asked && known.levels == levels)
      return std::span(memory_->lines).subspan(known.begin, known.end - known.begin);
  }
}

void LeastTimes::make_room() const {
  const size_t before = memory_->slots.size();
  memory_->slots.assign(std::max<size_t>(32, before * 2), {});
  memory_->known = 0;  // soon known again
  memory_->lines.clear();
}

int64_t LeastTimes::ps(const Asked& asked, int64_t bytes, int64_t carriers, uint32_t levels) const {
  if (!grow() && !asked.several) {
    const Kind& kind = kinds_.front();
    return saturating_add(saturating_mul(kind.base_ns[static_cast<size_t>(asked.level)], 1000),
                          transfer_ps(bytes, carriers, bandwidth(kind, levels)));
  }
  int64_t least = INT64_MAX;
  for (const Line& line : lines_of(asked, levels)) {
    if (line.latency_ps >= least) break;
    least = std::min(least,
                     saturating_add(line.latency_ps, transfer_ps(bytes, carriers, line.mb_per_s)));
  }
  return least;
}

}  // namespace meshplan
