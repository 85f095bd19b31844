// What the rounds of a bundle take and stage, rank by rank (plan/bundle.h, "Figures").
//
//     round 0 on stream 0     rank 0 sends 8 B over level 1     wave: rank 0 has 8 B over level 1
//     round 1 on stream 1     rank 0 sends 4 B over level 0           and 4 B over level 0
//
//     an all_gather over level 0 beside round 0     the longer of the two
//     beside round 1                                the all_gather, then the 4 B
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "transfer/rank_table.h"
#include "transfer/step_cuts.h"
#include "transfer/tally.h"

namespace meshplan {

// Of one rank.
struct RankLoad {
  int64_t received = 0;  // bytes
  int64_t sent = 0;
  int64_t messages = 0;  // sends and receives
};

class KeptLoad;

// Bytes and peers of every rank over every level.
class RoundLoad {
 public:
  RoundLoad(size_t ranks, int levels) : tally_(ranks, levels), ranks_(ranks), levels_(levels) {}
  void add(const RoundLoad& other);
  void add(const KeptLoad& other);
  // The same as if both had one message for a pair that is in both: peers are the most of the two.
  void add_to_messages(const KeptLoad& other);
  // Bytes of so many like it; peers stay as they are.
  void add_bytes(const RoundLoad& other, int64_t times);
  // Peers of another load in place of its own.
  void set_peers(const RoundLoad& other);

  [[nodiscard]] RankLoad of_rank(size_t rank) const;
  // The most over ranks.
  [[nodiscard]] int64_t wire_bytes() const;
  [[nodiscard]] int64_t staging_bytes() const;
  [[nodiscard]] int64_t messages() const;
  [[nodiscard]] int64_t predicted_ps(const Topology& topology) const;
  // Of what some ranks have over some levels.
  [[nodiscard]] int64_t predicted_ps(const Topology& topology, const std::vector<bool>& ranks,
                                     LevelSet levels) const;

 private:
  friend class RoundCounter;
  friend class KeptLoad;
  // Bytes of so many like it, and join_peers(mine, more) of each number of peers.
  template <class Load, class JoinPeers>
  void add_bytes_and(const Load& other, int64_t times, JoinPeers&& join_peers);
  Tally tally_;
  size_t ranks_;
  int levels_;
};

// A load of which many are kept: most ranks have the numbers of another, which are there once.
class KeptLoad {
 public:
  explicit KeptLoad(const RoundLoad& load);
  [[nodiscard]] const Tally::Cell& at(int32_t rank, int level) const {
    return cells_[of_[static_cast<size_t>(rank) * levels_ + static_cast<size_t>(level)]];
  }

 private:
  size_t levels_;
  std::vector<uint32_t> of_;  // by rank and level: which of the cells
  std::vector<Tally::Cell> cells_;
};

// The collectives of a wave.
struct WaveCollectives {
  int64_t ps = 0;           // what they take one after another
  std::vector<bool> ranks;  // those of their meshes; none: there are no collectives
  LevelSet levels = 0;      // those on which ranks of a group meet
  void add(int64_t takes_ps, const std::vector<int32_t>& on_ranks, LevelSet on_levels,
           size_t all_ranks);
};
// Exchanges and collectives at the same time (plan/bundle.h, "a wave").
[[nodiscard]] int64_t wave_ps(const Topology& topology, const RoundLoad& exchanges,
                              const WaveCollectives& collectives);

// Of a collective in a round of a bundle: the mesh of whose ranks it takes groups, and the replay
// ranks of that mesh that take part.
[[nodiscard]] size_t mesh_of_collective(const Plan& plan, const PlannedRedistribution& planned,
                                        size_t step);
[[nodiscard]] std::vector<int32_t> ranks_of_collective(const Plan& plan, const RankTable& ranks,
                                                       const PlannedRedistribution& planned,
                                                       size_t step);
// The levels on which ranks of one of its groups meet.
[[nodiscard]] LevelSet levels_of_collective(const Plan& plan, const PlannedRedistribution& planned,
                                            size_t step);

// Sums what pairs of ranks exchange in one round after the other, sender by sender: of each its
// receivers fit a cache. Storage is kept.
class RoundCounter {
 public:
  RoundCounter(const RankTable& ranks, const Topology& topology);
  [[nodiscard]] size_t ranks() const { return ranks_; }
  [[nodiscard]] int levels() const { return static_cast<int>(levels_); }

  void add(const std::vector<PairElements>& pairs, int64_t element_bytes, int64_t times);
  // So many pieces of a step of `times` tensors. The cuts stay where they are until it is taken.
  void add(const PieceReader& pieces, int64_t element_bytes, int64_t times);
  // Pairs that are added no other time until they are taken, each of them once.
  void add_once(const ReceivedAlike& received, int64_t element_bytes, int64_t times);
  // What was added since the last call: one message for each pair.
  [[nodiscard]] RoundLoad take();

 private:
  // Beyond it pairs that were added several times are put together before more are.
  static constexpr size_t most_apart = 1'000'000;
  struct Pieces {
    PieceReader reader;
    int64_t element_bytes = 1;
    int64_t times = 1;
  };
  // Those of `pairs_` and `pieces_`, each once, by sender: use(pair), in bytes.
  template <class Use>
  void for_each_pair(Use&& use);
  void add_message(const PairElements& pair);  // in bytes
  [[nodiscard]] int level_between(int32_t a, int32_t b) const;

  size_t ranks_;
  size_t levels_;
  std::vector<int64_t> units_;       // by rank and level
  RoundLoad load_;                   // of pairs that were added once
  std::vector<PairElements> pairs_;  // in bytes
  size_t most_pairs_ = most_apart;   // of those before they are put together
  std::vector<Pieces> pieces_;
  std::vector<int64_t> to_each_;    // of one sender's pairs, by receiver
  std::vector<int32_t> receivers_;  // of these
};

}  // namespace meshplan
