#include "plan/shortcuts.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "plan/plan.h"

namespace meshplan {
namespace {

constexpr std::array<const char*, shortcut_kinds> names = {
    "work_budget",     "too_many_axes",   "parking_dims", "uneven_states",
    "padded_prices",   "frozen_prefixes", "few_aims",     "estimated_price",
    "few_landings",    "few_orders"};

}  // namespace


const char* to_text(Shortcut shortcut) { return names[static_cast<size_t>(shortcut)]; }

std::optional<Shortcut> parse_shortcut(std::string_view name) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (name == names[i]) return static_cast<Shortcut>(i);
  }
  return std::nullopt;
}

std::vector<std::string> names_of(Shortcuts shortcuts) {
  std::vector<std::string> list;
  for (size_t i = 0; i < names.size(); ++i) {
    if (shortcuts.has(static_cast<Shortcut>(i))) list.emplace_back(names[i]);
  }
  return list;
}

std::string to_text(Shortcuts shortcuts) {
  return shortcuts.none() ? "none" : join(names_of(shortcuts), ", ");
}

int64_t gap_ps(int64_t cost_ps, int64_t least_ps, int64_t printed_least_ps, Shortcuts shortcuts) {
  if (shortcuts.none()) return 0;
  const int64_t least = std::max(least_ps, printed_least_ps);
  const int64_t gap = std::max<int64_t>(0, cost_ps - least);
  // Below the nanosecond the gap may round up where cost and bound round to the same number.
  const int64_t printed = std::max<int64_t>(0, ns_of_ps(cost_ps) - ns_of_ps(printed_least_ps));
  return ns_of_ps(gap) > printed ? printed * 1000 : gap;
}

}  // namespace meshplan
