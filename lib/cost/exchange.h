// What an exchange costs: the traffic that lib/transfer says it has, as time.
#pragma once

#include <cstdint>
#include <optional>

#include "cost/finer_tiers.h"
#include "transfer/digits.h"
#include "transfer/list_exchange.h"
#include "transfer/turns.h"

namespace meshplan {

struct ExchangeCost {
  int64_t wire_bytes = 0;  // the most that any rank receives, all phases
  int64_t sent_bytes = 0;  // the most that any rank sends
  int64_t predicted_ps = 0;
  ExchangeTraffic traffic;
  bool whole_pieces = false;  // the cut is 1
  int phases = 1;
  int64_t chunks = 1;                     // of two phases
  Fetchers fetchers = Fetchers::wanting;  // of two phases
  int64_t at_once = 0;                    // in shifts; 0: from all
  bool in_shifts_unknown = false;         // they were asked for, and too much to price
  // Listed: members of units fetch so unevenly that all may gain by sharing it in two phases.
  bool uneven = false;
  // Listed in one phase across meshes: the rate to one peer, not that of links, is what it takes.
  bool held_up = false;
  int64_t far_64ths = 0;  // the far share
  // In one phase: at least what any far share takes; INT64_MAX where none is offered, as there are
  // no far holders or links inside of units do not take longest by the even cut.
  int64_t least_far_ps = INT64_MAX;
  // The price is above most_ps, and what it takes at least: not all was listed or counted.
  bool at_least = false;
  // a finer tier's collective that moves the same boxes: the time is never below its own
  SameBoxes least;
  // False: too much to list. One phase: an upper estimate of received bytes stands in. Two phases:
  // INT64_MAX, as nothing is known.
  bool exact = true;
};

// The most ranks and overlaps that are listed on one mesh where no class of ranks stands for
// others: for far shares, a few times each, and for what all fetch.
constexpr int64_t whole_mesh_listed = 30'000;

// Where it may be fetched by either, it is by those that want it unless all take less time.
struct ExchangeQuestion : ListQuestion {
  int phases = 1;
  std::optional<bool> whole_pieces;    // nullopt: whichever prices lower
  std::optional<int64_t> chunks = {};  // of two phases; nullopt: as many as price lowest
  // of one phase, evenly cut and reducing nothing; nullopt: the one of 1 to 63 that is found to
  // price lowest
  std::optional<int64_t> far_64ths = 0;
  // On one mesh, in one phase that reduces nothing: a far share where it prices lower than what
  // comes from the nearest alone, and where no more is listed than whole_mesh_listed.
  bool far_too = false;
  // Of two phases: where members fetch so much from one holder each that the rate to one peer holds
  // them up, they may fetch in laps; across meshes all may.
  bool in_laps_too = false;
  // Of two phases across meshes: chunks come in shifts, from so many ranks at once; 0: from all.
  int64_t at_once = 0;
  bool in_shifts_too = false;  // they may, from as many as price lowest
  // a price above it is of no use: a listing may end once it is, with what it takes at least
  int64_t most_ps = INT64_MAX;
};

// What is known where a far share may take less, but more than is of use.
[[nodiscard]] ExchangeCost at_least_far(ExchangeCost nearest);

// In closed form where digits line up, else by listing. Only a listing knows what all fetch: where
// either may, closed forms have it fetched by those that want it.
[[nodiscard]] ExchangeCost price_exchange(const ExchangeQuestion& question);

// The same on bare digits, for the planner's inner loop.
struct DigitQuestion {
  const LevelMap* levels = nullptr;
  const DigitWorld* world = nullptr;
  const DigitChange* change = nullptr;
  int phases = 1;
  std::optional<bool> whole_pieces;    // nullopt: whichever prices lower
  TurnTable* turns = nullptr;          // of the world
  int64_t most_steps = listed_limit;   // that counting the turns of one change may take
  bool sent_too = false;               // sent_bytes is to be exact
  std::optional<int64_t> chunks = {};  // of two phases; nullopt: as many as price lowest
  int64_t laps = 1;                    // the same
  bool in_laps_too = false;            // as ExchangeQuestion has it
  // A price above it is of no use, and may be told too low, but not as low as that.
  int64_t most_ps = INT64_MAX;
};
// By products of digits, and turns where they need counting; sent_bytes may be near only
// (ExchangeTraffic::sent_is_known). nullopt: there is no such form (two phases), or the turns take
// too many steps and whole pieces might be cheaper.
[[nodiscard]] std::optional<ExchangeCost> price_digits(const DigitQuestion& question);

}  // namespace meshplan
