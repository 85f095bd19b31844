// The command line as a function: words, outside world and streams in, exit code out.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "cli/system.h"

namespace meshplan {

// Never throws: a bug in meshplan prints a message on `err` and returns 70.
int run_cli(const std::vector<std::string>& arguments, System& system, std::istream& in,
            std::ostream& out, std::ostream& err);

}  // namespace meshplan
