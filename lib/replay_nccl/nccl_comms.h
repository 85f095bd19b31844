// The communicators of this process's ranks: the world, one split of it for every partition of the
// ranks, and more of either where calls in flight together need one each.
//
//     wave 3   exchange     stream 0   world, copy 0
//              exchange     stream 1   world, copy 1: a split of all ranks
//              all_gather   stream 2   groups of "tp", copy 0
//
// Operations of one communicator run one after the other on the GPU whatever their streams, so two
// calls overlap only on two communicators. A copy shares no resources with its parent
// (ncclConfig_t::splitShare is 0): shared ones would put them in order again.
//
// The world's own calls never block, so that no start waits for ever. Where calls block (see
// NcclQuestion::calls), all ranks have a split from copy 0 on: a group of NCCL has calls of one
// kind.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "replay_nccl/nccl_library.h"

namespace meshplan {

class NcclComms {
 public:
  using ByRank = std::map<int32_t, NcclComm>;  // of the local ranks; null: in no group
  using Group = std::vector<int32_t>;          // of ranks, ascending; none: all ranks
  using Partition = std::vector<Group>;        // disjoint groups; none: all ranks

  NcclComms(NcclLibrary nccl, NcclLibrary::Calls calls) : nccl_(std::move(nccl)), calls_(calls) {}

  [[nodiscard]] ByRank& world() { return world_; }
  [[nodiscard]] bool knows(const Partition& partition, int64_t copy) const {
    return (partition.empty() && copy < of_world()) || split_.count({partition, copy}) != 0;
  }
  // Splits the world for each of these local ranks, inside an open group of NCCL. `find` and `all`
  // know the new ones after `add`, when they have settled.
  [[nodiscard]] NcclCode split(const Partition& partition, int64_t copy, const Group& locals);
  [[nodiscard]] const ByRank& begun(const Partition& partition, int64_t copy) const {
    return split_.at({partition, copy});
  }
  void add(const Partition& partition, int64_t copy);

  // Null: none was made.
  [[nodiscard]] NcclComm find(const Group& group, int32_t rank, int64_t copy) const;
  // In the order of their making, which is the same in every process.
  [[nodiscard]] std::vector<const ByRank*> all() const;
  // Each communicator that is there becomes null after `close`.
  template <class Close>
  void close_all(Close&& close) {
    for (auto& [key, comms] : split_) {
      for (auto& [rank, comm] : comms) end(comm, close);
    }
    for (auto& [rank, comm] : world_) end(comm, close);
  }

 private:
  template <class Close>
  static void end(NcclComm& comm, Close&& close) {
    if (comm != nullptr) close(comm);
    comm = nullptr;
  }

  // Copies of the world that are the world itself, and no split.
  [[nodiscard]] int64_t of_world() const {
    return calls_ == NcclLibrary::Calls::do_not_block ? 1 : 0;
  }

  NcclLibrary nccl_;
  NcclLibrary::Calls calls_;
  ByRank world_;
  std::map<std::pair<Partition, int64_t>, ByRank> split_;
  std::vector<const ByRank*> in_order_;
  // By copy. They belong to split_.
  std::map<std::pair<Group, int32_t>, std::vector<NcclComm>> by_group_;
};

}  // namespace meshplan
