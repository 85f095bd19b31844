// `meshplan run --backend host`: all ranks in this process, bulk-synchronous and deterministic. The
// reference for the other backends.
//
//     auto report = replay_on_host(plan, options);
//     if (!report) -> print report.error().message, exit exit_code(report.error().fault)
//     print to_text(*report); exit all_right(*report) ? 0 : exit_code(Fault::wrong_data)
#pragma once

#include "base/result.h"
#include "plan/plan.h"
#include "replay/report.h"

namespace meshplan {

[[nodiscard]] Result<ReplayReport> replay_on_host(const Plan& plan, const ReplayOptions& options);

}  // namespace meshplan
