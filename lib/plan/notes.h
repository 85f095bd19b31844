// Notes ("x-...") that a plan carries from its spec: where a redistribution comes from.
//
//     "x-module": "layers.0.wq", "x-source": "train.py:31"      where_text: "layers.0.wq, train.py:31"
//     "x-partial": ["_NormPartial(2)", null]                    what its partials are in the program
//
// They decide nothing: two redistributions that differ in notes only ask the same question.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tensor/request.h"

namespace meshplan {

// The notes that go from a spec into its plan; others stay in the spec.
[[nodiscard]] bool is_carried_note(std::string_view key);

// The text of a note that is one; "" where it is absent or something else.
[[nodiscard]] std::string note_text(const Request& request, std::string_view key);
// The module and the line that ask for it, on one line; "" where neither is known.
[[nodiscard]] std::string where_text(const Request& request);
// By mesh dim of the source what the program calls its partial, before or, where it has none there,
// after; "" where it is a plain one; empty where nothing is noted.
[[nodiscard]] std::vector<std::string> partial_names(const Request& request);

}  // namespace meshplan
