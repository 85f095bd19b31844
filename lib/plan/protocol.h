// What the "protocols" model of a topology knows of a collective library: its protocols, each with
// a start, steps over every level and its share of a level's bandwidth. A collective takes the
// fastest of them (cost/protocols.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace meshplan {

// Shares of a bandwidth are in ten-thousandths.
constexpr int64_t whole_share = 10'000;

struct ProtocolLevel {
  int64_t hop_ns = 0;  // one step of a ring over this level
  int64_t share = whole_share;
  int64_t tree_ns = 0;  // one step of a tree, up or down
  int64_t tree_share = whole_share;
  bool operator==(const ProtocolLevel&) const = default;
};

struct Protocol {
  std::string name;
  int64_t base_ns = 0;
  bool trees = false;  // all_reduce may run along trees
  int64_t switch_ns =
      0;  // the start where switches reduce (TopologyLevel::switch_mb_per_s); 0: never
  std::vector<ProtocolLevel> levels;  // as many as the topology has
  bool operator==(const Protocol&) const = default;
};

// NCCL's protocols as its graph/tuning.cc (2.30) has them, on so many levels: what the old spelling
// "model": "nccl" of a topology stands for.
[[nodiscard]] std::vector<Protocol> nccl_protocols(size_t levels);

}  // namespace meshplan
