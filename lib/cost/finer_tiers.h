// Measured tables: what they say about one collective of one group, before any formula.
//
// They replace the time of the collectives they cover, on condition that no exchange becomes
// cheaper than the collective that moves the same boxes: a collective that was measured to take
// longer than the formula says shows what the machine can do, and sending the same boxes point to
// point does not do better. An exchange that one collective (with free slices before it) could
// stand for is therefore priced at that collective's finer time, where that is more than its own.
// Protocols need no such condition: exchanges have latencies of their own.
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
  const char* tier = "levels";  // "measured" or "protocols"
};

[[nodiscard]] inline bool has_tables(const Topology& topology) { return !topology.tables.empty(); }

// nullopt: only levels cover it. Measured tables come before protocols.
[[nodiscard]] std::optional<FinerPrice> finer_price(const Topology& topology,
                                                    const GroupShape& shape,
                                                    const CollectiveBytes& bytes);

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
