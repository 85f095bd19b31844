// The ways in which an exchange between two states may go (transfer/README.md); laps, far shares,
// chunks and how pieces are cut are chosen where it is priced.
#pragma once

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

}  // namespace meshplan
