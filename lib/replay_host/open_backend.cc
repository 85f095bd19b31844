#include "replay_host/open_backend.h"

#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/text.h"
#include "replay/executor.h"
#include "replay/host_device.h"
#include "replay_host/host_communicator.h"

namespace meshplan {

Result<Backend> open_backend(const std::string& name, const BackendQuestion& question) {
  if (name == "host") {
    Backend backend;
    backend.device = std::make_unique<HostDevice>(question.threads);
    backend.communicator = std::make_unique<HostCommunicator>(question.world, *backend.device);
    return backend;
  }
  if (name == "mpi" || name == "nccl") return load_backend(name, question);
  return bad_input("unknown backend '" + name + "': expected host, mpi or nccl");
}

Result<ReplayReport> replay_on(const std::string& backend, const Plan& plan, const ReplayOptions& options) {
  if (!plan.meshes.universe) return bad_input("the plan has no mesh; make it again with meshplan plan");
  BackendQuestion question;
  question.world = plan.meshes.universe->world;
  question.global_ids = make_rank_table(*plan.meshes.universe).global_ids;
  question.threads = options.threads;
  question.deadline = options.step_deadline;
  auto opened = open_backend(backend, question);
  if (!opened) return opened.error();
  return replay(plan, options, *opened->communicator, *opened->device);
}

bool process_speaks() {
  for (const char* name : {"MESHPLAN_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) return parse_int(value).value_or(0) == 0;
  }
  return true;
}

void let_the_speaker_finish() {
  if (!process_speaks()) std::this_thread::sleep_for(std::chrono::seconds(2));
}

}  // namespace meshplan
