// The ranks of an exchange, one by one: what each holds and wants, and the shards that its wanted
// box meets, found by position.
//
//   2 x 2, [8], S(0)R -> RR    shards 0 = [0:4) held by ranks 0 1, 1 = [4:8) held by 2 3; each rank
//                              wants [0:8) and meets both
//
// A place is one holder of one shard: shard by shard, and in rank order within each. Every rank of
// the source's mesh has one place.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "tensor/box.h"
#include "verify/recount_exchange.h"
#include "verify/units.h"

namespace meshplan::verification {

constexpr size_t nowhere = SIZE_MAX;

struct ListedRank {
  int64_t id = 0;
  size_t src = nowhere;    // index on the source's mesh
  size_t dst = nowhere;    // index on the target's mesh
  size_t shard = nowhere;  // what it holds
  size_t place = 0;        // its own among those of all holders
};

// The holders of a shard that are nearest to a rank.
struct NearestHolders {
  size_t level = 0;
  size_t first = 0;  // place
  int64_t count = 0;
};

// The chunks before that meet each chunk after, with the elements that they share.
struct Meeting {
  size_t chunk = 0;
  int64_t width = 0;
};
struct Meetings {
  std::vector<size_t> begin;  // per chunk after, and the end of the last
  std::vector<Meeting> list;
};

class Listing {
 public:
  // nullopt: some extent is cut into too many chunks to list, or the world has too many ranks.
  [[nodiscard]] static std::optional<Listing> of(const ExchangeView& view);

  // Ranks, and pieces in one copy; those that their ranks hold already are counted too.
  [[nodiscard]] int64_t work() const;
  // Where the copies start that units cut differently; nullopt: too many to say.
  [[nodiscard]] std::optional<std::vector<int64_t>> copies() const;
  // Lists the ranks of the copy that starts there.
  void list_copy(int64_t base);

  [[nodiscard]] const Units& units() const { return units_; }
  // In rank order.
  [[nodiscard]] const std::vector<ListedRank>& ranks() const { return ranks_; }
  [[nodiscard]] size_t shards() const { return begin_.size() - 1; }
  [[nodiscard]] size_t places() const { return holders_.size(); }
  [[nodiscard]] int64_t first_holder(size_t shard) const { return holders_[begin_[shard]]; }
  [[nodiscard]] int64_t holder_at(size_t place) const { return holders_[place]; }
  // The unit of each level but the outermost that a rank is in: its first id, and the first behind.
  struct UnitsOf {
    std::array<int64_t, most_levels> begin{};
    std::array<int64_t, most_levels> end{};
  };
  [[nodiscard]] UnitsOf units_of(int64_t id) const;
  // To a rank, or to one in these units.
  [[nodiscard]] NearestHolders nearest(size_t shard, int64_t id) const {
    return nearest(shard, units_of(id));
  }
  [[nodiscard]] NearestHolders nearest(size_t shard, const UnitsOf& units) const;
  // All holders in the unit of the level, on which the farthest of them may be.
  [[nodiscard]] NearestHolders inside(size_t shard, const UnitsOf& units, size_t level) const;
  // Whether the rank is of a class unlike all those that were asked about before, of this copy and
  // others. Ranks of different classes exchange nothing: they differ on digits that both states cut
  // first, alike and evenly. Two classes are alike where units begin at the same of their ranks.
  [[nodiscard]] std::vector<bool> unlike_before();

  // What stays pending at the rank, as a number: ranks talk with those that have the same.
  [[nodiscard]] size_t kept_at(const ListedRank& rank) const;
  // The number of the box that the rank wants; the same for equal boxes that are not empty.
  [[nodiscard]] size_t wanted_at(const ListedRank& rank) const;

