// The figures of a bundle's rounds and waves (plan/bundle.h).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "planner/bundle_rounds.h"
#include "planner/part_loads.h"

namespace meshplan {

struct BundleFigures {
  std::vector<BundleRound> rounds;  // with their parts by member
  BundleTotals totals;              // not the lower bound
  // Of a rank in a round.
  [[nodiscard]] int64_t most_messages() const;
};

// What all ways of a bundle are counted with; storage is kept.
class FigureCounter {
 public:
  // `levels`: of every mesh that a collective of the bundle runs on, by index.
  FigureCounter(const Plan& plan, const RankTable& ranks,
                const std::vector<std::unique_ptr<LevelMap>>& levels);
  FigureCounter(const FigureCounter&) = delete;  // its parts know each other
  FigureCounter& operator=(const FigureCounter&) = delete;

  // What count() looks at: pairs of ranks of parts of rounds, and ranks in rounds. Law: looked_at()
  // rises by as much, or less where parts are known (tests/planner/bundle_choice_test.cc).
  [[nodiscard]] int64_t work_of(const std::vector<Kind>& kinds, const std::vector<size_t>& chosen,
                                const std::vector<KindRound>& rounds) const;
  [[nodiscard]] BundleFigures count(const std::vector<Kind>& kinds,
                                    const std::vector<size_t>& chosen,
                                    const std::vector<KindRound>& rounds);
  [[nodiscard]] size_t ranks() const { return counter_.ranks(); }
  // So far.
  [[nodiscard]] int64_t looked_at() const { return looked_at_ + part_loads_.looked_at(); }
  // By weighing ways.
  [[nodiscard]] int64_t weighed() const { return weighed_; }
  [[nodiscard]] RoundLoad no_load() const { return {counter_.ranks(), counter_.levels()}; }
  // What so many tensors exchange; nullopt where an exchange of the way moves nothing, and another
  // step does.
  struct WayLoads {
    std::vector<KeptLoad> of_exchanges;
    int64_t pairs = 0;     // of ranks that exchange something, over all exchanges
    int64_t messages = 0;  // of a rank in an exchange of one tensor that goes whole, at most
  };
  [[nodiscard]] std::optional<WayLoads> loads_of(const Way& way, int64_t tensors);

 private:
  // Of one round while figures are counted.
  struct Counted {
    std::optional<RoundLoad> load;  // of exchanges
    int64_t packed = 0;             // by a collective, on each of its ranks:
    std::vector<int32_t> packing;   // those of the meshes of its parts, ascending
    LevelSet levels = 0;            // on which ranks of its groups meet
  };
  Counted count_round(const std::vector<Kind>& kinds, const std::vector<size_t>& chosen,
                      const KindRound& round, BundleRound& out);
  [[nodiscard]] RoundLoad load_of(const std::vector<Kind>& kinds, const std::vector<size_t>& chosen,
                                  const KindRound& round);
  void count_collective(const std::vector<Kind>& kinds, const std::vector<size_t>& chosen,
                        const KindRound& round, BundleRound& out, Counted& counted);
  void count_waves(const std::vector<Kind>& kinds, const std::vector<size_t>& chosen,
                   const std::vector<KindRound>& rounds, const std::vector<Counted>& counted,
                   BundleFigures& figures);
  [[nodiscard]] std::vector<int64_t> held_by_ranks(const std::vector<Kind>& kinds,
                                                   const std::vector<size_t>& chosen) const;

  const Plan& plan_;
  const RankTable& ranks_;
  const std::vector<std::unique_ptr<LevelMap>>& levels_;
  RoundCounter counter_;
  PartLoads part_loads_;
  int64_t looked_at_ = 0;
  int64_t weighed_ = 0;
};

}  // namespace meshplan
