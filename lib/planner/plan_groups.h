// The groups of a plan: which communicator each step runs on, and the table of those in use.
//
//     simple mesh dp 2 x tp 8, flattened {dp, tp} as dp_tp
//     step on tp             group "tp"       8:1          2 communicators
//     step on dp and tp      group "dp_tp"    16:1         1
//     exchange               group "mesh"     16:1         1       on the whole mesh, whose name
//                                                                  it takes
//
// A group is its universe, its ranks' layout and its group options: views of one world that have
// the same dim share one group, under the name declared first. Two groups that would share a name
// are told apart by their mesh ("sparse.ep"). Under the native rules a step on several mesh dims
// takes a group of their ranks in another order where none has theirs, as a flatten of tp and dp:
// it is placed by the ranks of its communicator, in whatever order these are. Groups of one rank
// are none: their steps name none.
// An exchange between two universes has the group of all their ranks, "train+serve".
#pragma once

#include <map>
#include <string>
#include <vector>

#include "mesh/mesh_table.h"
#include "plan/plan.h"

namespace meshplan {

class PlanGroups {
 public:
  explicit PlanGroups(const MeshTable& meshes);

  // Sets `group` of every step, entering new groups into the table.
  void name_groups(PlannedRedistribution& redistribution);
  // Counts the steps of a redistribution, which occurs `times` times in the file, as users of their
  // groups.
  void count_use(const PlannedRedistribution& redistribution, int64_t times);
  // The table, by ascending id.
  [[nodiscard]] std::vector<PlanGroup> groups() const;

 private:
  struct Known {
    PlanGroup group;
    std::string options;
    std::shared_ptr<const Universe> universe;  // none: the group joins two
  };
  // `known.group` has no id yet.
  [[nodiscard]] std::string unused_id(const std::string& name, const Known& known) const;
  void learn(Known known, const std::string& name);
  const PlanGroup& group_of(const Mesh& mesh, const Step& step, Rules rules);
  // Of an exchange of the request from a state on mesh `from` to one on `to`.
  const PlanGroup& exchange_group(const Request& request, const Mesh& from, const Mesh& to);
  const PlanGroup& joined_group(const Mesh& a, const Mesh& b);

  const MeshTable& meshes_;
  std::vector<Known> whole_;  // one per mesh, for exchanges
  // mesh dims, declared flattens, then undeclared sets as steps ask for them
  std::vector<Known> known_;
  std::map<std::vector<std::string>, PlanGroup> joined_;  // by the roots of the universes
  std::map<std::string, PlanGroup> used_;
};

}  // namespace meshplan
