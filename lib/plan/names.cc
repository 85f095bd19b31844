// The names of kinds of warnings, as plans and messages write them.
#include <array>

#include "plan/plan.h"

namespace meshplan {
namespace {

constexpr std::array<const char*, 3> warning_names = {"missing_flatten", "uneven_shape",
                                                      "non_ascending"};
constexpr std::array<const char*, 3> warning_codes = {"W0301", "W0302", "W0303"};

}  // namespace

const char* to_text(WarningKind kind) { return warning_names[static_cast<size_t>(kind)]; }
const char* warning_code(WarningKind kind) { return warning_codes[static_cast<size_t>(kind)]; }

}  // namespace meshplan
