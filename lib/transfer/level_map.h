// Where the ranks of a mesh sit in a topology: how many members of a group share a unit of each
// level.
//
//     8 ranks a host, mesh dp 2 x tp 8     group      in one host     in all
//                                          tp         8               8
//                                          dp         1               2
//                                          dp, tp     8               16
//
// Members are counted by level from the inside out; the last level holds every rank. Where units
// cut every dim into digits (transfer/level_digits.h), all groups look alike and the number of
// members is a product over sub-axes: nothing depends on the number of ranks. Else one group is
// listed for each place that groups have within the outermost unit that ends
// (transfer/rank_places.h), or, where ranks are permuted, every group; once each.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "mesh/mesh.h"
#include "plan/plan.h"
#include "transfer/few_units.h"
#include "transfer/level_digits.h"
#include "transfer/level_units.h"
#include "transfer/rank_classes.h"
#include "transfer/rank_order.h"

namespace meshplan {

struct ListingMemory;
struct TurnMemory;

// One shape that groups have. Uniform: every member sees members[l] of the group in its unit of
// level l. Not uniform: reach[l] is the most members that any one member has in its unit of level l
// but not in that of level l-1.
//
//     hosts of 4, the group of ranks 2 3 4: ranks 2 3 share a host, rank 4 is alone
//     members = 2 3     as its first rank sees them
//     reach = 1 2       rank 2 has rank 3 in its host; rank 4 has two in other hosts
struct GroupShape {
  bool uniform = true;
  std::vector<int64_t> members;  // per level; the last is the size of the group
  std::vector<int64_t> reach;    // per level, only where not uniform
  bool operator==(const GroupShape&) const = default;
  auto operator<=>(const GroupShape&) const = default;
};

// The levels on which ranks of a group meet.
[[nodiscard]] LevelSet levels_met(const std::vector<GroupShape>& shapes);

class LevelMap {
 public:
  LevelMap(const Mesh& mesh, const Topology& topology);

  [[nodiscard]] int levels() const { return static_cast<int>(level_ranks_.size()); }
  // Whether all groups of the mesh look alike and are answered by products.
  [[nodiscard]] bool regular() const { return regular_; }
  // The digits of a mesh dim, major first; only where regular.
  [[nodiscard]] const std::vector<LevelDigit>& digits(size_t mesh_dim) const {
    return digits_[mesh_dim];
  }
  // Whether the ranks of every unit of the innermost level stand in one order, by ascending id, of
  // their coordinates inside: who shares a part first is alike in all units then. Regular only;
  // remembered.
  //
  //     hosts of 2, ranks 0 1 2 3 of a mesh b 2 x a 2: yes; ranks 1 0 2 3: no
  [[nodiscard]] bool units_in_one_order() const;
  // Members of a group over this sub-axis alone in one unit of level l (regular only).
  [[nodiscard]] int64_t members_of(const SubAxis& sub_axis, int level) const;
  // Whether the sub-axis begins and ends where levels cut the mesh dim, or inside a digit that it
  // divides (else its groups are listed).
  [[nodiscard]] bool aligned(const SubAxis& sub_axis) const;
  // Every distinct shape that the groups over these sub-axes have, remembered.
  [[nodiscard]] const std::vector<GroupShape>& shapes(std::span<const SubAxis> sub_axes) const {
    return shapes_of(sub_axes).all;
  }
  // The most units of the innermost level that one of these groups lies in, and the most members
  // that one unit has of it.
  struct Spread {
    int64_t units = 1;
    int64_t inside = 1;
  };
  [[nodiscard]] const Spread& spread(std::span<const SubAxis> sub_axes) const {
    return shapes_of(sub_axes).spread;
  }
  // The groups over these sub-axes in which the ranks' ids do not ascend as their coordinates do,
  // the first sub-axis slowest; remembered.
  [[nodiscard]] const TurnedGroups& turned_groups(const std::vector<SubAxis>& slowest_first) const;
  // How many ranks were listed to find them: 0 where products answer.
  [[nodiscard]] int64_t ranks_listed(std::span<const SubAxis> sub_axes) const {
    return shapes_of(sub_axes).ranks_listed;
  }
  // The classes of ranks that do not differ on `apart` (transfer/rank_classes.h), remembered.
  [[nodiscard]] const std::vector<RankClass>& classes(const std::vector<SubAxis>& apart,
                                                      const std::vector<int64_t>& kinds) const;
  // A few units of a level, the one that the rank of this index in the mesh is in, and the most
  // coordinates on a sub-axis that the ranks of one unit of the innermost level have
  // (transfer/few_units.h), all remembered. Every rank is listed.
  [[nodiscard]] const std::vector<UnitMembers>& few_units(int level, size_t most_members) const;
  [[nodiscard]] const UnitMembers& unit_of(int level, int64_t index, size_t most_members) const;
  [[nodiscard]] int64_t most_coordinates_inside(const SubAxis& sub_axis) const;
  // What was listed of exchanges on the mesh (transfer/list_exchange.h). One question's searches,
  // its advice and its prices ask for the same again; the next question starts anew, so that its
  // work is the same whatever was asked before it.
  [[nodiscard]] ListingMemory& listings() const { return *shared_listings(); }
  void forget_listings() const { listings_.reset(); }
  // The same, to be kept for the question; of another map of the mesh in the topology.
  [[nodiscard]] const std::shared_ptr<ListingMemory>& shared_listings() const;
  void remember_listings(std::shared_ptr<ListingMemory> listings) const {
    listings_ = std::move(listings);
  }
  // What was counted of holders' turns on the mesh (transfer/turns.h).
  [[nodiscard]] TurnMemory& turns() const;
  // The unit of level l of the rank at `position` in the rank map.
  [[nodiscard]] int64_t unit(int64_t position, int level) const;
  // The innermost level whose unit holds both positions.
  [[nodiscard]] int level_between(int64_t a, int64_t b) const;

  [[nodiscard]] const Mesh& mesh() const { return *mesh_; }
  [[nodiscard]] const Topology& topology() const { return *topology_; }

 private:
  struct Shapes {
    std::vector<GroupShape> all;
    int64_t ranks_listed = 0;
    Spread spread;
  };
  [[nodiscard]] const Shapes& shapes_of(std::span<const SubAxis> sub_axes) const;
  [[nodiscard]] Shapes listed_shapes(std::span<const SubAxis> sub_axes) const;

  const Mesh* mesh_;
  const Topology* topology_;
  std::vector<int64_t> level_ranks_;  // the last is INT64_MAX: it holds every rank
  bool regular_ = true;
  bool consecutive_ = true;  // positions i -> base + i
  MeshDigits digits_;        // of no digits where not regular
  mutable std::optional<bool> units_in_one_order_;
  mutable std::map<std::vector<SubAxis>, Shapes> remembered_;
  mutable std::map<std::vector<SubAxis>, TurnedGroups> turned_groups_;
  mutable std::map<std::pair<std::vector<SubAxis>, std::vector<int64_t>>, std::vector<RankClass>>
      classes_;
  mutable std::map<std::pair<int, size_t>, std::vector<UnitMembers>> few_units_;
  mutable std::map<std::tuple<int, int64_t, size_t>, UnitMembers> unit_of_;
  mutable std::map<SubAxis, int64_t> most_inside_;
  mutable std::shared_ptr<ListingMemory> listings_;
  mutable std::shared_ptr<TurnMemory> turns_;
};

}  // namespace meshplan
