// Topologies with protocols on top of levels, for tests of every module that prices or bounds.
#pragma once

#include <algorithm>
#include <string>

#include "plan/plan.h"

namespace meshplan::test {

inline Topology with_nccl(Topology topology) {
  topology.protocols = nccl_protocols(topology.levels.size());
  return topology;
}

// Every term of the model: protocols of which either may be faster or serve few ops or sizes, trees,
// switches inside, near bytes and few bytes to a peer.
inline Topology with_protocols(Topology topology) {
  Protocol small{"small", 3'000, true, 0, {}};
  Protocol large{"large", 6'000, true, 9'000, {}};
  int64_t hop = 700;
  for (TopologyLevel& level : topology.levels) {
    small.levels.push_back({hop, 1'250, hop * 2, 900});
    large.levels.push_back({hop * 4, 10'000, hop * 4, 8'300});
    level.peer_mb_per_s = std::max<int64_t>(1, level.mb_per_s / 2);
    level.peer_bytes = level.ranks < 64 ? 2'048 : 0;
    level.near_bytes = 30'000;
    level.far_mb_per_s = std::max<int64_t>(1, level.mb_per_s / 3);
    hop *= 4;
  }
  small.most_bytes = 1 << 20;
  large.near_bytes = 50'000;
  for (ProtocolLevel& level : large.levels) level.far_share = 4'000;
  Protocol pairs{"pairs", 5'000, false, 0, {}};
  pairs.ops = bit_of(Op::all_to_all) | bit_of(Op::exchange);
  for (const ProtocolLevel& level : small.levels) pairs.levels.push_back({level.hop_ns, 7'000});
  topology.protocols = {small, large, pairs};
  TopologyLevel& inner = topology.levels.front();
  if (inner.ranks < 64) inner.switch_mb_per_s = inner.mb_per_s * 3 / 2;
  return topology;
}

// Numbers that a Random picks.
template <class Random>
Topology with_random_protocols(Random& random, Topology topology) {
  for (TopologyLevel& level : topology.levels) {
    if (random.one_in(3)) level.peer_mb_per_s = 1 + level.mb_per_s / (1 + random.below(6));
    if (random.one_in(3)) level.peer_bytes = 1 + random.below(2'000);
    if (random.one_in(3)) level.switch_mb_per_s = 1 + level.mb_per_s * (1 + random.below(4)) / 2;
    if (random.one_in(3)) {
      level.near_bytes = 1 + random.below(2'000);
      level.far_mb_per_s = 1 + level.mb_per_s / (1 + random.below(6));
    }
  }
  for (int64_t count = 1 + random.below(3); count > 0; --count) {
    Protocol protocol;
    protocol.name = "p" + std::to_string(count);
    protocol.base_ns = random.below(20'000);
    protocol.trees = random.one_in(2);
    if (random.one_in(2)) protocol.switch_ns = 1 + random.below(20'000);
    for (size_t l = 0; l < topology.levels.size(); ++l) {
      ProtocolLevel level{random.below(9'000), 1 + random.below(whole_share)};
      if (protocol.trees || protocol.switch_ns > 0) {
        level.tree_ns = random.below(9'000);
        level.tree_share = 1 + random.below(whole_share);
      }
      protocol.levels.push_back(level);
    }
    if (random.one_in(3)) {
      protocol.near_bytes = 1 + random.below(2'000);
      for (ProtocolLevel& level : protocol.levels) level.far_share = 1 + random.below(whole_share);
    }
    // One serves all ops and sizes.
    if (!topology.protocols.empty()) {
      if (random.one_in(3)) protocol.most_bytes = 1 + random.below(100'000);
      if (random.one_in(3)) protocol.ops = bit_of(Op::all_gather) | bit_of(Op::all_reduce);
    }
    topology.protocols.push_back(std::move(protocol));
  }
  if (random.one_in(2)) {
    Protocol pairs{"pairs", random.below(20'000), false, 0, {}};
    pairs.ops = bit_of(Op::all_to_all);
    if (random.one_in(2)) pairs.ops |= bit_of(Op::exchange);
    for (size_t l = 0; l < topology.levels.size(); ++l) pairs.levels.push_back({random.below(9'000), 1 + random.below(whole_share)});
    topology.protocols.push_back(std::move(pairs));
  }
  return topology;
}

}  // namespace meshplan::test
