// What a search left out that a cheaper plan might have been among: completeness as a value.
//
//     nothing left out    the plan is proven: no plan of the moves is cheaper, the gap is 0
//     {work_budget}       the plan is the best one seen; its gap is its cost above the best bound
//
// Whatever prunes, caps, estimates or stops without a proof that the optimum survives says so here,
// and nowhere else is anything concluded from it: `gap_ps` is the one place that does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshplan {

enum class Shortcut : uint8_t {
  work_budget,    // the work that a question may take was used up
  too_many_axes,  // more mesh or tensor dims, or parts of them, than a search holds
  parking_dims,   // tensor dims that neither end shards, and that shards could rest on, left out
  // The next three stand in plans of earlier versions only, which are still read.
  uneven_states,    // states that cut a tensor dim unevenly left out
  padded_prices,    // exchanges priced on extents rounded up
  frozen_prefixes,  // shards that lead both ends' orders kept in place, with uneven extents
  few_aims,         // exchanges aimed only at states near the two ends
  estimated_price,  // an exchange priced by an estimate
  few_landings,     // across meshes: only some states tried on either side of the crossing
  few_orders,       // only some of the orders that "dst_order": "any" allows
  for_bundle,       // planned for its bundle, not for itself
  made_sums,  // contributions made on the way and reduced again, as rules do that beat the search
};
constexpr int shortcut_kinds = 12;
[[nodiscard]] const char* to_text(Shortcut shortcut);
[[nodiscard]] std::optional<Shortcut> parse_shortcut(std::string_view name);

class Shortcuts {
 public:
  void add(Shortcut shortcut) { bits_ |= uint32_t{1} << static_cast<int>(shortcut); }
  void add(Shortcuts others) { bits_ |= others.bits_; }
  [[nodiscard]] bool has(Shortcut shortcut) const {
    return (bits_ >> static_cast<int>(shortcut) & 1) != 0;
  }
  // Whether nothing was left out.
  [[nodiscard]] bool none() const { return bits_ == 0; }
  bool operator==(const Shortcuts&) const = default;

 private:
  uint32_t bits_ = 0;
};
[[nodiscard]] std::vector<std::string> names_of(Shortcuts shortcuts);
// "work_budget, few_aims"; "none".
[[nodiscard]] std::string to_text(Shortcuts shortcuts);

// How far `cost_ps` may be above the optimum. Law, in nanoseconds as printed: 0 where nothing was
// left out or `least_ps` is the cost; where the work alone ended no more than the cost less the
// printed bound; else just that, so that a reader can count it anew.
[[nodiscard]] int64_t gap_ps(int64_t cost_ps, int64_t least_ps, int64_t printed_least_ps,
                             Shortcuts shortcuts);

}  // namespace meshplan
