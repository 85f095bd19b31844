// Whose fault it is that something cannot be written.
#pragma once

#include <string>

#include "base/result.h"

namespace meshplan {

// "cannot write PATH: " and what the system says of `error`, an errno. Environment where writing
// lacks something, such as space on the disk; bad input where the path is not one to write to.
// `where`: a path or "to stdout".
[[nodiscard]] Error cannot_write(const std::string& where, int error);

}  // namespace meshplan
