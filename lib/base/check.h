// Checks of what the code itself must guarantee. A failed check is a bug in meshplan: the command
// line prints the message and exits with 70.
#pragma once

#include <stdexcept>
#include <string>

namespace meshplan {

struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);

}  // namespace meshplan

// `message` says what must hold and why; it is evaluated only on failure.
#define MESHPLAN_CHECK(condition, message)                                                 \
  do {                                                                                     \
    if (!(condition)) ::meshplan::check_failed(__FILE__, __LINE__, #condition, (message)); \
  } while (false)
