// The ids of redistributions and bundles that a person asks for.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace meshplan {

enum class AskedIds : uint8_t { of_redistributions, of_bundles_too };

// Refuses an id that the plan does not have, with the closest one that it has.
[[nodiscard]] Status check_asked_ids(const Plan& plan, std::span<const std::string> asked,
                                     AskedIds kind);

// The ids of the bundles that move one of these redistributions, in order; all where none is named.
[[nodiscard]] std::vector<std::string> bundles_that_move(const Plan& plan,
                                                         std::span<const std::string> asked);

}  // namespace meshplan
