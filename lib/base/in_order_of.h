// Lists in the order of small numbers that their values have, in a few passes: n values, k numbers,
// O(n + k).
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace meshplan {

// Ascending by number_of(value), which is less than `numbers`; those of one number as they were.
template <class T, class NumberOf>
[[nodiscard]] std::vector<T> in_order_of(std::vector<T> values, size_t numbers,
                                         const NumberOf& number_of) {
  const auto less = [&](const T& a, const T& b) { return number_of(a) < number_of(b); };
  if (std::is_sorted(values.begin(), values.end(), less)) return values;
  std::vector<size_t> next(numbers + 1, 0);  // place of the next value, by number
  for (const T& value : values) ++next[number_of(value) + 1];
  for (size_t n = 1; n < next.size(); ++n) next[n] += next[n - 1];
  std::vector<T> ordered(values.size());
  for (T& value : values) ordered[next[number_of(value)]++] = std::move(value);
  return ordered;
}

}  // namespace meshplan
