// The fake NCCL with one process a rank: calls wait on the caller's stream for what the other processes send.
#pragma once

#include "fake_calls.h"

namespace meshplan::test {

// Makes the world of a process that is one rank of it, in progress until all are connected.
void begin_remote_world(ncclComm* world, const std::string& meeting);
void end_remote_world();
// Sends and receives what is possible, and ends what has been waiting for it. `alive` gets the communicators that it makes.
void turn_remote(std::vector<ncclComm*>& alive, ncclComm* asked);
// A group of calls goes on the caller's stream.
void put_on_streams(const std::vector<Pending>& work);
void begin_remote_split(const Split& split);

}  // namespace meshplan::test
