// Copies of runs that exceed the caches.
//
// Uncached memory is read fast only without gaps: at the end of a run the hardware prefetchers
// stop, having fetched data behind the run. So runs with gaps are prefetched while others are
// copied, and are then
//
//     gathered             in a buffer in the first-level cache and written from there, if they are
//                          contiguous in the target
//     copied side by side  a line of each of some runs in turn, if every run fills whole lines
//     copied in order      otherwise, and if the source has no gaps
//
// Stores bypass the caches, in whole lines.
#pragma once

#include "copy/region.h"

namespace meshplan {

// Shorter runs do not benefit; longer ones do not need it.
constexpr int64_t least_run_past_cache = 256;
constexpr int64_t longest_with_care = 8192;

// Law: copies what copy_region copies (tests/copy/region_test.cc). Returns false and does nothing
// on unsupported machines. The region has dims, and runs of at least least_run_past_cache bytes.
[[nodiscard]] bool copy_past_cache(const Region& region, const std::byte* from, std::byte* to,
                                   int64_t element_size);

}  // namespace meshplan
