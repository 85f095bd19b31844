// The entry point of the module (replay/backend.h).
#include "replay/backend.h"
#include "replay/host_device.h"
#include "replay_mpi/mpi_communicator.h"

namespace meshplan {
namespace {

Result<Backend> open_mpi_backend(const BackendQuestion& question) {
  Backend backend;
  auto communicator = open_mpi(question.world, question.global_ids, question.deadline);
  if (!communicator) return communicator.error();
  backend.communicator = std::move(*communicator);
  // mpirun usually starts one process per core, so each gets one thread by default.
  backend.device = std::make_unique<HostDevice>(question.threads == 0 ? 1 : question.threads);
  return backend;
}

}  // namespace

const OpenBackend meshplan_open_backend_7 = open_mpi_backend;

}  // namespace meshplan
