// The backend of a name: "host" from this program, others from their modules.
#pragma once

#include "plan/plan.h"
#include "replay/backend.h"
#include "replay/report.h"

namespace meshplan {

// The most ranks that a plan may have to be replayed. The host backend plays all of them in one process, which takes about 20 KB for each
// before any data, and about 100 B for each pair of ranks of a group; the others have a process a rank, each with a table of all.
constexpr int64_t max_host_ranks = 65'536;
constexpr int64_t max_host_pairs = 16'777'216;  // of one step, in all its groups: 4,096 ranks in one
constexpr int64_t max_process_ranks = 1'048'576;

// What the plan needs of a backend. Errors: a plan without a mesh (bad_input), more ranks than the backend plays (environment).
[[nodiscard]] Result<BackendQuestion> backend_question(const std::string& name, const Plan& plan, const ReplayOptions& options);

// "host", "mpi" or "nccl".
[[nodiscard]] Result<Backend> open_backend(const std::string& name, const BackendQuestion& question);

// `meshplan run PLAN --backend NAME`: opens the backend and replays. Under mpirun every process calls it; the caller prints only where the
// report's (or, after an error, process_speaks') answer is true, and every process returns the same exit code.
[[nodiscard]] Result<ReplayReport> replay_on(const std::string& backend, const Plan& plan, const ReplayOptions& options);

// Whether this process should print what all processes know: false for all but the first of several that a launcher has started.
[[nodiscard]] bool process_speaks();

// To be called before a failing exit. A launcher ends every process at the first one that fails, the speaker in mid-sentence: the others
// give it two seconds.
void let_the_speaker_finish();

}  // namespace meshplan
