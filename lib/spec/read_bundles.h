// Reads a spec's "bundles".
#pragma once

#include <map>
#include <string>
#include <vector>

#include "json/reader.h"
#include "plan/bundle.h"
#include "spec/read_redistributions.h"

namespace meshplan {

// The file of each bundle, by its id.
using BundleFiles = std::map<std::string, std::string>;

// Where a list of bundles stands.
struct BundlesFrom {
  std::string file;
  bool recorded_again = false;  // recorded bundles of this list ("x-recorded": true) are not read
};

// Members by id, or by "prefix*" for all whose id begins so, in the order of the redistributions;
// one that several of a bundle's names mean is in it once. `bundles`, and `files` that gave them:
// of the files that are extended; one with an id that is read here is replaced.
void read_bundles(Reader& reader, uint32_t index, const ReadRedistributions& known,
                  const BundlesFrom& from, std::vector<BundleRequest>& bundles, BundleFiles& files);

}  // namespace meshplan
