// What a choice of ways takes, before it is put into rounds.
//
//     kind w, 4 tensors, by an exchange                      one round of 6 tensors,
//     kind v, 2 tensors, by an exchange and an all_gather    one launch of 2
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/bundle_figures.h"

namespace meshplan {

// Whether kinds share messages between two ranks, as they do, or have some of their own: then a
// kind by itself that has fewer peers takes less.
enum class Messages : uint8_t { shared, of_kinds };

// Whether collectives run behind all exchanges, or beside those that share no link with them.
enum class Launches : uint8_t { behind, beside };

class ChoiceTimes {
 public:
  // What all of it points at stays where it is. `levels`: of every mesh of the bundle, by index.
  // `most_staging`: bytes of a rank; 0: no limit.
  ChoiceTimes(const Plan& plan, const RankTable& ranks, const std::vector<Kind>& kinds,
              const std::vector<std::unique_ptr<LevelMap>>& levels, FigureCounter& counter,
              int64_t most_staging);

  // As if all first exchanges were one round, all second ones another that runs at the same time,
  // and so on, and collectives of one group one launch behind them, or beside them: what the ranks
  // that take part in all of them exchange over the links that each uses comes behind. INT64_MAX
  // where an exchange moves nothing, which no plan has. Latencies count for each bucket that the
  // staging makes of it.
  // `chosen`: the way of each kind.
  [[nodiscard]] int64_t about_ps(const std::vector<size_t>& chosen,
                                 Messages messages = Messages::shared,
                                 Launches launches = Launches::behind);
  // No rounds take less: the same of bytes alone, beside one another.
  [[nodiscard]] int64_t least_ps(const std::vector<size_t>& chosen);

  // Messages of a rank in a step of the way, the most over ranks and steps, where one tensor goes
  // whole; INT64_MAX where an exchange moves nothing, and another step does. Law: those of its
  // exchanges, once it is listed (tests/planner/bundle_choice_test.cc).
  [[nodiscard]] int64_t whole_messages(size_t kind, size_t way);
  [[nodiscard]] int64_t whole_messages(const std::vector<size_t>& chosen);  // the most over kinds
  // Kind by kind the way that has fewest of them.
  [[nodiscard]] std::vector<size_t> fewest_messages();
  // Pairs of ranks of all steps that are not listed yet (bundle_kind.h).
  [[nodiscard]] int64_t unlisted_pairs(const std::vector<size_t>& chosen);

  // Settles one kind after the other: `pick` says by which way it goes, and is told what the choice
  // takes with any, where the kinds before it are settled and those behind it as in `chosen`.
  // Law: as about_ps of each such choice. Sums of n kinds are added up n log n times, not n * n.
  using WithWay = std::function<int64_t(size_t way)>;
  using Pick = std::function<size_t(size_t kind, const WithWay& about_ps)>;
  void settle(std::vector<size_t>& chosen, Messages messages, Launches launches, const Pick& pick);
  // How often what a kind moves was added to a sum so far.
  [[nodiscard]] int64_t added() const { return added_; }

 private:
  // Collectives that may be launched together: mesh, op and mesh dims.
  using Launch = std::tuple<size_t, Op, std::vector<std::tuple<int32_t, int64_t, int64_t>>>;
  using Collectives = std::map<Launch, CollectiveBytes>;
  struct Moved {
    std::optional<FigureCounter::WayLoads> loads;  // none: an exchange moves nothing
    Collectives collectives;
    std::map<size_t, std::vector<int32_t>> ranks;  // that take part in them, by mesh
  };
  const Moved& moved(size_t kind, size_t way);
  // Of some kinds.
  struct Sum {
    std::vector<RoundLoad> rounds;  // by exchange
    Collectives collectives;
    // As those of a kind: of the first kind that has the mesh.
    std::map<size_t, std::pair<size_t, const std::vector<int32_t>*>> ranks;
    bool idle = false;  // an exchange of one of them moves nothing
  };
  void add_kind(Sum& sum, size_t kind, size_t way, Messages messages);
  // Of the kinds [kinds.lo, kinds.hi), where `others` is of all others.
  struct Settling;
  void settle_range(const Settling& settling, Interval kinds, const Sum& others);
  [[nodiscard]] Sum sum_of(const std::vector<size_t>& chosen, Messages messages);
  [[nodiscard]] int64_t about_ps(const Sum& sum, Launches launches) const;
  [[nodiscard]] RoundLoad exchanges_of(const Sum& sum) const;
  [[nodiscard]] int64_t ps(const Sum& sum, const RoundLoad& exchanges, const Topology& topology,
                           Launches launches) const;
  [[nodiscard]] int64_t collective_ps(const Launch& launch, const CollectiveBytes& bytes,
                                      const Topology& topology) const;

  const Plan& plan_;
  const RankTable& ranks_;
  const std::vector<Kind>& kinds_;
  const std::vector<std::unique_ptr<LevelMap>>& levels_;
  FigureCounter& counter_;
  int64_t most_staging_;
  Topology bytes_alone_;
  std::map<std::pair<size_t, size_t>, Moved> moved_;  // by kind and way
  int64_t added_ = 0;
};

}  // namespace meshplan
