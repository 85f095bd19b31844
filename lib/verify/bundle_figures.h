// The figures of a bundle's rounds and of the whole, counted rank by rank.
//
// A round and a wave are added up per rank: what it receives, sends and with how many peers over
// each level; then the most over ranks is taken. Beside that a rank has in a wave what is packed
// for its rounds, and the boxes between steps that exist (bundle_order.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "verify/bundle_order.h"
#include "verify/bundle_view.h"

namespace meshplan::verification {

struct BundleFigures {
  Problem problem;                    // a figure that is not what its parts give
  bool refused = false;               // it takes more work than is looked at
  std::optional<int64_t> ps;          // of all waves; nullopt: only a range is known
  std::vector<std::string> left_out;  // times that were held to a range
};

// The rounds and their order must have been checked.
[[nodiscard]] BundleFigures count_bundle(const BundleView& view, const std::vector<BoxLife>& lives,
                                         WorkLeft& work);

}  // namespace meshplan::verification
