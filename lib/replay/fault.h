// Faults put in on purpose, to see that they are found and named: `--inject step:rank:kind`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace meshplan {

enum class FaultKind : uint8_t {
  flip,     // one bit of the middle element of the rank's new box
  drop,     // the last half of the new box is never written
  swap,     // the first two elements that differ change places
  overrun,  // one element is written behind the new box
  exit,     // the rank's process ends before the step
  hang,     // the rank's process stands still before the step
  plan,     // the rank replays another plan
  version,  // the rank is another version of meshplan
  memory,   // the rank has no memory for the step's buffers
};
[[nodiscard]] const char* to_text(FaultKind kind);
[[nodiscard]] const std::vector<std::string>& fault_kind_names();
// Needs a process of its own for the rank: exit, hang, plan, version.
[[nodiscard]] bool needs_process(FaultKind kind);

struct InjectedFault {
  int64_t step = 0;  // of the first redistribution replayed that has so many steps
  int64_t rank = 0;  // global id
  FaultKind kind = FaultKind::flip;
  bool operator==(const InjectedFault&) const = default;
};
// Law: parse_fault(to_text(f)) == f. "2:5:flip".
[[nodiscard]] std::string to_text(const InjectedFault& fault);
[[nodiscard]] Result<InjectedFault> parse_fault(std::string_view text);

}  // namespace meshplan
