// The ids of redistributions and bundles that a person asks for.
#pragma once

#include <span>
#include <string>

#include "plan/plan.h"

namespace meshplan {

enum class AskedIds : uint8_t { of_redistributions, of_bundles_too };

// Refuses an id that the plan does not have, with the closest one that it has.
[[nodiscard]] Status check_asked_ids(const Plan& plan, std::span<const std::string> asked,
                                     AskedIds kind);

}  // namespace meshplan
