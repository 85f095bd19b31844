// Opens a backend by name: "host" is built in, the others are loaded from modules.
#pragma once

#include "plan/plan.h"
#include "replay/backend.h"
#include "replay/report.h"

namespace meshplan {

// Limits on the ranks of a plan for replay. The host backend runs all ranks in one process, which
// takes about 20 KB per rank without data and about 100 B per pair of ranks of a group. The others
// run one process per rank, each with a table of all ranks.
constexpr int64_t max_host_ranks = 65'536;
// of one step over all its groups, such as one group of 4,096 ranks
constexpr int64_t max_host_pairs = 16'777'216;
constexpr int64_t max_process_ranks = 1'048'576;

// The requirements of a plan on a backend. Errors: a plan without a mesh (bad_input), more ranks
// than the backend supports (environment).
[[nodiscard]] Result<BackendQuestion> backend_question(const std::string& name, const Plan& plan,
                                                       const ReplayOptions& options);

// "host", "mpi" or "nccl".
[[nodiscard]] Result<Backend> open_backend(const std::string& name,
                                           const BackendQuestion& question);

// `meshplan run PLAN --backend NAME`: opens the backend and replays. Under mpirun every process
// calls it; only the root process prints (report.is_root, or is_root_process() after an error), and
// all processes return the same exit code.
[[nodiscard]] Result<ReplayReport> replay_on(const std::string& backend, const Plan& plan,
                                             const ReplayOptions& options);

// Whether this process prints on behalf of all: true for the first process of a launcher, and
// without a launcher.
[[nodiscard]] bool is_root_process();

// Call before exiting with an error. A launcher kills all processes when one fails, so the others
// wait two seconds for the output of the root.
void wait_for_root_output();

}  // namespace meshplan
