// The process around cli/cli.h.
#include <csignal>
#include <iostream>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "cli/cli.h"
#include "cli/real_system.h"

namespace {

// Planning makes and drops many lists: what one frees is kept for the next, not given back to the
// system and asked for again, which takes 6 % of the time of a large spec.
void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int mib = 1 << 20;
  mallopt(M_TRIM_THRESHOLD, 256 * mib);
  mallopt(M_TOP_PAD, mib);
  mallopt(M_MMAP_THRESHOLD, 4 * mib);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  // A reader that goes away, or a file that grows beyond its limit, is seen where the write fails,
  // not by a signal.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::ios::sync_with_stdio(false);
  keep_freed_memory();
  meshplan::RealSystem system;
  return meshplan::run_cli({argv + 1, argv + argc}, system, std::cin, std::cout, std::cerr);
}
