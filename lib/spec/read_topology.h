// Reads a "topology" object, in a spec or in a file of its own.
#pragma once

#include <optional>

#include "json/reader.h"
#include "spec/spec.h"

namespace meshplan {

// The value of a spec's key "topology": a preset's name, {"file": ...} or an object with levels.
[[nodiscard]] std::optional<Topology> read_topology(Reader& reader, uint32_t index,
                                                    const FileReader& read_file,
                                                    Diagnostics& diagnostics);

}  // namespace meshplan
