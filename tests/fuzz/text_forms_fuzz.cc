// Layouts, states and placements as text: any bytes are one or an error, and what is printed reads as the same.
#include <cstdint>
#include <cstdlib>

#include "layout/layout.h"
#include "tensor/state.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace meshplan;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto layout = parse_layout(text)) {
    const auto again = parse_layout(to_text(*layout));
    if (!again || coalesce(*again) != coalesce(*layout)) std::abort();
  }
  if (const auto placement = parse_placement(text); placement && parse_placement(to_text(*placement)).value() != *placement) std::abort();
  const std::vector<int64_t> shape = {2, 12, 1, 4};
  if (const auto state = parse_state(text, shape, 3)) {
    const auto again = parse_state(to_text(*state, shape), shape, 3);
    if (!again || to_text(*again, shape) != to_text(*state, shape)) std::abort();
  }
  return 0;
}
