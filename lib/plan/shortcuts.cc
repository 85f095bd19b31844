#include "plan/shortcuts.h"

#include <algorithm>

#include "base/enum_names.h"
#include "base/text.h"
#include "plan/plan.h"

namespace meshplan {
namespace {

constexpr EnumNames<Shortcut, shortcut_kinds> names{
    {"work_budget", "too_many_axes", "parking_dims", "uneven_states", "padded_prices",
     "frozen_prefixes", "few_aims", "estimated_price", "few_landings", "few_orders", "for_bundle",
     "made_sums"}};

Shortcuts work_alone() {
  Shortcuts alone;
  alone.add(Shortcut::work_budget);
  return alone;
}

}  // namespace

const char* to_text(Shortcut shortcut) { return names[shortcut]; }

std::optional<Shortcut> parse_shortcut(std::string_view name) { return names.parse(name); }

std::vector<std::string> names_of(Shortcuts shortcuts) {
  std::vector<std::string> list;
  for (size_t i = 0; i < shortcut_kinds; ++i) {
    const auto shortcut = static_cast<Shortcut>(i);
    if (shortcuts.has(shortcut)) list.emplace_back(names[shortcut]);
  }
  return list;
}

std::string to_text(Shortcuts shortcuts) {
  return shortcuts.none() ? "none" : join(names_of(shortcuts), ", ");
}

int64_t gap_ps(int64_t cost_ps, int64_t least_ps, int64_t printed_least_ps, Shortcuts shortcuts) {
  const int64_t gap = cost_ps - std::max(least_ps, printed_least_ps);
  if (shortcuts.none() || gap <= 0) return 0;
  const int64_t printed_ns = std::max<int64_t>(0, ns_of_ps(cost_ps) - ns_of_ps(printed_least_ps));
  if (shortcuts != work_alone()) return printed_ns * 1000;
  // Below the nanosecond the gap may round up where cost and bound round to the same number.
  return std::min(gap, printed_ns * 1000);
}

}  // namespace meshplan
