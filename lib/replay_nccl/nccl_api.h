// The functions of NCCL that the backend uses, found in the library when it is loaded: a machine without it can still say what is missing.
#pragma once

#include <nccl.h>

#include <string>

#include "base/result.h"

namespace meshplan {

struct NcclApi {
  decltype(&::ncclGetVersion) get_version = nullptr;
  decltype(&::ncclGetErrorString) error_string = nullptr;
  decltype(&::ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&::ncclCommInitRankConfig) init_rank = nullptr;
  decltype(&::ncclCommSplit) split = nullptr;
  decltype(&::ncclCommGetAsyncError) async_error = nullptr;
  decltype(&::ncclCommAbort) abort = nullptr;
  decltype(&::ncclCommDestroy) destroy = nullptr;
  decltype(&::ncclGroupStart) group_start = nullptr;
  decltype(&::ncclGroupEnd) group_end = nullptr;
  decltype(&::ncclAllGather) all_gather = nullptr;
  decltype(&::ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&::ncclAllReduce) all_reduce = nullptr;
  decltype(&::ncclSend) send = nullptr;
  decltype(&::ncclRecv) receive = nullptr;
  int version = 0;   // loaded: 22807 is 2.28.7
  std::string path;  // what was loaded
};

// `path` empty: the library that MESHPLAN_NCCL_LIBRARY names, or libnccl.so.2. Errors (environment): not found, older than 2.28, a function
// missing.
[[nodiscard]] Result<NcclApi> load_nccl(std::string path = {});

// "2.28.7"
[[nodiscard]] std::string nccl_version_text(int version);

}  // namespace meshplan
