// The JSON Schemas of schemas/, compiled into the library.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace meshplan {

// The schema of "spec", "plan", "mesh", "diff" or "report", with the text of the file in schemas/.
[[nodiscard]] std::optional<std::string_view> schema_text(std::string_view name);
// The names of the existing schemas, in this order.
[[nodiscard]] std::vector<std::string_view> schema_names();

}  // namespace meshplan
