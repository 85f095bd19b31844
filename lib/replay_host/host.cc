#include "replay_host/host.h"

#include "replay/executor.h"
#include "replay/host_device.h"
#include "replay_host/host_communicator.h"

namespace meshplan {

Result<ReplayReport> replay_on_host(const Plan& plan, const ReplayOptions& options) {
  if (!plan.meshes.universe) return bad_input("the plan has no mesh; make it again with meshplan plan");
  HostDevice device(options.threads);
  HostCommunicator communicator(plan.meshes.universe->world, device);
  return replay(plan, options, communicator, device);
}

}  // namespace meshplan
