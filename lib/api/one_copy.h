// Which redistributions across meshes leave copies of a mesh out.
//
//     w   dp 2 x tp 2 on ranks 0-3     row   slice tp of w: copies 0 1 and 2 3
//     down   w -> row                  ranks 0 1 get the tensor, 2 and 3 nothing
//
// Within one mesh all copies do the same at once. Across meshes a name stands for one copy, the one
// with entry 0 of the rank map; who means all of them names the whole mesh. In a recording the
// name stands for the ranks that the program had, and nothing is left out.
#pragma once

#include <string>
#include <vector>

#include "spec/spec.h"

namespace meshplan {

// All redistributions that come from, or go to, one mesh with several copies.
struct OneCopy {
  size_t mesh = 0;
  bool target = false;           // they go to it
  std::vector<std::string> ids;  // in order
  size_t first = 0;              // index of the first
};

// In order of first appearance, without those that the spec allows; none of a recording.
[[nodiscard]] std::vector<OneCopy> ends_on_one_copy(const Spec& spec);

// "'down' goes to one copy of 2 of mesh 'row', on ranks 0-1: ranks 2-3 get nothing"
[[nodiscard]] std::string message_of(const Spec& spec, const OneCopy& end);

}  // namespace meshplan
