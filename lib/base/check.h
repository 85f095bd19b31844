// Checks for programmers' mistakes. A failed check is a bug in meshplan: the command line ends with exit 70 and prints the sentence.
#pragma once

#include <stdexcept>
#include <string>

namespace meshplan {

struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& sentence);

}  // namespace meshplan

// `sentence` says what must hold and why; it is evaluated only on failure.
#define MESHPLAN_CHECK(condition, sentence)                                                 \
  do {                                                                                      \
    if (!(condition)) ::meshplan::check_failed(__FILE__, __LINE__, #condition, (sentence)); \
  } while (false)
