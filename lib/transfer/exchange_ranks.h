// The ranks of one exchange as small numbers: what each holds, what each wants, and which shards
// every wanted box meets.
//
//     2 x 2, [8], S(0)R -> RR        shards 0 = [0:4] held by ranks 0 1, 1 = [4:8] held by 2 3
//                                    wanted boxes 0 = [0:8] by all; it meets shards 0 and 1
//
// A shard is one distinct, non-empty source box of one contribution to a pending reduction; shards
// are numbered in the order of their first holder. Source boxes of one state are equal or disjoint,
// and so are target boxes, so boxes are tuples of intervals and nothing is compared pair by pair.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tensor/box.h"

namespace meshplan {

// Where boxes lie on a grid: of each tensor dim the distinct intervals of boxes that are not empty,
// ascending, and rank-major each box's place among them; -1 in an empty box.
//
//     boxes [0:4, 0:2] [0:4, 2:4] [4:8, 0:2] [4:8, 2:4]     dim 0: [0:4] [4:8], dim 1: [0:2] [2:4]
//                                                           places 0 0  0 1  1 0  1 1
struct GridPlaces {
  std::vector<std::vector<Interval>> grid;
  std::vector<int32_t> place;
};

// One side of an exchange, rank by rank. Ids ascend.
struct SideBoxes {
  int dims = 0;                       // tensor dims
  std::vector<int64_t> id;            // global ids
  std::vector<Interval> box;          // rank-major, `dims` each; empty where their places are known
  std::vector<int64_t> contribution;  // of a pending reduction; empty: all the same
  GridPlaces places;                  // of the boxes; empty: not known yet
  [[nodiscard]] size_t size() const { return id.size(); }
};

// A wanted box meets a shard in one box: `elements` of it, in `longest` slices along `dim` (ties:
// the lowest dim; a scalar is one slice).
struct Overlap {
  int32_t shard = 0;
  int32_t dim = 0;
  int64_t elements = 0;
  int64_t longest = 1;
};

struct ExchangeRanks {
  int dims = 0;
  // Ranks of both sides, ascending by id.
  std::vector<int64_t> id;
  std::vector<int32_t> source;  // index on the source side; -1: none
  std::vector<int32_t> target;  // index on the target side; -1: none
  std::vector<int32_t> shard;   // what the rank holds; -1: nothing
  std::vector<int32_t> place;   // its own among the holders of that
  std::vector<int32_t> wanted;  // what it wants; -1: nothing
  // Per shard: its box, and its holders as rank indices, ascending.
  std::vector<Interval> shard_box;
  std::vector<int32_t> holders;
  std::vector<int32_t> holders_begin;  // one more than there are shards
  // Per wanted box, numbered in the order of the first rank that wants it: the shards it meets,
  // ascending.
  std::vector<Interval> wanted_box;
  std::vector<Overlap> overlaps;
  std::vector<int32_t> overlaps_begin;  // one more than there are wanted boxes
  std::vector<int64_t> wanters;         // how many ranks want it

  [[nodiscard]] size_t size() const { return id.size(); }
  [[nodiscard]] size_t shards() const { return holders_begin.size() - 1; }
  [[nodiscard]] size_t wants() const { return overlaps_begin.size() - 1; }
  [[nodiscard]] std::span<const int32_t> holders_of(int32_t s) const {
    const auto at = static_cast<size_t>(s);
    return std::span(holders).subspan(
        static_cast<size_t>(holders_begin[at]),
        static_cast<size_t>(holders_begin[at + 1] - holders_begin[at]));
  }
  [[nodiscard]] std::span<const Overlap> overlaps_of(int32_t w) const {
    const auto at = static_cast<size_t>(w);
    return std::span(overlaps).subspan(
        static_cast<size_t>(overlaps_begin[at]),
        static_cast<size_t>(overlaps_begin[at + 1] - overlaps_begin[at]));
  }
  // The box in which wanted box w meets the shard.
  [[nodiscard]] Box overlap_box(int32_t w, int32_t s) const;
};

// O(ranks log ranks + overlaps). nullopt: more than `most_overlaps` of them.
[[nodiscard]] std::optional<ExchangeRanks> make_exchange_ranks(const SideBoxes& sources,
                                                               const SideBoxes& targets,
                                                               int64_t most_overlaps = INT64_MAX);
// Keeps its memory for the next listing of the thread.
void give_back(ExchangeRanks&& ranks);

}  // namespace meshplan
