// A small NCCL over host memory, in two ways. One process that plays all ranks: calls are collected between ncclGroupStart and
// ncclGroupEnd, checked there, and go on their streams (fake_stream.h), where those of one communicator run when all of their streams have
// come to them. One process a rank: calls go on the caller's stream (fake_stream.h), and ranks reach each other through sockets
// (fake_peers.h) named by NCCL_COMM_ID. Both check what NCCL would not notice (a rank missing from a collective, counts, types or ops that
// differ, a send without its receive, windows of different sizes, a communicator on two streams at a time, which NCCL runs one after the
// other) and write one line a call to the file that FAKE_NCCL_LOG names.
// FAKE_NCCL_FAIL=function:number makes that call, counted from 0, fail; FAKE_NCCL_STUCK=number leaves that group in progress for ever;
// FAKE_NCCL_HANG=number lets what that group put on its streams run for ever, FAKE_NCCL_BREAK=number as well, with an error;
// FAKE_NCCL_DEAF leaves a collective in progress for ever when a rank has ended, as over NVLink, instead of an error, as over the network;
// FAKE_NCCL_DIE=rank:number ends the process of that rank in its collective of that number, FAKE_NCCL_HALT makes it hang there. Compiled with FAKE_NCCL_OLD it lacks what newer
// libraries offer.
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fake_calls.h"
#include "fake_remote.h"

using namespace meshplan::test;