  // Calls visit(shard, elements, longest) for every shard that the wanted box of the rank meets,
  // its own included: the elements of the part, and how many slices its longest dim has.
  template <class Visit>
  void each_part(const ListedRank& rank, Visit visit) const {
    const size_t first = kept_at(rank) * contributions_;
    each_box(0, rank.dst, 0, 1, 1, [&](size_t box, int64_t elements, int64_t longest) {
      for (size_t c = 0; c < contributions_; ++c)
        visit((first + c) * boxes_ + box, elements, longest);
    });
  }

  // The same with the part itself: visit(shard, box).
  template <class Visit>
  void each_overlap(const ListedRank& rank, Visit visit) const {
    const size_t first = kept_at(rank) * contributions_;
    Box box(meetings_.size());
    each_meeting(0, rank.dst, 0, box, [&](size_t number) {
      for (size_t c = 0; c < contributions_; ++c) visit((first + c) * boxes_ + number, box);
    });
  }

 private:
  struct Boxes {
    std::vector<std::vector<Interval>> chunks;  // per tensor dim
    std::vector<std::vector<size_t>> chunk_of;  // and of each rank
  };
  explicit Listing(const ExchangeView& view)
      : view_(&view), units_(*view.src_mesh->universe, *view.topology) {}
  [[nodiscard]] static std::optional<Boxes> boxes_of(const State& state,
                                                     std::span<const int64_t> shape,
                                                     std::span<const int64_t> mesh_shape);
  [[nodiscard]] bool list_pending(std::span<const int64_t> mesh_shape);
  void list_classes(std::span<const int64_t> mesh_shape);
  [[nodiscard]] size_t shard_of(size_t src) const;
  void list_holders();

  template <class Visit>
  void each_box(size_t d, size_t dst, size_t box, int64_t elements, int64_t longest,
                Visit&& visit) const {
    if (d == meetings_.size()) {
      visit(box, elements, longest);
      return;
    }
    const size_t chunk = after_.chunk_of[d][dst];
    for (size_t i = meetings_[d].begin[chunk]; i < meetings_[d].begin[chunk + 1]; ++i) {
      const Meeting& meeting = meetings_[d].list[i];
      each_box(d + 1, dst, box + meeting.chunk * strides_[d], elements * meeting.width,
               std::max(longest, meeting.width), visit);
    }
  }

  template <class Visit>
  void each_meeting(size_t d, size_t dst, size_t number, Box& box, Visit&& visit) const {
    if (d == meetings_.size()) {
      visit(number);
      return;
    }
    const size_t chunk = after_.chunk_of[d][dst];
    const Interval wanted = after_.chunks[d][chunk];
    for (size_t i = meetings_[d].begin[chunk]; i < meetings_[d].begin[chunk + 1]; ++i) {
      const size_t other = meetings_[d].list[i].chunk;
      const Interval held = before_.chunks[d][other];
      box[d] = {std::max(held.lo, wanted.lo), std::min(held.hi, wanted.hi)};
      each_meeting(d + 1, dst, number + other * strides_[d], box, visit);
    }
  }

  const ExchangeView* view_;
  Units units_;
  Boxes before_;
  Boxes after_;
  std::vector<Meetings> meetings_;  // per tensor dim
  std::vector<size_t> strides_;     // of the number of a box, in the numbers of its chunks
  size_t boxes_ = 1;                // before
  std::vector<size_t> kept_of_;     // per rank of the source's mesh: what stays pending
  std::vector<size_t> reduced_of_;  // and its contribution to what does not
  size_t contributions_ = 1;
  std::vector<size_t> class_of_;  // per rank of the mesh, where the exchange is on one
  size_t classes_ = 1;
  // classes: of each rank the rest of its index, and where units begin
  std::set<std::vector<size_t>> seen_;
  std::vector<int64_t> src_offsets_;
  std::vector<int64_t> dst_offsets_;

  std::vector<ListedRank> ranks_;
  std::vector<size_t> begin_;     // per shard its first place, and the end of the last
  std::vector<int64_t> holders_;  // global ids
};

}  // namespace meshplan::verification
