#include "replay/half_lines.h"

namespace meshplan {

#if defined(__x86_64__)

bool has_half_lines() {
  static const bool has = __builtin_cpu_supports("avx") != 0;
  return has;
}

__attribute__((target("avx"))) void copy_by_half_lines(const Runs& runs) {
  const std::byte* from = runs.from;
  std::byte* to = runs.to;
  for (int64_t i = 0; i < runs.count; ++i, from += runs.from_step, to += runs.to_step) copy_run_by_half_lines(from, to, runs.bytes);
}

#else

bool has_half_lines() { return false; }
void copy_by_half_lines(const Runs& /*runs*/) {}

#endif

}  // namespace meshplan
