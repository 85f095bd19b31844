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

Error out_of_memory() {
  return environment(
      "not enough memory for this request; increase the memory limit of the process or reduce the "
      "input");
}

Error out_of_threads() {
  return environment(
      "the system gives this process no more threads; raise its limit of processes (ulimit -u) or "
      "that of its memory");
}

Diagnostic diagnostic_of_bug(std::string_view version, std::string_view what) {
  Diagnostic bug;
  bug.code = std::string(code_internal);
  bug.message = "this is a bug in meshplan (" + std::string(version) + "): " + std::string(what);
  bug.help = "please report it with the command and the input file";
  return bug;
}

}  // namespace meshplan
