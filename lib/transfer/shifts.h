// Which parts of the first of two phases are fetched together, so that every chunk comes from few
// ranks (README.md, "In shifts").
//
//     ranks 4 and 6 fetch from 0 and from 1, both in that order
//     part      4 from 0    4 from 1    6 from 0    6 from 1
//     shift     1           0           0           1
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/int_math.h"

namespace meshplan {

// A part, by the ranks between which it goes: any numbers from 0 on, those of fetchers and of
// holders apart.
struct Fetch {
  int32_t fetcher = 0;
  int32_t holder = 0;
  bool operator==(const Fetch&) const = default;
};

struct Shifts {
  std::vector<int32_t> of;  // by part
  int64_t count = 0;        // the most parts that one rank fetches, or that one serves
};
// The most times that parts change places: some seconds.
constexpr int64_t most_changes = int64_t{1} << 27;
// nullopt: parts change places more often than `most`.
// Law: parts of one shift have neither a fetcher nor a holder in common, and all shifts are below
// `count` (tests/transfer/shifts_test.cc).
[[nodiscard]] std::optional<Shifts> put_in_shifts(std::span<const Fetch> parts,
                                                  int64_t most = most_changes);

// Into how many stages of at most `at_once` shifts these are cut; at least 1.
[[nodiscard]] constexpr int64_t stages_of(int64_t shifts, int64_t at_once) {
  return std::max<int64_t>(1, ceil_div(shifts, at_once));
}
// The stage of a shift: all have as many, but for one.
[[nodiscard]] constexpr int64_t stage_of(int64_t shift, int64_t shifts, int64_t at_once) {
  return floor_div(shift * stages_of(shifts, at_once), shifts);
}

}  // namespace meshplan
