// `--launch N`: starts N processes of this program on this machine, one a rank, and waits for all.
//
// Each gets MESHPLAN_RANK, MESHPLAN_RANKS, MESHPLAN_LOCAL_RANK and NCCL_COMM_ID=127.0.0.1:port, by which the nccl backend finds the others;
// it must not launch again when MESHPLAN_RANK is set. When one ends with an error the others get `grace` to end by themselves, then they
// are ended, and those that had to be are named. No process outlives this one.
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "base/result.h"

namespace meshplan {

// `command`: program and arguments. The result is the exit code to end with: 0, the first failed rank's where it is one of the contract's,
// else 5. Messages (one line a rank that failed or hung) go to `messages`.
[[nodiscard]] Result<int> launch_ranks(const std::vector<std::string>& command, int64_t ranks, std::ostream& messages,
                                       std::chrono::milliseconds grace = std::chrono::seconds(10));

}  // namespace meshplan
