// Reads a spec's "redistributions".
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "json/reader.h"
#include "spec/read_meshes.h"
#include "tensor/request.h"

namespace meshplan {

struct ReadRedistributions {
  std::vector<Request> requests;
  std::vector<std::pair<size_t, size_t>> spans;
  std::unordered_map<std::string_view, uint32_t> ids;  // of all that have one, and where it stands; views into the text or `escaped`
  std::deque<std::string> escaped;
  bool ids_lost = false;  // some redistribution has no readable id, so that no id can be called unknown
};

// `simple`: the file has one mesh, and redistributions need not name it. Index 0: the file has none.
[[nodiscard]] ReadRedistributions read_redistributions(Reader& reader, uint32_t index, const ReadMeshes& meshes, bool simple);

}  // namespace meshplan
