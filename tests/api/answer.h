// Answers of the C ABI, freed where they go out of scope.
#pragma once

#include <memory>
#include <string>

#include "api/meshplan.h"

namespace meshplan::test {

using Answer = std::unique_ptr<meshplan_answer, decltype(&meshplan_free)>;

inline std::string text_of(const Answer& answer) { return {meshplan_text(answer.get()), meshplan_text_bytes(answer.get())}; }

}  // namespace meshplan::test
