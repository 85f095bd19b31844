#include "replay_nccl/rendezvous.h"

#include <vector>

#include "base/text.h"

namespace meshplan {
namespace {

struct Launcher {
  const char* name;
  const char* process;
  const char* processes;
  const char* local;
};

}  // namespace

Result<Rendezvous> find_rendezvous(
    const std::function<std::optional<std::string>(const char*)>& get) {
  const std::vector<Launcher> launchers{
      {"meshplan", "MESHPLAN_RANK", "MESHPLAN_RANKS", "MESHPLAN_LOCAL_RANK"},
      {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
      {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
      {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
      {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
  };
  Rendezvous out;
  for (const Launcher& l : launchers) {
    const auto process = get(l.process);
    const auto processes = get(l.processes);
    if (!process || !processes) continue;
    const auto p = parse_int(*process);
    const auto n = parse_int(*processes);
    if (!p || !n || *n < 1 || *p < 0 || *p >= *n) {
      return environment(std::string("backend nccl: ") + l.process + "=" + *process + " and " +
                         l.processes + "=" + *processes +
                         " are inconsistent; expected a rank below the number of ranks");
    }
    if (*n == 1) continue;  // started alone: plays all ranks
    out.launcher = l.name;
    out.process = *p;
    out.processes = *n;
    const auto local = get(l.local);
    out.local = local ? parse_int(*local).value_or(*p) : *p;
    const auto locals = get("MESHPLAN_LOCAL_RANKS");
    if (locals && out.launcher == launchers.front().name)
      out.locals = parse_int(*locals).value_or(0);
    break;
  }
  if (out.processes == 1) return out;
  if (auto id = get("NCCL_COMM_ID"); id && !id->empty()) {
    out.address = *id;
  } else {
    const auto host = get("MASTER_ADDR");
    const auto port = get("MASTER_PORT");
    if (!host || host->empty() || !port || port->empty()) {
      return environment(
          "backend nccl: " + std::to_string(out.processes) +
          " processes have no rendezvous address; set NCCL_COMM_ID=host:port, or MASTER_ADDR and MASTER_PORT");
    }
    out.address = *host + ":" + *port;
  }
  return out;
}

}  // namespace meshplan
