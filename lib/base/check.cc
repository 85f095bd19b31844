#include "base/check.h"

namespace meshplan {

void check_failed(const char* file, int line, const char* condition, const std::string& sentence) {
  throw InternalError(std::string(file) + ":" + std::to_string(line) + ": " + sentence + " (" + condition + ")");
}

}  // namespace meshplan
