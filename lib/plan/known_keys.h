// The keys of a plan file, as write.cc writes them. Any other is a misspelling, or says what this
// reader would leave out, and is refused: but notes ("x-..."), and all keys of a newer minor
// version, which the caller knows.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "json/value.h"

namespace meshplan {

// An object's keys, each with the form of its value where that has keys, too. A list stands for its
// elements.
struct KeyForm {
  std::vector<std::pair<std::string_view, const KeyForm*>> keys;  // ascending
};

// Fails at the first key that the form lacks.
void check_keys(const Value& value, const KeyForm& form);

// Of the whole file but its redistributions, and of one of these that is written out.
[[nodiscard]] const KeyForm& form_of_plan();
[[nodiscard]] const KeyForm& form_of_redistribution();

}  // namespace meshplan
