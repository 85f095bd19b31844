// How a word is quoted for a POSIX shell, for zsh and for fish.
#pragma once

#include <string>

namespace meshplan {

// "it's" -> "'it'\''s'".
[[nodiscard]] std::string shell_quoted(const std::string& text);

}  // namespace meshplan
