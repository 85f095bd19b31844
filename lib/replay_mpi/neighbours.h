// Finds out which processes of a machine have exited, to name them in error messages.
//
// The processes of a machine share an anonymous page of memory, so nothing is left behind: the rank
// of each process, and whether its exit is expected (it was told to stop, or is done). A process
// that exits unexpectedly is named by the processes that are stopped because of it.
#pragma once

#include <cstddef>
#include <string>

namespace meshplan {

// Joins the shared page of this machine. Collective over MPI, once per program. If the page is not
// available, no process is ever named.
void join_neighbours(const std::string& name);

// From now on the exit of this process is expected.
void mark_exit_expected();

// Writes the ranks of this machine that exited unexpectedly ("rank 2", "rank 2, rank 5") into
// `text`, zero-terminated, and marks the exit of this process as expected. Async-signal-safe.
void name_gone_neighbours(char* text, size_t room);

}  // namespace meshplan
