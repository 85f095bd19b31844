// A state of a plan problem (search/search_state.h) as a few bytes.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

namespace meshplan {

constexpr int max_atoms = 12;
constexpr int max_search_dims = 8;

// An index from int arithmetic.
[[nodiscard]] constexpr size_t as_index(int i) { return static_cast<size_t>(i); }

// A state: list d is atom[end[d-1] .. end[d]). Unused entries are 0, so that equal states are equal
// bytes.
struct SearchState {
  std::array<uint8_t, max_atoms> atom{};
  std::array<uint8_t, max_search_dims> end{};
  uint16_t pending = 0;  // atoms pending with the source's op
  uint16_t made = 0;     // atoms pending with the target's op, by to_partial

  bool operator==(const SearchState& other) const {
    return std::memcmp(this, &other, sizeof *this) == 0;
  }
  [[nodiscard]] int begin_of(int d) const { return d == 0 ? 0 : end[static_cast<size_t>(d - 1)]; }
  [[nodiscard]] int end_of(int d) const { return end[static_cast<size_t>(d)]; }
  [[nodiscard]] int length(int d) const { return end_of(d) - begin_of(d); }
};
static_assert(sizeof(SearchState) == 24);

}  // namespace meshplan
