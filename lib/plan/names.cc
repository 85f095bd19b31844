// The names of kinds of warnings and ways of exchanges, as plans and messages write them.
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

std::string way_text(const Step& step) {
  std::string text;
  if (step.fetched_by_all) text += ", fetched by all";
  if (step.laps > 1) text += " in " + std::to_string(step.laps) + " laps";
  if (step.far_64ths > 0) text += ", far share " + std::to_string(step.far_64ths) + "/64";
  if (step.chunks > 1) text += ", " + std::to_string(step.chunks) + " chunks";
  if (step.at_once > 0) text += " from " + std::to_string(step.at_once) + " at once";
  return text;
}

}  // namespace meshplan
