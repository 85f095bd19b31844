// Upper limits of a topology, wherever it is read: far above any machine, and low enough that
// prices do not overflow.
#pragma once

#include <cstdint>

namespace meshplan {

constexpr int64_t max_mb_per_s = 1'000'000'000'000;  // 1e9 GB/s
constexpr int64_t max_latency_ns = 1'000'000'000'000;
constexpr int64_t max_per_peer_ns = 1'000'000'000;
constexpr int64_t max_peer_bytes = int64_t{1} << 62;
constexpr int64_t max_protocols = 40;

}  // namespace meshplan
