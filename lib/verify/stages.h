// What the fullest chunk of an exchange in shifts moves: of n = ceil(d / `at_once`) stages, of
// which the j-th has the shifts t of d with floor(t n / d) = j.
//
//   fetching    of every stage what each rank fetches and serves; the bytes n times, so that in k
//               chunks one has the bytes of a stage in k / n of them
//   inside      of every stage what each rank gets passed on, and passes on, likewise; the bytes of
//               what members held before once, which every stage has an n-th of
//   peers       the ranks of a stage, each once; those that send what they held before are in all
//
// Of each the most over stages and ranks, received and sent apart.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "verify/traffic.h"

namespace meshplan::verification {

// Ranks are numbers below `ListedPhases::ranks`.
struct FetchedPart {
  size_t from = 0;
  size_t to = 0;
  size_t level = 0;
  int64_t bytes = 0;
  size_t wanting = 0;  // which of ListedPhases::wanting; the fetcher may be among them
};
struct HeldPart {
  size_t from = 0;
  size_t to = 0;
  int64_t bytes = 0;
};
struct ListedPhases {
  size_t ranks = 0;
  std::vector<FetchedPart> fetched;  // in the order in which they are put in shifts
  std::vector<HeldPart> held;        // by members of the unit before, sent inside
  std::vector<std::vector<size_t>> wanting;
};

struct StagedTraffic {
  int64_t stages = 1;  // also where nothing is fetched
  std::array<LevelTraffic, 2> phase;
};
// nullopt: parts change places too often (shifts.h).
[[nodiscard]] std::optional<StagedTraffic> traffic_in_stages(const ListedPhases& listed,
                                                             int64_t at_once);

}  // namespace meshplan::verification
