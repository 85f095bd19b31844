#include "replay_nccl/shared_gpus.h"

#include <algorithm>

#include "base/int_math.h"
#include "replay_nccl/nccl_library.h"
#include "replay_nccl/nccl_streams.h"

namespace meshplan {
namespace {

// The first NCCL that puts several ranks on a GPU when asked to.
constexpr int several_ranks_a_gpu = 23000;
// Enough for correct data; each takes a multiprocessor.
constexpr int64_t most_ctas = 4;

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> variables_of_shared_gpus(
    const SharedGpusQuestion& q) {
  std::vector<std::pair<std::string, std::string>> out;
  const bool alone = q.rendezvous.processes == 1;
  const int64_t ranks = alone ? q.world : q.rendezvous.locals;
  if (ranks <= q.gpus.gpus) return out;
  const bool knows = q.nccl_version >= several_ranks_a_gpu;
  const std::string who = "backend nccl: " + std::to_string(ranks) + " ranks on " +
                          std::to_string(q.gpus.gpus) + (q.gpus.gpus == 1 ? " GPU" : " GPUs");
  if (alone && !knows) {
    return environment(who + " in one process need NCCL 2.30, " +
                       nccl_version_text(q.nccl_version) + " is loaded; add --launch " +
                       std::to_string(ranks) +
                       ", or name a newer library in MESHPLAN_NCCL_LIBRARY");
  }
  const int64_t kernels = ceil_div(ranks, q.gpus.gpus) * std::min(q.streams, most_streams);
  const int64_t ctas = std::min(q.gpus.multiprocessors / kernels, most_ctas);
  if (ctas < 1) {
    return environment(who + " have " + std::to_string(kernels) +
                       " kernels in flight that wait for each other, and a GPU has " +
                       std::to_string(q.gpus.multiprocessors) +
                       " multiprocessors; run on more GPUs, or use --backend host");
  }
  out.emplace_back("NCCL_MAX_CTAS", std::to_string(ctas));
  if (knows) {
    out.emplace_back("NCCL_MULTI_RANK_GPU_ENABLE", "1");
    return out;
  }
  // Each process says that it is a machine of its own; they talk over this one's loopback.
  out.emplace_back("NCCL_HOSTID", "meshplan-" + std::to_string(q.rendezvous.process));
  out.emplace_back("NCCL_SOCKET_IFNAME", "lo");
  out.emplace_back("NCCL_NET", "Socket");
  out.emplace_back("NCCL_IB_DISABLE", "1");
  out.emplace_back("NCCL_NVLS_ENABLE", "0");
  out.emplace_back("NCCL_RAS_ENABLE", "0");
  return out;
}

}  // namespace meshplan
