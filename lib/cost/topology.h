// Topologies: what links cost, from the inside out. The type is plan/plan.h's Topology.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"

namespace meshplan {

// One level of 1,048,576 ranks, 100 GB/s, 10,000 ns, per_peer_ns 500: what is used where a spec
// names none.
[[nodiscard]] Topology uniform_topology();
// a100 h100 h200 b200 b300 mi300x mi355x tpu-v5p uniform, and gb200 and gb300 in racks of 72 GPUs
// or, as clouds sell them, 64 (gb200-nvl72, gb200-nvl64). Each carries its sources; those of GPUs
// are of protocols.
[[nodiscard]] std::optional<Topology> topology_preset(std::string_view name);
[[nodiscard]] const std::vector<std::string>& topology_preset_names();

// A topology file: JSON of the same form as a spec's "topology" object (what `calibrate` writes);
// spec/spec.h reads it.
[[nodiscard]] std::string write_topology(const Topology& topology);

// What every topology must satisfy: at least one level, ranks ascending and >= 1, bandwidths >= 1,
// latencies >= 0, exchange_percent 1..100, shares that come to 1 MB/s or more.
[[nodiscard]] Status check_topology(const Topology& topology);

}  // namespace meshplan
