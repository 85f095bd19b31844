#include "replay/fault.h"

#include "base/text.h"

namespace meshplan {

const std::vector<std::string>& fault_kind_names() {
  static const std::vector<std::string> names{"flip", "drop", "swap",    "overrun", "exit",
                                              "hang", "plan", "version", "memory"};
  return names;
}

const char* to_text(FaultKind kind) {
  return fault_kind_names()[static_cast<size_t>(kind)].c_str();
}

bool needs_process(FaultKind kind) {
  return kind == FaultKind::exit || kind == FaultKind::hang || kind == FaultKind::plan ||
         kind == FaultKind::version;
}

std::string to_text(const InjectedFault& fault) {
  return std::to_string(fault.step) + ":" + std::to_string(fault.rank) + ":" + to_text(fault.kind);
}

Result<InjectedFault> parse_fault(std::string_view text) {
  const size_t first = text.find(':');
  const size_t second = first == std::string_view::npos ? first : text.find(':', first + 1);
  if (second == std::string_view::npos)
    return bad_input("fault '" + std::string(text) +
                     "': expected step:rank:kind, such as 0:3:flip");
  const auto step = parse_int(text.substr(0, first));
  const auto rank = parse_int(text.substr(first + 1, second - first - 1));
  const std::string kind(text.substr(second + 1));
  if (!step || *step < 0 || !rank || *rank < 0) {
    return bad_input("fault '" + std::string(text) +
                     "': step and rank are integers from 0, such as 0:3:flip");
  }
  for (size_t i = 0; i < fault_kind_names().size(); ++i) {
    if (kind == fault_kind_names()[i])
      return InjectedFault{*step, *rank, static_cast<FaultKind>(i)};
  }
  std::string message = "fault '" + std::string(text) + "': unknown kind '" + kind + "'";
  if (auto near = nearest(kind, fault_kind_names())) message += "; did you mean " + *near + "?";
  return bad_input(message + " (" + join(fault_kind_names(), ", ") + ")");
}

}  // namespace meshplan
