// One rank per process over MPI. Process i is replay rank i; additional processes are idle.
//
// Data movement uses the uneven collectives of MPI; reductions in float16, bfloat16 and float8 run
// in float32 (MPI has no such types), bool bitwise. Each distinct partition of the ranks is created
// once. Calls block, under a watchdog; before each step of a checked run, a polling barrier with a
// deadline names the missing ranks.
#pragma once

#include <chrono>
#include <memory>

#include "replay/communicator.h"

namespace meshplan {

// Initializes MPI (once per program) and returns the world communicator. A process that waits
// longer for the others to start than ten times the limit of a step, or 20 s, says so and ends; for
// each call of the start anew.
[[nodiscard]] Result<std::unique_ptr<Communicator>> open_mpi(int64_t world,
                                                             std::vector<int64_t> global_ids,
                                                             std::chrono::milliseconds step_limit);

}  // namespace meshplan
