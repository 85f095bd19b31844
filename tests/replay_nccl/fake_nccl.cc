// A small NCCL over host memory: all ranks in one process, calls collected between ncclGroupStart and ncclGroupEnd and run there, in the
// order of the calls. It checks what NCCL would not notice (a rank missing from a collective, counts, types or ops that differ, a send
// without its receive) and writes one line a call to the file that FAKE_NCCL_LOG names. FAKE_NCCL_FAIL=function:number makes that call,
// counted from 0, fail; FAKE_NCCL_STUCK=number leaves that group in progress for ever.
#include <nccl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "replay/arithmetic.h"

using meshplan::DType;
using meshplan::ReduceOp;

struct ncclComm {
  std::vector<int> members;  // world ranks
  int rank = 0;              // in members
  int family = 0;            // communicators made together
  bool stuck = false;
};

namespace {

struct Pending {
  enum Kind { gather, scatter, reduce, send, receive } kind;
  ncclComm* comm;
  const std::byte* from;
  std::byte* to;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int peer;
};

struct Split {
  ncclComm* parent;
  int colour;
  int key;
  ncclComm_t* out;
};

int depth = 0;
int families = 0;
int groups_done = 0;
std::vector<Pending> pending;
std::vector<Split> splits;
std::vector<ncclComm*> starting;
std::map<std::string, int> called;
std::vector<ncclComm*> alive;

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

DType dtype_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat64:
      return DType::float64;
    case ncclFloat32:
      return DType::float32;
    case ncclFloat16:
      return DType::float16;
    case ncclBfloat16:
      return DType::bfloat16;
    case ncclInt64:
      return DType::int64;
    case ncclInt32:
      return DType::int32;
    case ncclInt8:
      return DType::int8;
    default:
      return DType::uint8;
  }
}

ReduceOp op_of(ncclRedOp_t op) {
  switch (op) {
    case ncclProd:
      return ReduceOp::product;
    case ncclMin:
      return ReduceOp::min;
    case ncclMax:
      return ReduceOp::max;
    default:
      return ReduceOp::sum;
  }
}

ncclResult_t run_collective(const std::vector<Pending>& members) {
  const Pending& first = members.front();
  const size_t n = first.comm->members.size();
  if (members.size() != n) return ncclInvalidUsage;  // a rank is missing: NCCL would hang
  const DType dtype = dtype_of(first.type);
  const auto size = static_cast<size_t>(meshplan::element_bytes(dtype));
  for (const Pending& m : members) {
    if (m.kind != first.kind || m.count != first.count || m.type != first.type || m.op != first.op) return ncclInvalidUsage;
  }
  for (const Pending& m : members) {
    const auto mine = static_cast<size_t>(m.comm->rank);
    for (const Pending& other : members) {
      const auto theirs = static_cast<size_t>(other.comm->rank);
      if (m.kind == Pending::gather) {
        std::memmove(m.to + theirs * m.count * size, other.from, m.count * size);
        continue;
      }
      const std::byte* part = m.kind == Pending::scatter ? other.from + mine * m.count * size : other.from;
      if (&other == &members.front()) {
        std::memmove(m.to, part, m.count * size);
      } else {
        meshplan::combine(dtype, op_of(m.op), m.to, part, static_cast<int64_t>(m.count));
      }
    }
  }
  return ncclSuccess;
}

ncclResult_t run_pending() {
  std::vector<Pending> work;
  work.swap(pending);
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
    std::memmove(p.to, queue.front()->from, p.count * static_cast<size_t>(meshplan::element_bytes(dtype_of(p.type))));
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
    if (auto result = run_collective(members); result != ncclSuccess) return result;
  }
  const char* stuck = std::getenv("FAKE_NCCL_STUCK");
  if (!work.empty() && stuck != nullptr && std::atoi(stuck) == groups_done++) {
    for (const Pending& p : work) p.comm->stuck = true;
  }
  return ncclSuccess;
}

ncclResult_t run_splits() {
  std::vector<Split> work;
  work.swap(splits);
  if (work.empty()) return ncclSuccess;
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
    for (size_t i = 0; i < others.size(); ++i) {
      comm->members.push_back(others[i].second);
      if (others[i].second == mine.parent->members[static_cast<size_t>(mine.parent->rank)]) comm->rank = static_cast<int>(i);
    }
    alive.push_back(comm);
    *mine.out = comm;
  }
  return ncclSuccess;
}

ncclResult_t enqueue(const char* name, Pending p) {
  if (should_fail(name)) return ncclInternalError;
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

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  const char* pretended = std::getenv("FAKE_NCCL_VERSION");
  *version = pretended != nullptr ? std::atoi(pretended) : NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclInvalidUsage ? "invalid usage: ranks do not agree" : "internal error";
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 0, sizeof(*id));
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId, int rank, ncclConfig_t*) {
  if (should_fail("ncclCommInitRankConfig")) return ncclInternalError;
  auto* made = new ncclComm;
  for (int r = 0; r < nranks; ++r) made->members.push_back(r);
  made->rank = rank;
  alive.push_back(made);
  starting.push_back(made);
  *comm = made;
  note("ncclCommInitRankConfig rank " + std::to_string(rank) + " of " + std::to_string(nranks));
  return ncclSuccess;
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t*) {
  if (should_fail("ncclCommSplit")) return ncclInternalError;
  note("ncclCommSplit rank " + std::to_string(comm->rank) + " colour " + std::to_string(color));
  splits.push_back({comm, color, key, newcomm});
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  *state = comm->stuck ? ncclInProgress : ncclSuccess;
  return ncclSuccess;
}
static ncclResult_t drop(ncclComm_t comm, const char* name) {
  note(name);
  auto at = std::find(alive.begin(), alive.end(), comm);
  if (at == alive.end()) return ncclInvalidUsage;  // closed twice
  alive.erase(at);
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) { return drop(comm, "ncclCommAbort"); }
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return drop(comm, "ncclCommDestroy"); }
ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (--depth > 0) return ncclSuccess;
  // Every rank of a new world must have come.
  if (!starting.empty() && starting.size() != starting.front()->members.size()) return ncclInvalidUsage;
  starting.clear();
  if (auto result = run_splits(); result != ncclSuccess) return result;
  return run_pending();
}
ncclResult_t ncclAllGather(const void* s, void* r, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t) {
  return enqueue("ncclAllGather", {Pending::gather, comm, in(s), out(r), count, type, ncclSum, 0});
}
ncclResult_t ncclReduceScatter(const void* s, void* r, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t) {
  return enqueue("ncclReduceScatter", {Pending::scatter, comm, in(s), out(r), count, type, op, 0});
}
ncclResult_t ncclAllReduce(const void* s, void* r, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t) {
  return enqueue("ncclAllReduce", {Pending::reduce, comm, in(s), out(r), count, type, op, 0});
}
ncclResult_t ncclSend(const void* s, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t) {
  return enqueue("ncclSend", {Pending::send, comm, in(s), nullptr, count, type, ncclSum, peer});
}
ncclResult_t ncclRecv(void* r, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t) {
  return enqueue("ncclRecv", {Pending::receive, comm, nullptr, out(r), count, type, ncclSum, peer});
}
// For the tests: counts start again from 0.
void fake_nccl_forget() {
  called.clear();
  groups_done = 0;
  depth = 0;
  pending.clear();
  splits.clear();
  starting.clear();
}
// How many communicators were never closed.
int fake_nccl_alive() { return static_cast<int>(alive.size()); }

}  // extern "C"
