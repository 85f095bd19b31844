// Requests that differ in name and count only are one question, which is planned once.
#pragma once

#include <string>

#include "tensor/request.h"

namespace meshplan {

// Everything that the answer depends on, as bytes: equal keys are equal questions. It is made of
// the fields of the values themselves: with a field that it does not name it does not compile.
[[nodiscard]] std::string question_key(const Request& request);

}  // namespace meshplan
