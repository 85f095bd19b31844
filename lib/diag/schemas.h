// The JSON Schemas of schemas/, compiled in.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace meshplan {

// The schema of "spec", "plan", "mesh", "diff" or "report", as it stands in schemas/.
[[nodiscard]] std::optional<std::string_view> schema_text(std::string_view name);
// Those that exist, in that order.
[[nodiscard]] std::vector<std::string_view> schema_names();

}  // namespace meshplan
