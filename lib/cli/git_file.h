// Files of a git revision: git:REF:PATH.
#pragma once

#include <optional>
#include <string>

#include "cli/context.h"

namespace meshplan {

// The content of git:REF:PATH, the path relative to the current folder; no value if REF has no such
// file and `new_file` allows it.
[[nodiscard]] Result<std::optional<std::string>> read_from_git(Context& context,
                                                               const std::string& against,
                                                               bool new_file);

}  // namespace meshplan
