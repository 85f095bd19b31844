// The names of kinds of warnings, as plans and messages write them.
#include "base/enum_names.h"
#include "plan/plan.h"

namespace meshplan {
namespace {

constexpr EnumNames<WarningKind, 3> warning_names{
    {"missing_flatten", "uneven_shape", "non_ascending"}};
constexpr EnumNames<WarningKind, 3> warning_codes{{"W0301", "W0302", "W0303"}};

}  // namespace

const char* to_text(WarningKind kind) { return warning_names[kind]; }
const char* warning_code(WarningKind kind) { return warning_codes[kind]; }

}  // namespace meshplan
