// Copies of more than caches hold, in runs.
//
// Memory that no cache holds is read fast only where it is read without gaps: the machine's own prefetchers stop where a run ends, and have
// by then fetched what lies behind it. So runs with gaps between them are asked for while others are copied, and then
//
//     gathered               into a buffer that the first-level cache holds and written from there, where they follow one another
//     copied side by side    some runs at a time, a line of each in turn, where every run fills whole lines of its target: a few of them,
//     or
//                            with gaps there too
//     copied in order        else, and where the source has no gaps
//
// What is written goes around the caches, by whole lines.
#pragma once

#include "replay/region.h"

namespace meshplan {

// Shorter runs are not worth the care; longer ones do not need it.
constexpr int64_t least_run_past_cache = 256;
constexpr int64_t longest_with_care = 8192;

// Law: copies what copy_region copies (tests/replay/region_test.cc). False, and nothing is done, on machines that it has no way for. The
// region has dims, and runs of at least least_run_past_cache bytes.
[[nodiscard]] bool copy_past_cache(const Region& region, const std::byte* from, std::byte* to, int64_t element_size);

}  // namespace meshplan
