#include "replay_host/host.h"

#include "replay_host/open_backend.h"

namespace meshplan {

Result<ReplayReport> replay_on_host(const Plan& plan, const ReplayOptions& options) {
  return replay_on("host", plan, options);
}

}  // namespace meshplan
