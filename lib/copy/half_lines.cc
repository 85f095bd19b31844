#include "copy/half_lines.h"

namespace meshplan {

#if defined(__x86_64__)

bool has_half_lines() {
  static const bool has = __builtin_cpu_supports("avx") != 0;
  return has;
}

__attribute__((target("avx"))) void copy_by_half_lines(const Runs& runs) {
  const std::byte* from = runs.from;
  std::byte* to = runs.to;
  if (runs.bytes < 4 * half_line) {
    for (int64_t i = 0; i < runs.count; ++i, from += runs.from_step, to += runs.to_step)
      copy_run_by_half_lines(from, to, runs.bytes);
    return;
  }
  // The lines at both ends of a run, shared with the gaps, are prefetched some runs ahead. Measured
  // to help for runs of a few lines.
  constexpr int64_t runs_ahead = 4;
  const std::byte* read = from + runs_ahead * runs.from_step;
  const std::byte* write = to + runs_ahead * runs.to_step;
  for (int64_t i = 0; i < runs.count; ++i) {
    ask_for(read);
    ask_for(read + runs.bytes - 1);
    ask_to_write(write);
    ask_to_write(write + runs.bytes - 1);
    copy_run_by_half_lines(from, to, runs.bytes);
    from += runs.from_step;
    to += runs.to_step;
    read += runs.from_step;
    write += runs.to_step;
  }
}

#else

bool has_half_lines() { return false; }
void copy_by_half_lines(const Runs& /*runs*/) {}

#endif

}  // namespace meshplan
