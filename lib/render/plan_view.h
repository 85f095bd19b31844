// Shared by all renderings of a plan: rows of steps, totals, and the plan without merging.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cost/step_cost.h"
#include "plan/plan.h"
#include "render/table.h"

namespace meshplan {

enum class Detail : uint8_t { summary, changes, full };

struct ShowOptions {
  Detail detail = Detail::changes;
  bool costs = true;  // false: no predicted times
  // the most expensive ones, the others in one line; 0: all in the order of the file
  int64_t top = 0;
  std::string totals_note{};  // what stands behind the line of totals
  int64_t width = 0;          // columns; 0: as wide as it is
  bool unicode = true;
  bool color = false;
};

// What cost/step_cost.h asks about step `index`. The plan must outlive it.
[[nodiscard]] StepQuestion step_question(const Plan& plan,
                                         const PlannedRedistribution& redistribution, size_t index);
// "all_reduce", "exchange, 2 phases"
[[nodiscard]] std::string step_name(const Step& step);
// "sum, then x 1/8": what a step does to values beside moving them; "" for nothing.
[[nodiscard]] std::string step_arithmetic(const Step& step);

// "bfloat16[32, 8192]"
[[nodiscard]] std::string tensor_text(const TensorMeta& tensor);
// "S(0)R -> RR", with mesh names where the redistribution crosses meshes.
[[nodiscard]] std::string change_text(const Plan& plan,
                                      const PlannedRedistribution& redistribution);
// "wq x32  bfloat16[32, 8192]  S(0)R -> RR"
[[nodiscard]] std::string redistribution_title(const Plan& plan,
                                               const PlannedRedistribution& redistribution);
// "layers.0.wq, train.py:31; _NormPartial(2) on dp": what its notes say; "" for nothing.
[[nodiscard]] std::string notes_text(const Plan& plan, const PlannedRedistribution& redistribution);
// A time in picoseconds as people read it: "4.56 ms".
[[nodiscard]] std::string time_text(int64_t ps);
// "dp 2 x tp 8, 16 ranks", with their ids where the plan has several universes.
[[nodiscard]] std::string mesh_text(const Plan& plan, const Mesh& mesh);

// Indices of the redistributions to show one by one: all, or the `top` most expensive by
// count-weighted time, then bytes, in that order.
[[nodiscard]] std::vector<size_t> chosen_redistributions(const Plan& plan,
                                                         const ShowOptions& options);

// Of each of `chosen` the first of them that it repeats (plan/firsts.h), its own index where it
// repeats none.
[[nodiscard]] std::vector<size_t> repeated_by(const Plan& plan, const std::vector<size_t>& chosen);

// One row a step, a heading a redistribution; one that repeats another names it in place of rows.
[[nodiscard]] Table step_table(const Plan& plan, const ShowOptions& options);
// One row a redistribution, then the others and the total.
[[nodiscard]] Table summary_table(const Plan& plan, const ShowOptions& options);
// "47 collectives (61 unmerged), 4.12 GiB received by a rank (4.13 GiB unmerged, at least 2.95
// GiB), 45.0 ms predicted (at least 31.2 ms)"
[[nodiscard]] std::string summary_line(const Plan& plan, const ShowOptions& options);
// What is said below the steps: what was asked for when planning (--audit, --alternatives), and
// with --detail full how reductions run and how far the search went.
[[nodiscard]] std::vector<std::string> notes_below(const PlannedRedistribution& r, Detail detail);

// What the audit found in sum, counts included; none where it found nothing of the kind.
// "PyTorch's own plans move 1.2 GiB more a rank and take 9.30 ms longer (A0408, 22
// redistributions)"
// "split mesh dims would save 14.7 ms (A0409, 2 redistributions)"
// "the memory limit costs 47.1 us (A0410, 1 redistribution)"
// "sums of zero-filled shards would save 878 us (A0411, 1 redistribution)"
[[nodiscard]] std::vector<std::string> audit_lines(const Plan& plan, const ShowOptions& options);
// "planner greedy, rules dtensor, groups declared"
[[nodiscard]] std::string planning_line(const Plan& plan);

}  // namespace meshplan
