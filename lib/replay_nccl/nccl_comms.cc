#include "replay_nccl/nccl_comms.h"

#include <algorithm>

namespace meshplan {

NcclCode NcclComms::split(const Partition& partition, int64_t copy, const Group& locals) {
  ByRank& comms = split_[{partition, copy}];
  for (const int32_t rank : locals) {
    int colour = partition.empty() ? 0 : -1;
    int key = partition.empty() ? static_cast<int>(rank) : 0;
    for (size_t g = 0; g < partition.size(); ++g) {
      const Group& group = partition[g];
      const auto at = std::lower_bound(group.begin(), group.end(), rank);
      if (at == group.end() || *at != rank) continue;
      colour = static_cast<int>(g);
      key = static_cast<int>(at - group.begin());
    }
    const NcclCode code = nccl_.split(world_.at(rank), colour, key, comms[rank], calls_);
    if (code != nccl_done && code != nccl_busy) return code;
  }
  return nccl_done;
}

void NcclComms::add(const Partition& partition, int64_t copy) {
  const ByRank& comms = begun(partition, copy);
  for (const Group& group : partition) {
    for (const int32_t rank : group) {
      if (comms.count(rank) != 0) by_group_[{group, rank}].push_back(comms.at(rank));
    }
  }
  if (partition.empty()) {
    for (const auto& [rank, comm] : comms) by_group_[{{}, rank}].push_back(comm);
  }
  in_order_.push_back(&comms);
}

NcclComm NcclComms::find(const Group& group, int32_t rank, int64_t copy) const {
  if (group.empty() && copy < of_world()) return world_.at(rank);
  const auto at = by_group_.find({group, rank});
  const int64_t index = group.empty() ? copy - of_world() : copy;
  if (at == by_group_.end() || index >= std::ssize(at->second)) return nullptr;
  return at->second[static_cast<size_t>(index)];
}

std::vector<const NcclComms::ByRank*> NcclComms::all() const {
  std::vector<const ByRank*> out{&world_};
  out.insert(out.end(), in_order_.begin(), in_order_.end());
  return out;
}

}  // namespace meshplan
