// Exchanges priced by listing: uneven shards, sizes that do not line up, permuted ranks, units that
// cut a mesh unevenly, two meshes.
//
// Ranks that can never need anything of one another are listed apart: those that differ on what
// stays pending, on what both states cut a tensor dim by first, or in the copy of the mesh. Of
// several such classes that look alike (the same units, the same widths) one is listed.
//
//     hosts of 4, a 2 x b 4, [7, 8], S(0)[a]S(1)[b] -> S(0)[a]R
//     ranks 0-3 have rows [0:4], ranks 4-7 rows [4:7]: classes of different widths, both listed
//     [8, 8]: two classes that look alike, one of which is listed
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tensor/state.h"
#include "transfer/exchange_cut.h"
#include "transfer/exchange_sides.h"
#include "transfer/exchange_traffic.h"
#include "transfer/level_map.h"

namespace meshplan {

class ShiftTraffic;  // transfer/shift_traffic.h

// The most that is listed unless a question says less: ranks, and the shards that the distinct
// boxes wanted in a unit meet, unit by unit.
constexpr int64_t listed_limit = 4'000'000;

struct ListQuestion {
  const LevelMap* levels = nullptr;  // of the source mesh
  const Mesh* dst_mesh = nullptr;    // nullptr: the same mesh
  std::span<const int64_t> shape;    // elements
  int64_t element_bytes = 1;
  const State* src = nullptr;
  const State* dst = nullptr;  // what is pending in src and not in dst is reduced
  int64_t most_listed = listed_limit;
  // Of two phases, who fetches; nullopt: both are listed, all where they may gain.
  std::optional<Fetchers> fetchers = Fetchers::wanting;
  // Asked after each class, with what those so far make of the even cut and of whole pieces; in two
  // phases of either way. Both are one where one way is listed, which is asked after some units,
  // too. True ends the listing there. More classes never make it less. A listing that ended goes on
  // from there, or from the class that it ended in, when the same is asked again.
  std::function<bool(const ExchangeTraffic& even, const ExchangeTraffic& whole)> is_enough{};
};

// What was listed before, by everything that the answer depends on. Law: with a memory or without,
// the answer is the same but for listings that may end early: one that has gone further may answer.
struct ListingMemory {
  struct Entry {
    std::optional<ListedPhase> listed;  // of two phases as list_either_in_two_phases has it
    bool complete = false;              // it did not end early
    size_t classes = 0;                 // that were listed
    int64_t units = 0;                  // of the one that it ended in; 0: it ended behind one
    int64_t looked = 0;                 // how much of what may be listed it looked at
    int64_t too_few = -1;               // a limit that did not suffice; -1: none known
  };
  std::map<std::string, Entry> entries;
  NumbersOnLists numbers;
  // What all listings took that were made, not remembered; across meshes, too.
  int64_t ranks = 0;   // ranks set up
  int64_t looked = 0;  // overlaps and parts looked at
};

// nullopt: more than may be listed.
[[nodiscard]] std::optional<ListedPhase> list_exchange(const ListQuestion& question);
// Reducing nothing. `even`: fetched by those asked for, or by those that want it; `whole`: by all,
// where either is asked for and all may gain.
[[nodiscard]] std::optional<ListedPhase> list_either_in_two_phases(const ListQuestion& question);
// By those asked for, or by those that want it.
[[nodiscard]] std::optional<ExchangeTraffic> list_exchange_in_two_phases(
    const ListQuestion& question);

// Across meshes, in two phases by those that the question says: calls use(traffic in shifts).
// False: more than may be listed.
[[nodiscard]] bool list_shifts(const ListQuestion& question,
                               const std::function<void(const ShiftTraffic&)>& use);

// The even cut of one phase with so many 64ths as a far share; 0 to 64.
using FarShareLister = std::function<ExchangeTraffic(int64_t far_64ths)>;
// Calls use(lister), with all that listings have in common set up once. False: more than may be
// listed, rank by rank; it is not called then.
[[nodiscard]] bool list_far_shares(const ListQuestion& question,
                                   const std::function<void(const FarShareLister&)>& use);

}  // namespace meshplan
