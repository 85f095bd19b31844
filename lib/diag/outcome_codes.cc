#include "diag/outcome_codes.h"

namespace meshplan {

Diagnostic diagnostic_of(Place place, const Error& error) {
  static constexpr std::string_view codes[] = {code_bad_usage, code_no_plan, code_wrong_data,
                                               code_environment};
  Diagnostic diagnostic;
  diagnostic.code = std::string(codes[static_cast<size_t>(error.fault)]);
  diagnostic.place = std::move(place);
  diagnostic.message = error.message;
  return diagnostic;
}

}  // namespace meshplan
