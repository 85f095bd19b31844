// The ranks of this process, from the environment of its launcher, tried in this order: meshplan,
// Open MPI, PMI, Slurm, torchrun; else one process plays all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"

namespace meshplan {

struct Rendezvous {
  // "meshplan", "Open MPI", "PMI", "Slurm", "torchrun"; empty: one process for all
  std::string launcher;
  int64_t process = 0;
  int64_t processes = 1;
  int64_t local = 0;  // number of this process on its machine: its GPU
  // Processes of this machine that see the same GPUs; 0: not known, --launch has not started them.
  int64_t locals = 0;
  std::string address;  // host:port at which the ranks meet (NCCL_COMM_ID); empty for one process
};

// `get` reads an environment variable. Errors (environment): inconsistent numbers, or several
// processes without a rendezvous address.
[[nodiscard]] Result<Rendezvous> find_rendezvous(
    const std::function<std::optional<std::string>(const char*)>& get);

}  // namespace meshplan
