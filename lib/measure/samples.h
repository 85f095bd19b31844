// Samples of several processes.
#pragma once

#include <vector>

#include "replay/communicator.h"

namespace meshplan {

// Replaces each list of samples by the largest of all processes, sample by sample. Collective.
[[nodiscard]] Status slowest_of_all(const std::vector<std::vector<int64_t>*>& lists,
                                    Communicator& communicator, Deadline deadline);

}  // namespace meshplan
