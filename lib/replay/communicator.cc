#include "replay/communicator.h"

namespace meshplan {

Status Communicator::run_together(const std::vector<Call>& calls, Deadline deadline) {
  for (const Call& call : calls) {
    if (auto done = run(call, deadline); !done) return done;
  }
  return Done{};
}

}  // namespace meshplan
