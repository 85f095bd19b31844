// JUnit XML, as CI systems read it.
#pragma once

#include <string>
#include <vector>

namespace meshplan {

struct JunitCase {
  std::string name;
  std::string failure;  // one line; empty: it passed
  std::string detail;
};

[[nodiscard]] std::string junit_xml(const std::string& suite, const std::vector<JunitCase>& cases);

}  // namespace meshplan
