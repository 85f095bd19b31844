// Whether steps take less time than others for sure: predicted times err (cost/worth.h), and steps
// that stay as they are err alike.
//
//     without    all_to_all 200 us, all_reduce 40 us, all_reduce 30 us
//     with       all_to_all 200 us, all_reduce 50 us
//                50 us stand against 70, not 250 against 270
#pragma once

#include <span>

#include "plan/plan.h"

namespace meshplan {

[[nodiscard]] bool surely_saves(const Topology& topology, std::span<const Step> without,
                                std::span<const Step> with);

}  // namespace meshplan
