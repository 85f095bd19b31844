// The process around cli/cli.h.
#include <csignal>
#include <iostream>

#include "cli/cli.h"
#include "cli/real_system.h"

int main(int argc, char** argv) {
  // A reader that goes away is seen where the write fails, not by a signal.
  std::signal(SIGPIPE, SIG_IGN);
  std::ios::sync_with_stdio(false);
  meshplan::RealSystem system;
  return meshplan::run_cli({argv + 1, argv + argc}, system, std::cin, std::cout, std::cerr);
}
