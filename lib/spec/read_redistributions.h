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
  // Ids and their nodes; views of the text or of `escaped`.
  std::unordered_map<std::string_view, uint32_t> ids;
  std::deque<std::string> escaped;
  // Some redistribution has no readable id, so no id can be reported as unknown.
  bool ids_lost = false;
  // The same of bundles.
  bool bundles_lost = false;
  std::string where;  // for messages: " in recorded.json" if that file has them
};

// `simple`: the file has one mesh, and redistributions need not name it. Index 0: the key is
// absent.
[[nodiscard]] ReadRedistributions read_redistributions(Reader& reader, uint32_t index,
                                                       const ReadMeshes& meshes, bool simple);

}  // namespace meshplan
