// Injected faults, to test that errors are detected and located: `--inject step:rank:kind`.
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
  swap,     // the first two elements that differ are swapped
  overrun,  // one element is written past the end of the new box
  exit,     // the rank's process ends before the step
  hang,     // the rank's process hangs before the step
  plan,     // the rank has a different plan
  version,  // the rank has another version of meshplan
  memory,   // the rank fails to allocate the buffers of the step
};
[[nodiscard]] const char* to_text(FaultKind kind);
[[nodiscard]] const std::vector<std::string>& fault_kind_names();
// Whether the fault needs one process per rank: exit, hang, plan, version.
[[nodiscard]] bool needs_process(FaultKind kind);

struct InjectedFault {
  int64_t step = 0;  // of the first redistribution that has this step
  int64_t rank = 0;  // global id
  FaultKind kind = FaultKind::flip;
  bool operator==(const InjectedFault&) const = default;
};
// Law: parse_fault(to_text(f)) == f. "2:5:flip".
[[nodiscard]] std::string to_text(const InjectedFault& fault);
[[nodiscard]] Result<InjectedFault> parse_fault(std::string_view text);

}  // namespace meshplan
