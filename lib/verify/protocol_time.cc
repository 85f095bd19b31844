#include "verify/protocol_time.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace meshplan::verification {
namespace {

// What one level adds to a way.
struct Part {
  int128 steps = 0;
  int64_t step_ns = 0;
  int128 bytes = 0;  // over the denominator
  int64_t mb_per_s = 1;
  int64_t far_mb_per_s = 0;  // of what is beyond `near`; 0: all the same
  int64_t near = 0;          // bytes a rank
};

int64_t share_of(int64_t mb_per_s, int64_t share) {
  const int64_t reached = mb_per_s * share / whole_share;
  return std::max<int64_t>(reached, 1);
}

class Ways {
 public:
  Ways(const Topology& topology, const GroupPattern& pattern, const LevelTraffic& ring,
       const Moved& moved, int64_t rounds)
      : topology_(topology), pattern_(pattern), ring_(ring), moved_(moved), rounds_(rounds) {}

  [[nodiscard]] int64_t ring_ps(const Protocol& protocol) const {
    return time(protocol.base_ns, ring_.denominator, [&](size_t l) {
      const int128 left = ranks() / units(l) - ranks() / here(l);
      return Part{left * rounds_,
                  protocol.levels[l].hop_ns,
                  int128{ring_.bytes[l]},
                  share_of(topology_.levels[l].mb_per_s, protocol.levels[l].share),
                  protocol.near_bytes == 0
                      ? 0
                      : share_of(topology_.levels[l].mb_per_s, protocol.levels[l].far_share),
                  protocol.near_bytes};
    });
  }
  // `from`: the innermost level that takes tree steps. `chained`: level 0 is a chain.
  [[nodiscard]] int64_t tree_ps(const Protocol& protocol, int64_t start_ns, size_t from,
                                bool chained) const {
    std::array<int128, most_levels> numerators{};
    for (size_t l = 0; l < topology_.levels.size(); ++l) {
      if (here(l) != units(l)) numerators[l] = int128{2} * moved_.whole * (ranks() / units(l));
    }
    const LevelTraffic tree = held_in_64_bits(numerators, ranks());
    return time(start_ns, tree.denominator, [&](size_t l) {
      const TopologyLevel& level = topology_.levels[l];
      const ProtocolLevel& speed = protocol.levels[l];
      Part part;
      part.mb_per_s = share_of(level.mb_per_s, speed.tree_share);
      if (l < from)
        part.mb_per_s = level.switch_mb_per_s > 0 ? level.switch_mb_per_s : level.mb_per_s;
      if (here(l) == units(l)) return part;
      part.bytes = tree.bytes[l];
      if (l < from) return part;
      if (chained && l == 0) {
        part.steps = 2 * int128{here(l) - 1};
        part.step_ns = speed.hop_ns;
      } else {
        const auto over = static_cast<uint64_t>(here(l) / units(l));
        part.steps = 2 * std::bit_width(over - 1);
        part.step_ns = speed.tree_ns;
      }
      return part;
    });
  }
  // Levels up to the outermost that reduces among members; 0: none does.
  [[nodiscard]] size_t switched() const {
    size_t count = 0;
    for (size_t l = 0; l < topology_.levels.size(); ++l) {
      if (topology_.levels[l].switch_mb_per_s > 0 && here(l) > 1) count = l + 1;
    }
    return count;
  }

 private:
  [[nodiscard]] int64_t ranks() const { return here(topology_.levels.size() - 1); }
  [[nodiscard]] int64_t here(size_t l) const { return pattern_.members[l]; }
  [[nodiscard]] int64_t units(size_t l) const { return l == 0 ? 1 : here(l - 1); }

  template <class PartOf>
  int64_t time(int64_t start_ns, int64_t denominator, PartOf part_of) const {
    Quotient copies;
    if (topology_.copy_mb_per_s > 0)
      copies = {int128{moved_.copied} * 1'000'000, topology_.copy_mb_per_s};
    int64_t slowest = rounded_up(copies);
    int128 ns = start_ns;
    for (size_t l = 0; l < topology_.levels.size(); ++l) {
      const Part part = part_of(l);
      ns += part.steps * part.step_ns;
      if (part.bytes == 0) continue;
      const Quotient bytes{part.bytes * 1'000'000, int128{denominator} * part.mb_per_s};
      slowest = std::max(slowest, rounded_up(bytes, copies));
      if (part.far_mb_per_s == 0) continue;
      const Quotient far{(part.bytes - int128{part.near} * denominator) * 1'000'000,
                         int128{denominator} * part.far_mb_per_s};
      if (far.dividend > 0) slowest = std::max(slowest, rounded_up(far, copies));
    }
    return saturating_add(saturating_mul(saturated(ns), 1000), slowest);
  }

  const Topology& topology_;
  const GroupPattern& pattern_;
  const LevelTraffic& ring_;
  const Moved& moved_;
  int64_t rounds_;
};

// By its list of ops (none: the three that go round rings) and the size of the collective.
bool may_take(const Protocol& protocol, Op op, int64_t size) {
  if (protocol.most_bytes > 0 && size > protocol.most_bytes) return false;
  if (protocol.ops == 0) return op != Op::all_to_all;
  return (protocol.ops >> static_cast<unsigned>(op) & 1U) != 0;
}

}  // namespace

bool has_protocol(const Topology& topology, Op op) {
  for (const Protocol& protocol : topology.protocols) {
    if (may_take(protocol, op, 0)) return true;
  }
  return false;
}

int64_t protocol_time(const Topology& topology, Op op, const OpRule& rule,
                      const GroupPattern& pattern, const LevelTraffic& ring, const Moved& moved) {
  const Ways ways(topology, pattern, ring, moved, rule.rounds);
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Protocol& protocol : topology.protocols) {
    if (!may_take(protocol, op, moved.whole)) continue;
    least = std::min(least, ways.ring_ps(protocol));
    if (rule.rounds != 2) continue;  // all_reduce alone goes round twice
    if (protocol.trees) least = std::min(least, ways.tree_ps(protocol, protocol.base_ns, 0, true));
    const size_t switched = ways.switched();
    if (protocol.switch_ns > 0 && switched > 0)
      least = std::min(least, ways.tree_ps(protocol, protocol.switch_ns, switched, false));
  }
  return least;
}

}  // namespace meshplan::verification
