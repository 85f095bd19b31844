// A variable of the environment for one scope.
#pragma once

#include <cstdlib>
#include <string>

namespace meshplan::test {

struct Variable {
  const char* name;
  Variable(const char* which, const std::string& value) : name(which) { setenv(which, value.c_str(), 1); }
  ~Variable() { unsetenv(name); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
};

}  // namespace meshplan::test
