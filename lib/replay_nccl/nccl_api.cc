#include "replay_nccl/nccl_api.h"

#include <dlfcn.h>

#include <cstdlib>

namespace meshplan {

std::string nccl_version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

Result<NcclApi> load_nccl(std::string path) {
  if (path.empty()) {
    const char* named = std::getenv("MESHPLAN_NCCL_LIBRARY");
    path = named != nullptr && *named != '\0' ? named : "libnccl.so.2";
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();  // NOLINT(concurrency-mt-unsafe)
    return environment("backend nccl: cannot load " + path + ": " + (why == nullptr ? "no reason given" : why) +
                       "; install NCCL 2.28 or newer (PyPI: nvidia-nccl-cu13) or name it in MESHPLAN_NCCL_LIBRARY");
  }
  NcclApi api;
  api.path = path;
  std::string missing;
  auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && missing.empty()) missing = name;
  };
  find(api.get_version, "ncclGetVersion");
  if (api.get_version != nullptr && api.get_version(&api.version) == ncclSuccess && api.version < 22800) {
    return environment("backend nccl: " + path + " is NCCL " + nccl_version_text(api.version) + " and 2.28 or newer is needed");
  }
  find(api.error_string, "ncclGetErrorString");
  find(api.get_unique_id, "ncclGetUniqueId");
  find(api.init_rank, "ncclCommInitRankConfig");
  find(api.split, "ncclCommSplit");
  find(api.async_error, "ncclCommGetAsyncError");
  find(api.abort, "ncclCommAbort");
  find(api.destroy, "ncclCommDestroy");
  find(api.group_start, "ncclGroupStart");
  find(api.group_end, "ncclGroupEnd");
  find(api.all_gather, "ncclAllGather");
  find(api.reduce_scatter, "ncclReduceScatter");
  find(api.all_reduce, "ncclAllReduce");
  find(api.send, "ncclSend");
  find(api.receive, "ncclRecv");
  if (!missing.empty()) return environment("backend nccl: " + path + " lacks " + missing + "; NCCL 2.28 or newer is needed");
  return api;
}

}  // namespace meshplan
