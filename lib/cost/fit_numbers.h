// Moves the numbers of a topology, one at a time by ever smaller factors, as long as measured rows
// are predicted better. Deterministic; a number that no row feels stays as it is.
//
// The sum of |e| + 2 e^2 over rows falls, e = log(predicted / measured): the first is the mean
// factor, the second keeps single rows near.
#pragma once

#include <vector>

#include "cost/calibrate.h"

namespace meshplan {

// The sum that is left. Of `only_levels` only the levels' numbers move, by which exchanges and
// all_to_alls are priced.
double fit_numbers(Topology& topology, const std::vector<MeasuredRow>& rows, bool only_levels);

}  // namespace meshplan
