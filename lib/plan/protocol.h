// What the "protocols" model of a topology knows of a collective library: its protocols, each with
// a start, steps over every level and its share of a level's bandwidth. A collective takes the
// fastest of them (cost/protocols.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/op_table.h"

namespace meshplan {

// Shares of a bandwidth are in ten-thousandths. What a share comes to is in whole MB/s, rounded
// down: of a spec at least 1.
constexpr int64_t whole_share = 10'000;
// The smallest share that comes to 1 MB/s.
[[nodiscard]] constexpr int64_t least_share(int64_t mb_per_s) {
  return (whole_share + mb_per_s - 1) / mb_per_s;
}

struct ProtocolLevel {
  int64_t hop_ns = 0;  // one step of a ring over this level
  int64_t share = whole_share;
  int64_t tree_ns = 0;  // one step of a tree, up or down
  int64_t tree_share = whole_share;
  int64_t far_share = whole_share;  // of what is beyond Protocol::near_bytes
  bool operator==(const ProtocolLevel&) const = default;
};

struct Protocol {
  std::string name;
  int64_t base_ns = 0;
  bool trees = false;  // all_reduce may run along trees
  int64_t switch_ns =
      0;  // the start where switches reduce (TopologyLevel::switch_mb_per_s); 0: never
  std::vector<ProtocolLevel> levels;  // as many as the topology has
  // Of a ring over each level so many bytes a rank are near, in caches; what is beyond has the far
  // share of the bandwidth, beside all of them at the level's: the slower one counts. 0: all.
  int64_t near_bytes = 0;
  int64_t most_bytes = 0;  // no collective of more (nccl-tests' size) takes it; 0: any may
  // The ops that may take it, a bit each (bit_of); none: all_gather, reduce_scatter and all_reduce.
  // all_to_all and exchange (a hop a peer) take no less than by levels.
  uint8_t ops = 0;
  bool operator==(const Protocol&) const = default;
};

constexpr uint8_t bit_of(Op op) { return static_cast<uint8_t>(1U << static_cast<unsigned>(op)); }
constexpr uint8_t default_ops =
    bit_of(Op::all_gather) | bit_of(Op::reduce_scatter) | bit_of(Op::all_reduce);
// Whether a collective of this op may take the protocol, whatever its size.
[[nodiscard]] inline bool serves(const Protocol& protocol, Op op) {
  return ((protocol.ops == 0 ? default_ops : protocol.ops) & bit_of(op)) != 0;
}
// An op that the protocols leave without one for large sizes: one of the three, or all_to_all or
// exchange where any protocol serves it. None where all is well.
[[nodiscard]] std::optional<Op> unserved_op(const std::vector<Protocol>& protocols);

// NCCL's protocols as its graph/tuning.cc (2.30) has them, on so many levels: what the old spelling
// "model": "nccl" of a topology stands for.
[[nodiscard]] std::vector<Protocol> nccl_protocols(size_t levels);

}  // namespace meshplan
