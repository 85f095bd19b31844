// Lining up two states digit by digit.
#pragma once

#include <optional>
#include <span>

#include "cost/exchange.h"

namespace meshplan {

// The digits of the mesh and of the tensor under both states; nullopt where levels, sizes or extents do not divide cleanly.
[[nodiscard]] std::optional<DigitProblem> align_digits(const LevelMap& levels, std::span<const int64_t> shape, int64_t element_bytes,
                                                       const State& src, const State& dst);

}  // namespace meshplan
