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

}  // namespace meshplan
