// The processes of one machine, as each of them can see the others when something has gone wrong.
//
// They share a page of memory without a name, so that nothing stays behind: which process plays which rank, and which has a reason to be
// gone (it was told to stop, or it is done). A process that is gone without a reason has ended by itself, and is named by those that are
// then stopped.
#pragma once

#include <cstddef>
#include <string>

namespace meshplan {

// Joins the page of this machine; every process that MPI started calls it. Where it cannot be had, nobody is ever named. Once a program.
void join_neighbours(const std::string& name);

// This process has a reason to be gone from now on.
void take_leave_of_neighbours();

// Writes who of this machine is gone without a reason ("rank 2", "rank 2, rank 5") into `text` and ends it with a zero; nothing where
// nobody is. Takes leave. May be called by a signal handler.
void name_gone_neighbours(char* text, size_t room);

}  // namespace meshplan
