// Reads a spec's "bundles".
#pragma once

#include <vector>

#include "json/reader.h"
#include "plan/bundle.h"
#include "spec/read_redistributions.h"

namespace meshplan {

// Members by id, or by "prefix*" for all whose id begins so, in the order of the redistributions;
// one that several of a bundle's names mean is in it once.
[[nodiscard]] std::vector<BundleRequest> read_bundles(Reader& reader, uint32_t index,
                                                      const ReadRedistributions& known);

}  // namespace meshplan
