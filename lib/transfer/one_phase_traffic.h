// The traffic of an exchange in one phase, by listing every overlap. Members of a unit that want
// one box are listed together, as all ranks of a unit have the same nearest holders. Sums saturate.
#pragma once

#include <cstdint>
#include <optional>

#include "transfer/exchange_ranks.h"
#include "transfer/exchange_traffic.h"
#include "transfer/level_units.h"
#include "transfer/tally.h"

namespace meshplan {

// Ranks that ask for whole pieces of a shard in turn, where they ask for more and for less: so many
// are looked at, all shards together.
constexpr int64_t most_turns_listed = 100'000'000;

// `asks_uneven`: else ListedPhase::uneven is false. nullopt: more turns than are listed.
[[nodiscard]] std::optional<ListedPhase> list_one_phase(const ExchangeRanks& ranks,
                                                        const LevelUnits& units,
                                                        int64_t element_bytes, bool asks_uneven);

// Only what comes from inside units, by the even cut, added to `inner`. Gives how many overlaps
// were looked at.
int64_t list_inside_units(const ExchangeRanks& ranks, const LevelUnits& units,
                          int64_t element_bytes, Tally& inner);

}  // namespace meshplan
