// What a plan claims in numbers, against what its own steps and states give.
//
//   figures   wire_bytes, peak_bytes and predicted_ns of every step and their totals, counted anew
//             (recount.h)
//   bounds    no plan receives or takes less than its own lower bounds; a gap is what lies between,
//             where something was left out, and else 0; less only where the work of a search ended
//   options   what the file was planned under: memory limit, rules, groups
//   notes     what warnings say is checked in warnings.h, what is said of other plans in
//             other_plans.h
//   the file  totals weighted by count; topology in range; ids once; flattened dims of meshes that
//             exist
//
// A file holds whole nanoseconds, each rounded up from picoseconds, and totals are sums of
// picoseconds rounded up once. Where every step's picoseconds were counted the totals are checked
// exactly, else within what the rounding allows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "verify/digits.h"

namespace meshplan::verification {

// "saves_ns is 5, the plan has 3": what a message says of two numbers.
[[nodiscard]] std::string numbers(const char* what, int64_t said, const char* where, int64_t is);

struct Figures {
  std::optional<int64_t> ps;          // of all steps; nullopt: not all were counted
  std::vector<std::string> left_out;  // figures that were not counted, with step and reason
};

// Where something is wrong: the step that it is about, or none.
struct WrongFigure {
  std::optional<size_t> step;
  std::string what;
};

// Of a redistribution whose states have been proven.
[[nodiscard]] std::optional<WrongFigure> check_figures(const Plan& plan,
                                                       const PlannedRedistribution& redistribution,
                                                       Figures& figures);

[[nodiscard]] std::optional<WrongFigure> check_options(const Plan& plan,
                                                       const PlannedRedistribution& redistribution);
[[nodiscard]] Problem check_bounds(const PlannedRedistribution& redistribution);
// Whether its gap comes of a bound that only the search knew.
[[nodiscard]] bool has_gap_of_its_own(const PlannedRedistribution& redistribution);

[[nodiscard]] Problem check_topology_numbers(const Topology& topology);
[[nodiscard]] Problem check_names(const Plan& plan);
// `ps`: of every redistribution, as counted, and `bundle_ps`: of every bundle. The members of a
// bundle take no time beside it.
using CountedTimes = std::vector<std::optional<int64_t>>;
[[nodiscard]] Problem check_file_times(const Plan& plan, const CountedTimes& ps,
                                       const CountedTimes& bundle_ps);

}  // namespace meshplan::verification
