// Whether a text is a spec or a plan, before it is parsed: specs may have comments, plans not.
//
//     // mine
//     {"schema": "meshplan/spec/1", "mesh": …}      a spec
//     {"mesh": …, "schema": "meshplan/plan/1"}      a plan
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace meshplan {

enum class DocumentKind : uint8_t { spec, plan };

// By the first key "schema" of the outermost object, whatever its names, notes and comments say;
// nullopt where it is neither. O(text).
[[nodiscard]] std::optional<DocumentKind> document_kind(std::string_view text);

}  // namespace meshplan
