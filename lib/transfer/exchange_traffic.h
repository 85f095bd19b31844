// What an exchange moves over each level, folded from who sends what to whom: the most bytes that
// any rank sends or receives, and the most peers that it has.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "transfer/traffic.h"

namespace meshplan {

struct ExchangeTraffic {
  std::array<Traffic, 2> phase;       // the second only of two phases
  std::array<int64_t, 2> received{};  // the most bytes that a rank receives in each phase
  int64_t wire_bytes = 0;             // in all phases
  int64_t sent_bytes = 0;             // the most that a rank sends, in all phases
  // Closed forms: false where holders of whole pieces take turns over several levels, so that no
  // product says who has most of them.
  bool exact = true;          // else bytes and peers are at most those of the listing
  bool sent_is_known = true;  // else sent_bytes is only near to the listing's
  int64_t work = 0;  // ranks, and shards met unit by unit, that were listed; 0: a closed form
  bool operator==(const ExchangeTraffic&) const = default;
};

struct ListedPhase {
  ExchangeTraffic even;
  std::optional<ExchangeTraffic> whole;  // where some shard has several holders
  bool uneven = false;  // in one phase across meshes: whether members of units fetch_unevenly
  bool far = false;     // in one phase: whether some class has_far_holders
};

// The larger of both everywhere; their denominators are equal.
void raise_traffic(Traffic& all, const Traffic& more);
// Of two classes of ranks that exchange nothing with each other: the larger of both everywhere.
void join_traffic(ExchangeTraffic& all, const ExchangeTraffic& more);

}  // namespace meshplan
