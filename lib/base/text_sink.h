// Takes a text part by part, where the whole would be too large to hold.
#pragma once

#include <functional>
#include <string_view>

#include "base/result.h"

namespace meshplan {

// An error ends the writing.
using TextSink = std::function<Status(std::string_view)>;
using TextWriter = std::function<Status(const TextSink&)>;

}  // namespace meshplan
