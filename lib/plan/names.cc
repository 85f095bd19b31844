// The names of plan/plan.h's enumerations, as plans and messages write them.
#include <array>

#include "plan/plan.h"

namespace meshplan {
namespace {

constexpr std::array<const char*, 7> op_names = {"slice",      "all_gather", "reduce_scatter", "all_to_all",
                                                 "all_reduce", "to_partial", "exchange"};
constexpr std::array<const char*, 3> warning_names = {"missing_flatten", "uneven_shape", "non_ascending"};
constexpr std::array<const char*, 3> warning_codes = {"W0301", "W0302", "W0303"};

}  // namespace

const char* to_text(Op op) { return op_names[static_cast<size_t>(op)]; }

std::optional<Op> parse_op(std::string_view text) {
  for (size_t i = 0; i < op_names.size(); ++i) {
    if (text == op_names[i]) return static_cast<Op>(i);
  }
  return std::nullopt;
}

const char* to_text(WarningKind kind) { return warning_names[static_cast<size_t>(kind)]; }
const char* warning_code(WarningKind kind) { return warning_codes[static_cast<size_t>(kind)]; }

}  // namespace meshplan
