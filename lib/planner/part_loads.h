// What the exchanges of a round move, from what each of its parts moves: rounds have like parts of
// one tensor after the other, so that these are counted once.
//
//     round 0    piece 0 of 4 of w1 0, of w3 0     a rank sends 8 B for each, in one message
//     round 8    piece 0 of 4 of w1 1, of w3 1     the same, and nothing is counted
//     round 9    piece 0 of 4 of w1 2 and 3        twice what a piece of w1 moves, as many messages
//
// Bytes add up. Messages do not, as a pair of ranks has one in a round whatever that packs: they
// are told by which pairs the parts have, and most parts of a step have all of its pairs.
#pragma once

#include <array>
#include <compare>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cost/round_time.h"
#include "planner/bundle_kind.h"

namespace meshplan {

class PartLoads {
 public:
  // The counter stays where it is; nothing is added to it when load_of is called.
  explicit PartLoads(RoundCounter& counter) : counter_(counter) {}

  // `count` pieces of a step that follow one another. The same numbers of kind, way and step always
  // have the same cuts.
  struct Pieces {
    size_t kind = 0;
    size_t way = 0;
    size_t step = 0;
    int64_t piece = 0;
    int64_t pieces = 1;
    int64_t count = 1;
    auto operator<=>(const Pieces&) const = default;
  };
  struct Part {
    Pieces what;
    const WayStep* moved = nullptr;
    int64_t tensors = 1;
  };
  // Law: as if all were added to the counter, and taken (tests/planner/part_loads_test.cc).
  [[nodiscard]] RoundLoad load_of(const std::vector<Part>& parts);
  // Cuts counted so far, and what adding up what is known takes as many of.
  [[nodiscard]] int64_t looked_at() const { return looked_at_; }

 private:
  // Numbers of rank and level that are kept, 32 B each.
  static constexpr size_t most_kept = 3'000'000;
  // So many of them are added up while a cut is counted.
  static constexpr size_t cells_a_cut = 3;
  struct Known {
    RoundLoad load;       // of one tensor
    size_t pairs_as = 0;  // which of the step's sets of pairs it has
  };
  using Step = std::array<size_t, 3>;  // kind, way, number
  using PairSets = std::set<std::pair<Step, size_t>>;
  [[nodiscard]] const Known& known(const Part& part);
  void add(const Part& part, int64_t tensors);
  [[nodiscard]] size_t cells() const {
    return counter_.ranks() * static_cast<size_t>(counter_.levels());
  }
  void limit_memory(size_t parts);

  RoundCounter& counter_;
  int64_t looked_at_ = 0;
  std::map<Pieces, Known> known_;
  std::map<Step, std::vector<std::vector<bool>>> pair_sets_;
  std::map<PairSets, RoundLoad> peers_;
};

}  // namespace meshplan
