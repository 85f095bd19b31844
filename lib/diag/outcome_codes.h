// The diagnostic codes of what ends a command or a call; diag/codes.h explains each.
#pragma once

#include <string_view>

#include "base/result.h"
#include "diag/diagnostic.h"

namespace meshplan {

constexpr std::string_view code_overflow = "E0410";    // bytes or time beyond 64 bits
constexpr std::string_view code_bad_plan = "E0501";    // a plan file that cannot be read
constexpr std::string_view code_wrong_data = "E0502";  // verification or replay found wrong data
// words on the command line that mean nothing, files that cannot be read or written
constexpr std::string_view code_bad_usage = "E0601";
constexpr std::string_view code_environment = "E0602";  // something is missing on this machine
constexpr std::string_view code_no_plan = "N0701";      // no plan exists
constexpr std::string_view code_internal = "E0699";     // a bug in meshplan
// a committed plan that its spec no longer gives
constexpr std::string_view code_not_current = "E0603";
constexpr std::string_view code_over_budget = "E0604";  // a budget that the plan exceeds
// a recorded spec that its program no longer produces
constexpr std::string_view code_drifted = "E0605";
// a recording that was cut short, a warning
constexpr std::string_view code_incomplete = "W0304";
// copies of a mesh that take no part in what goes from mesh to mesh, a warning
constexpr std::string_view code_one_copy = "W0305";
// a bundle that takes longer than its members one by one, a warning
constexpr std::string_view code_slower_bundle = "W0306";
// an outermost level that names fewer ranks than the level inside it, a warning
constexpr std::string_view code_outermost_ranks = "W0307";
constexpr std::string_view code_diff_dearer = "W0801";    // a redistribution became more expensive
constexpr std::string_view code_diff_numerics = "W0802";  // its reduction changed
constexpr std::string_view code_diff_other = "W0803";     // it changed otherwise

// An error of a whole call at a place: the code says whose fault it is.
[[nodiscard]] Diagnostic diagnostic_of(Place place, const Error& error);

// What ends a call for want of memory, or of threads.
[[nodiscard]] Error out_of_memory();
[[nodiscard]] Error out_of_threads();

// What ends a call by a bug of ours, `what` it was: exit internal_error.
constexpr int internal_error = 70;
[[nodiscard]] Diagnostic diagnostic_of_bug(std::string_view version, std::string_view what);

}  // namespace meshplan
