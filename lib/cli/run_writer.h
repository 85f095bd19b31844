// Runs a program for the file that it writes (System::run_writer).
#pragma once

#include <string>

#include "cli/system.h"

namespace meshplan {

// While it runs, HUP, INT, QUIT and TERM go to its process group. Not thread-safe; one at a time.
[[nodiscard]] Result<FileWriting> run_writer(const std::string& name, const std::string& variable,
                                             const WriterCommand& command);

}  // namespace meshplan