namespace {

struct Window {
  ncclComm* comm;
  size_t bytes;
};

int depth = 0;
int families = 0;
int groups_done = 0;
int most_at_once = 0;
std::vector<Pending> pending;
std::vector<Split> splits;
std::vector<ncclComm*> starting;
std::map<std::string, int> called;
std::vector<ncclComm*> alive;
std::vector<Window> windows;

void note(const std::string& line) {
  const char* file = std::getenv("FAKE_NCCL_LOG");
  if (file == nullptr) return;
  if (std::FILE* log = std::fopen(file, "a")) {
    std::fprintf(log, "%s\n", line.c_str());
    std::fclose(log);
  }
}

bool should_fail(const std::string& function) {
  const char* wanted = std::getenv("FAKE_NCCL_FAIL");
  return wanted != nullptr && wanted == function + ":" + std::to_string(called[function]++);
}

// Of each: only checked, or run.
enum class Run { no, yes };

ncclResult_t collective(const std::vector<Pending>& members, Run run) {
  const Pending& first = members.front();
  const size_t n = first.comm->members.size();
  if (members.size() != n) return ncclInvalidUsage;  // a rank is missing: NCCL would hang
  for (const Pending& m : members) {
    if (m.kind != first.kind || m.count != first.count || m.type != first.type || m.op != first.op) return ncclInvalidUsage;
  }
  if (run == Run::no) return ncclSuccess;
  for (const Pending& m : members) compute(members, m);
  return ncclSuccess;
}

// What all ranks of one process asked for, in the order of the calls.
ncclResult_t together(const std::vector<Pending>& work, Run run) {
  // Pairs: the k-th send from a to b meets the k-th receive at b from a, per family.
  std::map<std::vector<int>, std::vector<const Pending*>> sends;
  for (const Pending& p : work) {
    if (p.kind == Pending::send)
      sends[{p.comm->family, p.comm->members[static_cast<size_t>(p.comm->rank)], p.comm->members[static_cast<size_t>(p.peer)]}].push_back(
          &p);
  }
  for (const Pending& p : work) {
    if (p.kind != Pending::receive) continue;
    auto& queue = sends[{p.comm->family, p.comm->members[static_cast<size_t>(p.peer)], p.comm->members[static_cast<size_t>(p.comm->rank)]}];
    if (queue.empty() || queue.front()->count != p.count || queue.front()->type != p.type) return ncclInvalidUsage;
    if (run == Run::yes) std::memmove(p.to, queue.front()->from, p.count * static_cast<size_t>(meshplan::element_bytes(dtype_of(p.type))));
    queue.erase(queue.begin());
  }
  for (const auto& [pair, queue] : sends) {
    if (!queue.empty()) return ncclInvalidUsage;
  }
  std::map<std::pair<int, std::vector<int>>, std::vector<Pending>> collectives;
  for (const Pending& p : work) {
    if (p.kind == Pending::send || p.kind == Pending::receive) continue;
    collectives[{p.comm->family, p.comm->members}].push_back(p);
  }
  for (const auto& [key, members] : collectives) {
    if (auto result = collective(members, run); result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

bool is_number(const char* variable, int number) {
  const char* told = std::getenv(variable);
  return told != nullptr && std::atoi(told) == number;
}

// Work of one family of communicators: it runs when all of its streams have come to it, once, or once for each time that the graph runs in
// which they are.
void meet_on_streams(const std::vector<Pending>& work, int number) {
  std::set<FakeStream*> streams;
  std::set<ncclComm*> comms;
  for (const Pending& p : work) {
    streams.insert(p.stream);
    comms.insert(p.comm);
  }
  const bool in_graph = (*streams.begin())->capture != nullptr;
  std::vector<std::shared_ptr<bool>> closed;
  for (ncclComm* comm : comms) {
    comm->unfinished += in_graph ? 0 : 1;
    closed.push_back(comm->closed);
  }
  const bool breaks = is_number("FAKE_NCCL_BREAK", number);
  const bool hangs = breaks || is_number("FAKE_NCCL_HANG", number);
  auto arrived = std::make_shared<std::map<int, size_t>>();  // by run
  const auto meet = [=](int run, bool& come) {
    if (std::any_of(closed.begin(), closed.end(), [](const auto& is) { return *is; })) return true;
    if (!std::exchange(come, true) && ++(*arrived)[run] == streams.size()) {
      for (ncclComm* comm : comms) {
        if (breaks) comm->state = ncclRemoteError;
        comm->unfinished -= in_graph || hangs ? 0 : 1;
      }
      if (!hangs) (void)together(work, Run::yes);
    }
    return !hangs && (*arrived)[run] == streams.size();
  };
  for (FakeStream* stream : streams) {
    stream->put(
        numbered([meet](int run) -> StreamTask { return [meet, run, come = std::make_shared<bool>(false)] { return meet(run, *come); }; }));
  }
}

// A communicator that is busy on another stream. In a graph streams follow each other by events.
bool used_on_two_streams(const std::vector<Pending>& work) {
  for (const Pending& p : work) {
    if (p.comm->unfinished > 0 && p.comm->on != p.stream && !p.stream->capture) return true;
    p.comm->on = p.stream;
  }
  return false;
}

// Communicators of a rank that are busy at once.
void count_at_once() {
  std::map<int, int> busy;
  for (const ncclComm* comm : alive) {
    if (comm->unfinished > 0) most_at_once = std::max(most_at_once, ++busy[comm->world_rank()]);
  }
}

ncclResult_t run_pending() {
  std::vector<Pending> work;
  work.swap(pending);
  if (work.empty()) return ncclSuccess;
  for (const Pending& p : work) {
    if (p.comm->blocks != work.front().comm->blocks) return ncclInvalidArgument;  // as NCCL
  }
  if (!work.front().comm->name.empty()) {
    put_on_streams(work);
    return ncclSuccess;
  }
  if (used_on_two_streams(work)) return ncclInvalidUsage;
  if (auto result = together(work, Run::no); result != ncclSuccess) return result;
  const int number = groups_done++;
  if (is_number("FAKE_NCCL_STUCK", number)) {
    for (const Pending& p : work) p.comm->stuck = true;
  }
  std::map<int, std::vector<Pending>> by_family;
  for (const Pending& p : work) by_family[p.comm->family].push_back(p);
  for (const auto& [family, of_family] : by_family) meet_on_streams(of_family, number);
  count_at_once();
  return ncclSuccess;
}

ncclResult_t run_splits() {
  std::vector<Split> work;
  work.swap(splits);
  if (work.empty()) return ncclSuccess;
  if (!work.front().parent->name.empty()) {
    for (const Split& split : work) begin_remote_split(split);
    return ncclSuccess;
  }
  if (work.size() != work.front().parent->members.size()) return ncclInvalidUsage;
  const int family = ++families;
  for (const Split& mine : work) {
    *mine.out = nullptr;
    if (mine.colour == NCCL_SPLIT_NOCOLOR) continue;
    std::vector<std::pair<int, int>> others;  // key, world rank
    for (const Split& s : work) {
      if (s.colour == mine.colour) others.emplace_back(s.key, s.parent->members[static_cast<size_t>(s.parent->rank)]);
    }
    std::sort(others.begin(), others.end());
    auto* comm = new ncclComm;
    comm->family = family;
    comm->blocks = mine.blocks;
    for (size_t i = 0; i < others.size(); ++i) {
      comm->members.push_back(others[i].second);
      if (others[i].second == mine.parent->members[static_cast<size_t>(mine.parent->rank)]) comm->rank = static_cast<int>(i);
    }
    alive.push_back(comm);
    *mine.out = comm;
  }
  return ncclSuccess;
}

// A window is one of all members, each with as much.
ncclResult_t check_windows() {
  std::vector<Window> work;
  work.swap(windows);
  std::map<std::pair<int, std::vector<int>>, std::vector<Window>> by_comm;
  for (const Window& w : work) {
    if (w.comm->name.empty()) by_comm[{w.comm->family, w.comm->members}].push_back(w);
  }
  for (const auto& [key, list] : by_comm) {
    std::map<int, std::vector<size_t>> sizes;  // by member
    for (const Window& w : list) sizes[w.comm->rank].push_back(w.bytes);
    if (sizes.size() != key.second.size()) return ncclInvalidUsage;
    for (const auto& [member, of_member] : sizes) {
      if (of_member != sizes.begin()->second) return ncclInvalidUsage;
    }
  }
  return ncclSuccess;
}

// The process of a rank ends within a collective, as if it had crashed, or hangs there.
void fall_if_told(int rank) {
  static int begun = 0;
  const std::string here = std::to_string(rank) + ":" + std::to_string(begun++);
  const auto told = [&](const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && value == here;
  };
  if (told("FAKE_NCCL_DIE")) std::_Exit(9);
  if (told("FAKE_NCCL_HALT")) std::this_thread::sleep_for(std::chrono::minutes(10));
}

ncclResult_t enqueue(const char* name, Pending p) {
  if (should_fail(name)) return ncclInternalError;
  fall_if_told(p.comm->world_rank());
  std::string line = std::string(name) + " rank " + std::to_string(p.comm->members[static_cast<size_t>(p.comm->rank)]) + " of " +
                     std::to_string(p.comm->members.size()) + " count " + std::to_string(p.count);
  if (p.kind == Pending::send || p.kind == Pending::receive)
    line += " peer " + std::to_string(p.comm->members[static_cast<size_t>(p.peer)]);
  note(line);
  pending.push_back(p);
  return depth == 0 ? run_pending() : ncclSuccess;
}

const std::byte* in(const void* p) { return static_cast<const std::byte*>(p); }
std::byte* out(void* p) { return static_cast<std::byte*>(p); }
FakeStream* on(cudaStream_t stream) { return reinterpret_cast<FakeStream*>(stream); }

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  const char* pretended = std::getenv("FAKE_NCCL_VERSION");
  *version = pretended != nullptr ? std::atoi(pretended) : NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  if (result == ncclRemoteError) return "remote process exited or there was a network error";
  return result == ncclInvalidUsage ? "invalid usage: ranks do not agree" : "internal error";
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 0, sizeof(*id));
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId, int rank, ncclConfig_t* config) {
  if (should_fail("ncclCommInitRankConfig")) return ncclInternalError;
  auto* made = new ncclComm;
  for (int r = 0; r < nranks; ++r) made->members.push_back(r);
  made->rank = rank;
  made->blocks = config->blocking != 0;
  alive.push_back(made);
  starting.push_back(made);
  *comm = made;
  note("ncclCommInitRankConfig rank " + std::to_string(rank) + " of " + std::to_string(nranks));
  return ncclSuccess;
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config) {
  if (should_fail("ncclCommSplit")) return ncclInternalError;
  const bool blocks = config->blocking != 0;
  note("ncclCommSplit rank " + std::to_string(comm->rank) + " colour " + std::to_string(color) + (blocks ? " blocking" : ""));
  splits.push_back({comm, color, key, newcomm, blocks});
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  turn_remote(alive, comm);
  *state = comm->stuck ? ncclInProgress : comm->state;
  return ncclSuccess;
}
static ncclResult_t drop(ncclComm_t comm, const char* name) {
  note(name);
  auto at = std::find(alive.begin(), alive.end(), comm);
  if (at == alive.end()) return ncclInvalidUsage;  // closed twice
  alive.erase(at);
  *comm->closed = true;
  if (comm->name == "world") end_remote_world();
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) { return drop(comm, "ncclCommAbort"); }
// The real one waits for ever while a graph holds calls of the communicator: here it stays alive.
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return comm->closed.use_count() > 1 ? ncclInvalidUsage : drop(comm, "ncclCommDestroy"); }
ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (--depth > 0) return ncclSuccess;
  const char* meeting = std::getenv("NCCL_COMM_ID");
  if (starting.size() == 1 && starting.front()->members.size() > 1 && meeting != nullptr) {
    begin_remote_world(starting.front(), meeting);
    starting.clear();
  }
  // Every rank of a new world must have come.
  if (!starting.empty() && starting.size() != starting.front()->members.size()) return ncclInvalidUsage;
  starting.clear();
  if (auto result = run_splits(); result != ncclSuccess) return result;
  if (auto result = check_windows(); result != ncclSuccess) return result;
  return run_pending();
}
ncclResult_t ncclAllGather(const void* s, void* r, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  return enqueue("ncclAllGather", {Pending::gather, comm, in(s), out(r), count, type, ncclSum, 0, on(stream)});
}
ncclResult_t ncclReduceScatter(const void* s, void* r, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  return enqueue("ncclReduceScatter", {Pending::scatter, comm, in(s), out(r), count, type, op, 0, on(stream)});
}
ncclResult_t ncclAllReduce(const void* s, void* r, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  return enqueue("ncclAllReduce", {Pending::reduce, comm, in(s), out(r), count, type, op, 0, on(stream)});
}
ncclResult_t ncclSend(const void* s, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return enqueue("ncclSend", {Pending::send, comm, in(s), nullptr, count, type, ncclSum, peer, on(stream)});
}
ncclResult_t ncclRecv(void* r, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  return enqueue("ncclRecv", {Pending::receive, comm, nullptr, out(r), count, type, ncclSum, peer, on(stream)});
}
#ifndef FAKE_NCCL_OLD
ncclResult_t ncclAlltoAll(const void* s, void* r, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  return enqueue("ncclAlltoAll", {Pending::all_to_all, comm, in(s), out(r), count, type, ncclSum, 0, on(stream)});
}
ncclResult_t ncclMemAlloc(void** data, size_t bytes) {
  *data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return *data == nullptr ? ncclSystemError : ncclSuccess;
}
ncclResult_t ncclMemFree(void* data) {
  std::free(data);
  return ncclSuccess;
}
ncclResult_t ncclCommRegister(const ncclComm_t comm, void* data, size_t bytes, void** handle) {
  note("ncclCommRegister rank " + std::to_string(comm->world_rank()) + " of " + std::to_string(comm->members.size()) + " bytes " +
       std::to_string(bytes));
  *handle = data;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void*) {
  note("ncclCommDeregister rank " + std::to_string(comm->world_rank()) + " of " + std::to_string(comm->members.size()));
  return ncclSuccess;
}
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* data, size_t bytes, ncclWindow_t* window, int flags) {
  note("ncclCommWindowRegister rank " + std::to_string(comm->world_rank()) + " of " + std::to_string(comm->members.size()) + " bytes " +
       std::to_string(bytes) + (flags == NCCL_WIN_COLL_SYMMETRIC ? " symmetric" : ""));
  windows.push_back({comm, bytes});
  *window = static_cast<ncclWindow_t>(data);
  return ncclSuccess;
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t) {
  note("ncclCommWindowDeregister rank " + std::to_string(comm->world_rank()) + " of " + std::to_string(comm->members.size()));
  return ncclSuccess;
}
#endif
// For the tests: counts start again from 0.
void fake_nccl_forget() {
  called.clear();
  groups_done = 0;
  most_at_once = 0;
  depth = 0;
  pending.clear();
  splits.clear();
  starting.clear();
  windows.clear();
}
// Communicators of one rank that were busy at once, at most.
int fake_nccl_at_once() { return most_at_once; }
// How many communicators were never closed.
int fake_nccl_alive() { return static_cast<int>(alive.size()); }

}  // extern "C"
