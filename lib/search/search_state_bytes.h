// A state of a plan problem (search/search_state.h) as a few bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace meshplan {

constexpr int max_sub_axes = 12;
constexpr int max_search_dims = 8;

// An index from int arithmetic.
[[nodiscard]] constexpr size_t as_index(int i) { return static_cast<size_t>(i); }

// A state: list d is sub-axis[end[d-1] .. end[d]). Unused entries are 0, so that equal states are
// equal bytes.
struct SearchState {
  std::array<uint8_t, max_sub_axes> sub_axis{};
  std::array<uint8_t, max_search_dims> end{};
  uint16_t pending = 0;  // sub-axes pending with the source's op
  uint16_t made = 0;     // sub-axes pending with the target's op, by to_partial

  bool operator==(const SearchState& other) const {
    return std::memcmp(this, &other, sizeof *this) == 0;
  }
  [[nodiscard]] int begin_of(int d) const { return d == 0 ? 0 : end[static_cast<size_t>(d - 1)]; }
  [[nodiscard]] int end_of(int d) const { return end[static_cast<size_t>(d)]; }
  [[nodiscard]] int length(int d) const { return end_of(d) - begin_of(d); }
};
static_assert(sizeof(SearchState) == 24);

// Whether they cut the tensor alike, whatever is pending.
[[nodiscard]] inline bool same_lists(const SearchState& a, const SearchState& b) {
  constexpr size_t bytes = sizeof a.sub_axis + sizeof a.end;
  static_assert(offsetof(SearchState, sub_axis) == 0 && offsetof(SearchState, pending) == bytes);
  return std::memcmp(&a, &b, bytes) == 0;
}

// A list, how long it is, and the dim: four bits each.
[[nodiscard]] inline uint64_t list_key(const SearchState& s, int d) {
  static_assert(max_sub_axes <= 12 && max_search_dims <= 16);
  uint64_t key = 0;
  for (int i = s.begin_of(d); i < s.end_of(d); ++i) key = key << 4 | s.sub_axis[as_index(i)];
  return key << 8 | static_cast<uint64_t>(s.length(d)) << 4 | static_cast<uint64_t>(d);
}

}  // namespace meshplan
