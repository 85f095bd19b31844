// One rank a process over MPI. Process i of the world plays replay rank i; more processes than ranks stand by.
//
// Movement uses the library's own uneven collectives; reductions in float16, bfloat16 and float8 run in float32 (MPI has no such types),
// bool by bits. Each distinct partition of the ranks is split off once. Calls block, under a watchdog; before each step of a checked run a
// roll call, which polls, names the ranks that did not come.
#pragma once

#include <map>
#include <memory>

#include "replay/communicator.h"
#include "replay/watchdog.h"

namespace meshplan {

// Starts MPI (once a program) and returns the world.
[[nodiscard]] Result<std::unique_ptr<Communicator>> open_mpi(int64_t world, std::vector<int64_t> global_ids);

}  // namespace meshplan
