#include <algorithm>

#include "layout/layout.h"

namespace meshplan {
namespace {

// A factor of an inner mode whose steps never carry from one outer digit into the next.
struct CutMode {
  int64_t size;
  // of one step, in the mixed radix of the outer layout, fastest first
  std::vector<int64_t> digits;
};

std::vector<int64_t> digits_of(const Layout& outer, int64_t index) {
  std::vector<int64_t> digits(outer.modes.size());
  for (size_t k = 0; k < digits.size(); ++k) {
    const int64_t radix = outer.modes[digits.size() - 1 - k].size;
    digits[k] = index % radix;
    index /= radix;
  }
  return digits;
}

// Number of steps from 0 before some digit would reach its radix.
int64_t carry_free_steps(const Layout& outer, const std::vector<int64_t>& digits) {
  int64_t steps = INT64_MAX;
  for (size_t k = 0; k < digits.size(); ++k) {
    const int64_t radix = outer.modes[digits.size() - 1 - k].size;
    if (digits[k] > 0) steps = std::min(steps, (radix - 1) / digits[k] + 1);
  }
  return steps;
}

}  // namespace

Result<Layout> composition(const Layout& outer_layout, const Layout& inner_layout) {
  const Layout outer = coalesce(outer_layout);
  const Layout inner = coalesce(inner_layout);
  if (cosize(inner) > size(outer)) {
    return bad_input("cannot compose " + to_text(outer_layout) + " with " + to_text(inner_layout) +
                     ": it has " + std::to_string(size(outer)) + " elements, element " +
                     std::to_string(cosize(inner) - 1) + " is requested");
  }
  const auto carries = [&] {
    return bad_input(
        "cannot compose " + to_text(outer_layout) + " with " + to_text(inner_layout) +
        ": a mode of the second crosses from one mode of the first into the next, so the result is not a layout");
  };
  std::vector<CutMode> cuts;
  for (const Mode& mode : inner.modes) {
    const size_t begin = cuts.size();
    int64_t left = mode.size;
    int64_t step = mode.stride;
    while (left > 1) {
      std::vector<int64_t> digits = digits_of(outer, step);
      const int64_t taken = std::min(left, carry_free_steps(outer, digits));
      if (left % taken != 0) return carries();
      cuts.push_back({taken, std::move(digits)});
      left /= taken;
      step *= taken;
    }
    std::reverse(cuts.begin() + static_cast<std::ptrdiff_t>(begin), cuts.end());  // outermost first
  }
  // If the largest digits of all cuts sum to less than the radix, nothing carries, and the offset
  // of a sum is the sum of the offsets.
  for (size_t k = 0; k < outer.modes.size(); ++k) {
    int64_t room = outer.modes[outer.modes.size() - 1 - k].size - 1;
    for (const CutMode& cut : cuts) {
      room -= (cut.size - 1) * cut.digits[k];
      if (room < 0) return carries();
    }
  }
  Layout result;
  for (const CutMode& cut : cuts) {
    int64_t stride = 0;
    for (size_t k = 0; k < cut.digits.size(); ++k)
      stride += cut.digits[k] * outer.modes[cut.digits.size() - 1 - k].stride;
    result.modes.push_back({cut.size, stride});
  }
  return coalesce(result);
}

}  // namespace meshplan
