// Who fetches what in the first of two phases: each unit of the innermost level fetches once what
// it misses as a whole, shared among the members that want it or among all; in the second they
// exchange inside. The rule is in this module's README.md.
//
//     2 hosts of 2, [8], S(0)R -> RR     host 0 misses [4:8]: rank 0 fetches [4:6], rank 1 [6:8];
//                                        then each passes on what it fetched
//     where rank 0 alone wants [4:8]     it fetches all of it; or, shared among all, rank 1 fetches
//                                        [6:8] for it
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "transfer/exchange_cut.h"
#include "transfer/nearest_holders.h"

namespace meshplan {

// A part of what a unit misses: some slices of the box in which the overlap's shard meets wanted
// box `wanted`.
struct FetchedPart {
  int32_t wanted = 0;
  size_t number = 0;  // of the wanted box in UnitExchange::wanted
  Overlap overlap;
  int64_t first = 0;  // slice, along the overlap's dim
  int64_t slices = 1;
  int32_t fetcher = 0;  // rank index; a member of the unit
  int32_t holder = 0;   // rank index
  int level = 0;        // of the link between them
  int64_t elements = 0;
};

struct UnitExchange {
  std::vector<int32_t> members;        // rank indices, ascending
  std::vector<int32_t> wanted;         // distinct wanted boxes, in order of the first member
  std::vector<int32_t> sharing;        // members that want the first box, those of the next, ...
  std::vector<int32_t> sharing_begin;  // one more than there are wanted boxes
  // Not empty ones, in the order of `wanted`, and in that in which members share them: what a
  // member fetches stands in a row, or in one for each lap.
  std::vector<FetchedPart> fetched;

  // The members that want the k-th box, ascending.
  [[nodiscard]] std::span<const int32_t> members_of(size_t k) const {
    const auto begin = static_cast<size_t>(sharing_begin[k]);
    return std::span(sharing).subspan(begin, static_cast<size_t>(sharing_begin[k + 1]) - begin);
  }
};

// Into how many parts each missing box is cut: the least that lets `members` share `boxes` missing
// ones within one sixteenth of evenly. Law: at most `members`.
//
//     3 boxes, 2 members: whole boxes are 2 and 1, a third above 1.5; halves are 3 and 3: 2 parts
//     17 boxes, 2 members: whole boxes are 9 and 8, within a sixteenth of 8.5: 1 part
[[nodiscard]] int64_t parts_to_share(int64_t boxes, int64_t members);

// The units of a two-phase exchange, in order of their first rank.
class TwoPhases {
 public:
  TwoPhases(const ExchangeRanks& ranks, const LevelUnits& units,
            Fetchers fetchers = Fetchers::wanting);
  // The next unit; false at the end.
  bool next(UnitExchange& unit);
  [[nodiscard]] Nearest& nearest() { return nearest_; }

 private:
  // Which of one set of nearest holders is asked next for a part of one size: in a circle.
  struct Turn {
    int level = 0;
    int32_t begin = 0;  // of the nearest holders
    int64_t parts = 0;  // 0: none was asked yet
    int32_t next = 0;
  };
  // The place of the holder among the shard's.
  int32_t take_turn(int32_t shard, const NearestHolders& near, int64_t parts);
  void list_sharing(UnitExchange& unit);
  // Adds to `missing_` what the unit misses of the box of this number.
  void add_missing(const UnitExchange& unit, size_t number);
  // What is missing of one box, among those that want it.
  void share_out(UnitExchange& unit, std::span<const int32_t> sharing);
  // What is missing of all, among all, in one lap or several.
  void share_among_all(UnitExchange& unit);
  // How many elements each of the nearest holders of a shard was asked for, where all fetch.
  class LeastAsked {
   public:
    // The place among the shard's holders of the one asked for least, the first of several, which
    // is asked for so many more.
    int32_t next(const NearestHolders& near, int64_t elements);

   private:
    // By elements and place, of those that were asked: the first ones, and once all were a heap.
    std::vector<std::pair<int64_t, int32_t>> asked_;
  };
  struct AskedFirst {
    int level = -1;  // none yet
    int32_t begin = 0;
    LeastAsked asked;
  };
  LeastAsked& asked_of(int32_t shard, const NearestHolders& near);
  struct Missing {
    size_t number = 0;
    Overlap overlap;
    int64_t slice = 1;  // elements
  };

  const ExchangeRanks& ranks_;
  LevelUnits units_;
  Nearest nearest_;
  Fetchers fetchers_;
  size_t at_ = 0;
  // By shard: what it was asked for first, and what else.
  std::vector<Turn> first_turn_;
  std::unordered_map<int32_t, std::vector<Turn>> turns_;
  // By shard: of the nearest holders asked first, and by level and first of any others.
  std::vector<AskedFirst> first_asked_;
  std::map<std::tuple<int32_t, int, int32_t>, LeastAsked> asked_;
  std::vector<int32_t> number_;  // by wanted box: its place in the unit's; -1: none
  std::vector<int32_t> next_;    // by place: where its next member goes
  std::vector<Missing> missing_;
  std::vector<int32_t> all_;  // members on the target's side
};

}  // namespace meshplan
