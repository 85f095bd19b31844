// What an exchange costs: the traffic that lib/transfer says it has, as time.
#pragma once

#include <cstdint>
#include <optional>

#include "cost/finer_tiers.h"
#include "transfer/digits.h"
#include "transfer/list_exchange.h"

namespace meshplan {

struct ExchangeCost {
  int64_t wire_bytes = 0;  // the most that any rank receives, all phases
  int64_t sent_bytes = 0;  // the most that any rank sends
  int64_t predicted_ps = 0;
  ExchangeTraffic traffic;
  bool whole_pieces = false;  // the cut is 1
  SameBoxes least;            // a finer tier's collective that moves the same boxes: the time is never below its
  // False: too much to list. One phase: an upper estimate of received bytes stands in. Two phases: INT64_MAX, as nothing is known.
  bool exact = true;
};

struct ExchangeQuestion : ListQuestion {
  int phases = 1;
  std::optional<bool> whole_pieces;  // nullopt: whichever prices lower
  int64_t most_ps = INT64_MAX;  // a price above it is of no use: a listing may end once it is, with a price in between
};

// In closed form where digits line up, else by listing.
[[nodiscard]] ExchangeCost price_exchange(const ExchangeQuestion& question);

// Closed forms on bare digits, for the planner's inner loop; sent_bytes may be near only (ExchangeTraffic). nullopt: there is none, or
// only a lower one for whole pieces, and these might be cheaper.
[[nodiscard]] std::optional<ExchangeCost> price_digits(const Topology& topology, const DigitWorld& world, const DigitChange& change,
                                                       int phases, std::optional<bool> whole_pieces);

}  // namespace meshplan
