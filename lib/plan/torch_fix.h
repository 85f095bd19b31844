// What a missing flatten is mended by in PyTorch.
#pragma once

#include <string>

#include "plan/plan.h"

namespace meshplan {

// The call that declares the warning's fix, as the file has it: mesh["dp", "tp"]._flatten("dp_tp").
[[nodiscard]] std::string torch_fix(const Warning& warning);

}  // namespace meshplan
