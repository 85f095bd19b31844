#include "cli/junit.h"

#include <algorithm>

#include "render/table.h"

namespace meshplan {
namespace {

// The lines of a text, each escaped: line ends are XML's own and stay.
std::string escaped_lines(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out += escape_html(text.substr(at, end - at));
    if (end < text.size()) out += '\n';
    at = end + 1;
  }
  return out;
}

}  // namespace

std::string junit_xml(const std::string& suite, const std::vector<JunitCase>& cases) {
  const auto failures = std::count_if(cases.begin(), cases.end(),
                                      [](const JunitCase& c) { return !c.failure.empty(); });
  const std::string counts = " tests=\"" + std::to_string(cases.size()) + "\" failures=\"" +
                             std::to_string(failures) + "\" errors=\"0\"";
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" + counts +
                    ">\n  <testsuite name=\"" + escape_html(suite) + "\"" + counts + ">\n";
  for (const JunitCase& each : cases) {
    out += "    <testcase classname=\"" + escape_html(suite) + "\" name=\"" +
           escape_html(each.name) + "\"";
    if (each.failure.empty()) {
      out += "/>\n";
      continue;
    }
    out += ">\n      <failure message=\"" + escape_html(each.failure) + "\">" +
           escaped_lines(each.detail) + "</failure>\n    </testcase>\n";
  }
  return out + "  </testsuite>\n</testsuites>\n";
}

}  // namespace meshplan
