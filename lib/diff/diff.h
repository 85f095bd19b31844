// The semantic difference of two plans: order and formatting are ignored.
//
//     old  grads x32   all_reduce on dp_tp    new  grads x32   all_reduce on tp, all_reduce on dp
//     ->   dearer; "flatten dp_tp is no longer declared"; - all_reduce on dp_tp; + all_reduce on tp; + all_reduce on dp
//
// Redistributions are matched by id, those left over by content and count (then one was renamed),
// what is left then by its question alone (then it moved); steps by content. Notes are not
// compared. Every change has its cause, if it is visible in the request, the declarations of the
// file, the options, or what the plans were asked to list beside.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace meshplan {

// Ascending: the severity of a file is the highest of its parts.
enum class DiffSeverity : uint8_t {
  none,
  cosmetic,  // names, texts or declarations; the same cost
  cheaper,   // less predicted time, count-weighted, or at equal time fewer bytes
  dearer,    // more
  numerics,  // a reduction's order, nesting or dtype changed: results may differ in the last bits
};
[[nodiscard]] const char* to_text(DiffSeverity severity);  // "none", ..., "numerics-changing"

// renamed: the same under another id; moved: the same question under another id, while its count or
// its steps changed, too.
enum class DiffKind : uint8_t { changed, added, removed, renamed, moved };
[[nodiscard]] const char* to_text(DiffKind kind);

// A line of the comparison of steps.
struct StepDiff {
  enum class Kind : uint8_t { same, added, removed, moved };
  Kind kind = Kind::same;
  std::string text;  // "all_reduce sum on dp_tp, 16 ranks: 8 B, 10.5 us"
};
[[nodiscard]] const char* to_text(StepDiff::Kind kind);

struct RedistributionDiff {
  std::string id;
  std::string old_id;  // if renamed
  DiffKind kind = DiffKind::changed;
  DiffSeverity severity = DiffSeverity::cosmetic;
  int64_t old_count = 0;
  int64_t new_count = 0;
  std::optional<Totals> old_totals;  // count-weighted
  std::optional<Totals> new_totals;
  // The bundle that it moves with in both plans: the figures are those of it by itself, and
  // those of the bundle decide; "": none.
  std::string bundle;
  std::string old_trace;
  std::string new_trace;
  // The module and the line that ask for it, as the new plan notes them, or the old one where it is
  // gone; "": not noted.
  std::string module;
  std::string source;
  std::vector<std::string> causes;
  std::vector<StepDiff> steps;  // empty if the steps are the same
  std::string numerics;         // "reduced in 2 collectives (tp, then dp), was 1 (dp and tp)"
};

struct WarningDiff {
  std::string code;
  std::string id;  // of the redistribution
  std::string message;
};

struct PlanDiff {
  DiffSeverity severity = DiffSeverity::none;
  // differences in meshes, flattens, topology, options, bundles
  std::vector<std::string> declarations;
  // in the order of the new plan, then removed ones
  std::vector<RedistributionDiff> redistributions;
  std::vector<WarningDiff> new_warnings;
  std::vector<WarningDiff> gone_warnings;
  size_t compared = 0;  // redistributions of the new plan
  Totals old_totals;
  Totals new_totals;
  std::string old_digest;
  std::string new_digest;
};
[[nodiscard]] inline bool same(const PlanDiff& diff) { return diff.severity == DiffSeverity::none; }

// Law: same(diff_plans(p, p)); severity none exactly where both plans have the same canonical
// content, the spec's digest apart.
[[nodiscard]] PlanDiff diff_plans(const Plan& old_plan, const Plan& new_plan);

// More predicted time, or at equal time more bytes; with `percent`, by more than that.
[[nodiscard]] bool costs_more(const Totals& old_totals, const Totals& new_totals,
                              int64_t more_than_percent = 0);

// "+1.5 ms, +2.2 %": the increase from `before` to `after`, with tenths of a percent; "" if equal.
[[nodiscard]] std::string percent_text(int64_t before, int64_t after);

// Conditions of `--fail-on` and `--only-if`: "slower", "slower=5%", "numerics", "warnings", "any".
[[nodiscard]] bool holds(const PlanDiff& diff, const std::string& condition);

// {"schema": "meshplan/diff/1", ...}; `failed`: whether a condition of --fail-on holds.
[[nodiscard]] std::string diff_json(const PlanDiff& diff, bool failed);

}  // namespace meshplan
