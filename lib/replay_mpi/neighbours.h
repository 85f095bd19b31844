// Finds out which processes of a machine have exited or hang, to name them in error messages.
//
// The processes of a machine share an anonymous page of memory, so nothing is left behind: the rank
// of each process, and whether its exit is expected (it was told to stop, or is done). A process
// that exits unexpectedly is named by the processes that are stopped because of it.
//
// Blocking calls of MPI cannot tell whom they wait for. So each process counts there the calls that
// all make in the same order, at a store before and after each, and its watchdog says again and
// again that it runs. Neither is read before a deadline is missed.
#pragma once

#include <cstddef>
#include <string>

namespace meshplan {

// Joins the shared page of this machine. Collective over MPI, once per program. If the page is not
// available, no process is ever named.
void join_neighbours(const std::string& name);

// From now on the exit of this process is expected.
void mark_exit_expected();

// A call that all processes make in the same order begins, and ends; or has no part for this one.
void enter_call();
void leave_call();
void pass_call();

// This process runs.
void beat();

// Writes the ranks of this machine that a call of this process waits for: those that do not run, or
// else those that made the fewest calls and are in none; of others it is not known whom they wait
// for themselves. As name_gone_neighbours.
void name_late_neighbours(char* text, size_t room);

// Writes the ranks of this machine that exited unexpectedly ("rank 2", "rank 2, rank 5") into
// `text`, zero-terminated, and marks the exit of this process as expected. Async-signal-safe.
void name_gone_neighbours(char* text, size_t room);

}  // namespace meshplan
