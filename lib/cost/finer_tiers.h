// Tiers finer than levels: what a measured table or NCCL's published formula says about one
// collective of one group.
//
// They replace the time of the collectives they cover, on condition that no exchange becomes
// cheaper than the collective that moves the same boxes: a tuned collective that takes longer than
// the levels say shows what the machine can do, and sending the same boxes point to point does not
// do better. An exchange that one collective (with free slices before it) could stand for is
// therefore priced at that collective's finer time, where that is more than its own.
//
//     2x4, S(0)R -> RR by exchange        all_gather over a moves the same boxes
//     S(0)R -> RS(1)                      the same all_gather, of the half that b's slice keeps
//     P(sum)S(0) -> S(1)S(0)              reduce_scatter over a
//     S(0)[0]S(0)[1] -> S(0)[1]S(0)[0]    none: only an exchange permutes shards
#pragma once

#include <optional>

#include "cost/collective_time.h"
#include "transfer/digits.h"

namespace meshplan {

struct FinerPrice {
  int64_t ps = 0;
  const char* tier = "levels";  // "measured" or "nccl"
};

[[nodiscard]] inline bool has_finer_tiers(const Topology& topology) {
  return !topology.model.empty() || !topology.tables.empty();
}

// nullopt: no finer tier covers it. Measured tables come before the formula.
[[nodiscard]] std::optional<FinerPrice> finer_price(const Topology& topology,
                                                    const GroupShape& shape,
                                                    const CollectiveBytes& bytes);

// What a step that communicates takes at least besides its transfers at full bandwidth, where the
// levels say `levels_ns`; nullopt: a measured table may say anything.
[[nodiscard]] std::optional<int64_t> least_latency_ns(const Topology& topology, int64_t levels_ns);

// The collective that moves the same boxes as an exchange, by a finer tier.
struct SameBoxes {
  Op op = Op::exchange;  // exchange: there is none, or no finer tier covers it
  FinerPrice price;
};
[[nodiscard]] SameBoxes same_boxes(const Topology& topology, const DigitWorld& world,
                                   const DigitChange& change);
// The same for states whose digits do not line up (uneven shards, irregular levels).
[[nodiscard]] SameBoxes same_boxes(const LevelMap& levels, std::span<const int64_t> shape,
                                   int64_t element_bytes, const State& src, const State& dst);

}  // namespace meshplan
