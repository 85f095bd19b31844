// Whose fault it is that something cannot be written.
#pragma once

#include <string>

#include "base/result.h"

namespace meshplan {

// "cannot write PATH: " and what the system says of `error`, an errno. Environment where writing
// lacks something, such as space on the disk; bad input where the path is not one to write to.
// `where`: a path or "to stdout".
[[nodiscard]] Error cannot_write(const std::string& where, int error);

// The same of a path where no file can be made: names its folder if that is at fault, and what to
// do. `target`: where the path leads.
[[nodiscard]] Error cannot_make(const std::string& shown, const std::string& target, int error);

}  // namespace meshplan
