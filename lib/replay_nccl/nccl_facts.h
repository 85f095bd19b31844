// What the report says of the backend.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "replay_nccl/nccl_communicator.h"

namespace meshplan {

struct NcclFacts {
  std::vector<std::pair<std::string, std::string>> shared;  // the same in every process
  std::string place;                                        // host and GPUs of this one
};
[[nodiscard]] NcclFacts nccl_facts(const NcclQuestion& question);
// "rank 12", by its global id; "process 9": one that stands by.
[[nodiscard]] std::string process_name(const NcclQuestion& question, int64_t process);
// The one of this process; "all ranks": of the only one.
[[nodiscard]] std::string own_name(const NcclQuestion& question);
// With the places of all processes, and whether ranks share a GPU.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> facts_of_all(
    const NcclQuestion& question, const NcclFacts& own, const std::vector<std::string>& places);

}  // namespace meshplan
