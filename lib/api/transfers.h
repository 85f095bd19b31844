// The question of `meshplan transfers`, checked against the plan before anything is listed.
#pragma once

#include <string>

#include "plan/plan.h"
#include "render/transfers_text.h"

namespace meshplan {

// Refuses ids and ranks that the plan does not have, plans of more ranks than can be listed, and
// plans that verify refuses: other programs execute what is listed.
[[nodiscard]] Status check_transfers(const Plan& plan, const TransfersQuestion& question);

// The bundle of this id; the error names one that is near.
[[nodiscard]] Result<const PlannedBundle*> bundle_named(const Plan& plan, const std::string& id);

}  // namespace meshplan
