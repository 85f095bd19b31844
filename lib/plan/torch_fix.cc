#include "plan/torch_fix.h"

#include <algorithm>
#include <string_view>

#include "base/utf8.h"

namespace meshplan {
namespace {

bool is_identifier(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

std::string torch_fix(const Warning& warning) {
  std::string call = (is_identifier(warning.mesh) ? warning.mesh : std::string("mesh")) + "[";
  for (size_t i = 0; i < warning.dims.size(); ++i) {
    if (i > 0) call += ", ";
    append_json_string(call, warning.dims[i]);
  }
  call += "]._flatten(";
  append_json_string(call, warning.fix_name);
  return call + ")";
}

}  // namespace meshplan
