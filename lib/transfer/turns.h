// Whole pieces by turns: the k-th rank that misses part of a shard asks the (k mod h)-th of its h
// nearest holders (README.md, "One phase"). Holders take turns over all levels together, so no
// product of digits says who is asked most; but which ranks miss part of which shard is a matter of
// digits, and the turns are counted without any boxes.
//
//     2 hosts of 4, mesh b 8, S(0)[b:(4)2] -> R     shard 0 is held by ranks 0 2 4 6
//     ranks 1 3 5 7 miss it: k = 0 1 2 3            in turn they ask the (k mod 2)-th of the two
//                                                   holders of their own host: 0, 2, 4, 6
//
// Law: equal to list_one_phase's count (tests/transfer/exchange_digits_test.cc).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "transfer/digits.h"

namespace meshplan {

// The most pieces that a rank sends: over each level, and over all of them.
struct MostTurns {
  std::array<int64_t, max_levels> over{};
  int64_t in_all = 0;
};

// What decides the turns of a change on one mesh.
struct TurnKey {
  // A position that both states cut, by digits `before` and `after`.
  struct Position {
    int8_t before;
    int8_t after;
    auto operator<=>(const Position&) const = default;
  };
  DigitMask any = 0;              // digits of the source, where the target cuts nothing
  DigitMask same = 0;             // of both, at one place
  std::vector<Position> crossed;  // ascending
  std::vector<int64_t> sizes;     // of all digits: how the mesh is cut
  auto operator<=>(const TurnKey&) const = default;
};

// What was counted on one mesh (LevelMap::turns).
struct TurnMemory {
  std::vector<int32_t> order;  // indices of the mesh, ascending by global id
  std::vector<int32_t> units;  // level-major: number of the unit of each rank in that order
  std::map<TurnKey, MostTurns> known;
};

// The turns that one question asks for. The mesh remembers them for all questions; but each
// question counts the steps of those that it asks for, so that its work is the same whatever was
// asked before.
class TurnTable {
 public:
  // `world`: the digits of the whole mesh, as align_digits has them, where levels.regular().
  // nullptr: takes more than `most_steps` (ranks times the shards that each misses part of).
  const MostTurns* find(const LevelMap& levels, const DigitWorld& world, const DigitChange& change,
                        int64_t most_steps);
  // Steps that the counts asked for take, each once.
  [[nodiscard]] int64_t steps() const { return steps_; }

 private:
  std::set<const MostTurns*> asked_;
  int64_t steps_ = 0;
};

}  // namespace meshplan
