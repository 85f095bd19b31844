// Any bytes are a plan or an error; a plan that is read writes itself, and what it writes reads as the same text.
#include <cstdint>
#include <cstdlib>

#include "plan/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace meshplan;
  const auto plan = read_plan({reinterpret_cast<const char*>(data), size}, false);
  if (!plan) return 0;
  const std::string text = write_plan(*plan);
  const auto again = read_plan(text);
  if (!again || write_plan(*again) != text) std::abort();
  return 0;
}
