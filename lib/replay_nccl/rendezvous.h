// Which ranks this process plays, from what started it. In this order: meshplan's own launcher, Open MPI, PMI, Slurm, torchrun; else one
// process plays all.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"

namespace meshplan {

struct Rendezvous {
  std::string launcher;  // "meshplan", "Open MPI", "PMI", "Slurm", "torchrun"; empty: one process for all
  int64_t process = 0;
  int64_t processes = 1;
  int64_t local = 0;    // number of this process on its machine: its GPU
  std::string address;  // host:port at which the ranks meet (NCCL_COMM_ID); empty for one process
};

// `get` reads an environment variable. Errors (environment): a launcher whose numbers make no sense, several processes and nowhere to meet.
[[nodiscard]] Result<Rendezvous> find_rendezvous(const std::function<std::optional<std::string>(const char*)>& get);

}  // namespace meshplan
