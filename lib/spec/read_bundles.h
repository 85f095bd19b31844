// Reads a spec's "bundles".
#pragma once

#include <map>
#include <string>
#include <vector>

#include "json/reader.h"
#include "plan/bundle.h"
#include "spec/read_redistributions.h"

namespace meshplan {

// Where each bundle stands, by its id.
using BundlePlaces = std::map<std::string, Place>;

// Members by id, or by "prefix*" for all whose id begins so, in the order of the redistributions;
// one that several of a bundle's names mean is in it once. `bundles`, and `places` of them:
// of the files that are extended; one with an id that is read here is replaced. `recorded_again`:
// recorded bundles ("x-recorded": true) are not read.
void read_bundles(Reader& reader, uint32_t index, const ReadRedistributions& known,
                  bool recorded_again, std::vector<BundleRequest>& bundles, BundlePlaces& places);

}  // namespace meshplan
