// Exchanges priced by listing: uneven shards, sizes that do not line up, permuted ranks, units that
// cut a mesh unevenly, two meshes.
//
// Ranks that can never need anything of one another are listed apart: those that differ on what
// stays pending, on what both states cut a tensor dim by first, or in the copy of the mesh. Of
// several such classes that look alike (the same units, the same widths) one is listed.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "tensor/state.h"
#include "transfer/exchange_traffic.h"
#include "transfer/level_map.h"

namespace meshplan {

// Ranks, and the shards that the distinct boxes wanted in a unit meet, unit by unit: what is listed
// where nobody says less.
constexpr int64_t listed_limit = 4'000'000;

struct ListQuestion {
  const LevelMap* levels = nullptr;  // of the source mesh
  const Mesh* dst_mesh = nullptr;    // nullptr: the same mesh
  std::span<const int64_t> shape;    // elements
  int64_t element_bytes = 1;
  const State* src = nullptr;
  const State* dst = nullptr;  // pending atoms of src that dst lacks are reduced
  int64_t most_listed = listed_limit;
  // Asked after each class, with what those so far make of the even cut and of whole pieces (in two
  // phases both are one): true ends the listing there. More classes never make it less.
  std::function<bool(const ExchangeTraffic& even, const ExchangeTraffic& whole)> is_enough{};
};

// What was listed before, by everything that the answer depends on. Law: with a memory or without,
// the answer is the same but for listings that may end early: one that has gone further may answer.
struct ListingMemory {
  struct Entry {
    std::optional<ListedPhase> listed;  // in two phases `even` is all
    bool complete = false;              // it did not end early
    int64_t looked = 0;                 // at so much of what may be listed
    int64_t too_few = -1;               // where so much may be listed, it does not suffice
  };
  std::map<std::string, Entry> entries;
  // What all listings that were made, and not remembered, took.
  int64_t ranks = 0;   // set up
  int64_t looked = 0;  // at pieces
};
// nullopt: more than may be listed.
[[nodiscard]] std::optional<ListedPhase> list_exchange(const ListQuestion& question);
// On one mesh, reducing nothing.
[[nodiscard]] std::optional<ExchangeTraffic> list_exchange_in_two_phases(const ListQuestion& question);

}  // namespace meshplan
