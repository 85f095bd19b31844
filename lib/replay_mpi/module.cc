// What the module exports (replay/backend.h).
#include "replay/backend.h"
#include "replay/host_device.h"
#include "replay_mpi/mpi_communicator.h"

extern "C" __attribute__((visibility("default"))) meshplan::Result<meshplan::Backend> meshplan_open_backend_2(
    const meshplan::BackendQuestion& question) {
  meshplan::Backend backend;
  auto communicator = meshplan::open_mpi(question.world, question.global_ids);
  if (!communicator) return communicator.error();
  backend.communicator = std::move(*communicator);
  // One process a core is the rule under mpirun: one thread each unless asked otherwise.
  backend.device = std::make_unique<meshplan::HostDevice>(question.threads == 0 ? 1 : question.threads);
  return backend;
}
