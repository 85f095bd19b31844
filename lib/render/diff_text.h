// A diff for people: on a terminal and in a pull request.
#pragma once

#include <cstdint>
#include <string>

#include "diff/diff.h"
#include "render/plan_view.h"

namespace meshplan {

// "8.00 MiB -> 12.0 MiB (+4.00 MiB, +50.0 %), 10.0 us -> 12.0 us (+2.00 us, +20.0 %)"; of what was
// added or removed, its own figures.
[[nodiscard]] std::string diff_figures(const RedistributionDiff& redistribution, bool costs);
// "layers.0.wq, train.py:31": who asks for it; "" where that is not noted.
[[nodiscard]] std::string diff_place(const RedistributionDiff& redistribution);
// By how much its count-weighted predicted time differs, in picoseconds, up or down: how changes
// are ranked.
[[nodiscard]] int64_t diff_weight(const RedistributionDiff& redistribution);

// Empty for equal plans. Detail summary: the totals; changes: each redistribution with its causes
// and the steps that differ; full: with the steps that do not.
[[nodiscard]] std::string render_diff_text(const PlanDiff& diff, const ShowOptions& options);

constexpr size_t markdown_limit = 65'000;  // characters; GitHub refuses comments above 65,536
// The marker by which a comment is found again.
constexpr std::string_view markdown_marker = "<!-- meshplan-diff -->";

// A comment for a pull request: headline, table, details folded; never above `limit` characters:
// details go first, then rows of the table, and what is left out is said.
[[nodiscard]] std::string render_diff_markdown(const PlanDiff& diff, const ShowOptions& options,
                                               size_t limit = markdown_limit);

}  // namespace meshplan
