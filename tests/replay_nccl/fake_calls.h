// What a call of the fake NCCL is, until it runs: shared by its two ways (fake_nccl.cc).
#pragma once

#include <nccl.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fake_stream.h"
#include "tensor/dtype.h"

struct ncclComm {
  std::vector<int> members;  // world ranks
  int rank = 0;              // in members
  int family = 0;            // communicators made together
  bool stuck = false;
  bool blocks = true;  // its calls
  // Calls that are not done, and the stream that they are on.
  int unfinished = 0;
  meshplan::test::FakeStream* on = nullptr;
  std::shared_ptr<bool> closed = std::make_shared<bool>(false);  // what it runs ends with it
  // One process a rank:
  std::string name;                           // the same on all members; empty: all ranks in this process
  ncclResult_t state = ncclSuccess;           // what ncclCommGetAsyncError says
  int calls = 0;                              // collectives begun
  int splits = 0;                             // begun
  std::map<std::pair<int, int>, int> p2p[2];  // sends, receives: by sender and receiver
  [[nodiscard]] int world_rank() const { return members[static_cast<size_t>(rank)]; }
};

namespace meshplan::test {

struct Pending {
  enum Kind { gather, scatter, reduce, all_to_all, send, receive } kind;
  ncclComm* comm;
  const std::byte* from;
  std::byte* to;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int peer;
  FakeStream* stream;
};

struct Split {
  ncclComm* parent;
  int colour;
  int key;
  ncclComm_t* out;
  bool blocks;
};

[[nodiscard]] DType dtype_of(ncclDataType_t type);
// What member m of a collective receives.
void compute(const std::vector<Pending>& members, const Pending& m);

}  // namespace meshplan::test
