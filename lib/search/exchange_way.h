// The ways in which an exchange between two states may go (transfer/README.md); laps, far shares,
// chunks and how pieces are cut are chosen where it is priced.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace meshplan {

enum class ExchangeWay : uint8_t {
  one_phase,
  two_phases,  // fetched by those that want it
  by_all,      // two phases, fetched by all ranks of units
};
constexpr std::array<ExchangeWay, 3> exchange_ways{ExchangeWay::one_phase, ExchangeWay::two_phases,
                                                   ExchangeWay::by_all};

[[nodiscard]] constexpr int phases_of(ExchangeWay way) {
  return way == ExchangeWay::one_phase ? 1 : 2;
}

// What the exchange between two states takes at least, ps: in one phase, by what a rank receives on
// each level, and in two, which is only told where they have the same sub-axes pending.
struct ExchangeFloors {
  int64_t one_phase_ps = 0;
  int64_t two_phases_ps = 0;
  int64_t by_all_ps = INT64_MAX;  // where it is not offered
  [[nodiscard]] int64_t of(ExchangeWay way) const {
    if (way == ExchangeWay::one_phase) return one_phase_ps;
    return way == ExchangeWay::by_all ? by_all_ps : two_phases_ps;
  }
  // In any way; one that reduces something goes in one phase.
  [[nodiscard]] int64_t least_ps(bool reduces) const {
    return reduces ? one_phase_ps : std::min({one_phase_ps, two_phases_ps, by_all_ps});
  }
};

}  // namespace meshplan
