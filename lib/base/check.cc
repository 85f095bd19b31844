#include "base/check.h"

namespace meshplan {

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  throw InternalError(std::string(file) + ":" + std::to_string(line) + ": " + message + " (" +
                      condition + ")");
}

}  // namespace meshplan
