// `--launch N`: starts N processes of this program on this machine, one per rank, and waits for
// them.
//
// Each gets MESHPLAN_RANK, MESHPLAN_RANKS, MESHPLAN_LOCAL_RANK, MESHPLAN_LOCAL_RANKS (all are on
// this machine) and NCCL_COMM_ID=127.0.0.1:port, which the nccl backend uses to connect; a process
// with MESHPLAN_RANK does not launch again. If one fails, the others get `grace` to exit, then they
// are killed and reported. No process outlives this one.
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace meshplan {

// Whether one machine starts so many ranks; bad input where it does not.
[[nodiscard]] Status may_launch(int64_t ranks);

// `command`: program and arguments. Returns the exit code: 0, that of the first failed rank if it
// is one of meshplan's, else 5. Writes one line per rank that failed or hung to `messages`.
[[nodiscard]] Result<int> launch_ranks(const std::vector<std::string>& command, int64_t ranks,
                                       std::ostream& messages,
                                       std::chrono::milliseconds grace = std::chrono::seconds(10));

// Runs a program on the streams of this process and waits for it; each variable is set where the
// environment has none of that name. Where this process ends first, the program gets SIGTERM.
// Returns its exit code or 128 + the signal that ended it.
[[nodiscard]] Result<int> run_attached(
    const std::vector<std::string>& command,
    const std::vector<std::pair<std::string, std::string>>& defaults);

}  // namespace meshplan
