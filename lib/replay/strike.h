// What injected faults do (replay/fault.h).
#pragma once

#include "replay/device.h"
#include "replay/fault.h"

namespace meshplan {

// Ends or hangs this process where the fault is of that kind.
void strike_process(FaultKind kind);

struct StruckBox {
  int32_t rank = 0;
  std::byte* data = nullptr;
  int64_t elements = 0;
  DType dtype = DType::float32;
};

// Spoils elements of a box, those `at` these places, as a fault of data does; other kinds do
// nothing. False: such a fault left the box as it was, as a swap does where all elements are equal.
[[nodiscard]] Result<bool> strike_box(const StruckBox& box, FaultKind kind,
                                      std::span<const int64_t> at, Device& device);
// The error of that: `place` is the step or round.
[[nodiscard]] Error changes_nothing(const InjectedFault& fault, const std::string& place);

}  // namespace meshplan
