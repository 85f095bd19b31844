// What really ran beside what was planned, by group and op.
//
//     planned   layers.wq.gather x2: all_gather on tp, 4 MiB in
//     ran       all_gather on ranks 0-7, 4 MiB in: twice             as planned
//               all_gather on ranks 0-7, 8 MiB in: once              extra
//
// A collective is known by its group's ranks, its op and the bytes that the rank gives to it
// (padded or not, where shards are uneven). What is left over of one group and op on both sides has
// other sizes; what is left then is missing or extra. Order: plans list redistributions in the
// order in which a program first asks for them, so the first runs of a group's collectives must
// have it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/ran.h"
#include "plan/plan.h"

namespace meshplan {

// One line of the comparison: collectives of one group, op and size.
struct RanRow {
  std::string group;  // its id in the plan; the ranks where the plan has no such group
  Op op = Op::all_gather;
  int64_t in_bytes = 0;          // that one rank gives, as planned
  std::vector<std::string> ids;  // redistributions, in the order of the plan
  int64_t planned = 0;
  int64_t ran = 0;                   // as planned
  int64_t missing = 0;               // planned, not run
  int64_t extra = 0;                 // run, not planned
  std::vector<int64_t> other_sizes;  // in_bytes of those that ran in place of missing ones
  bool other_order = false;          // first run before what the plan has before it
  int64_t whole = 0;  // of `ran`: all_to_alls and reduce_scatters that gloo runs as an all_gather
                      // and an all_reduce
  int64_t predicted_ns = 0;      // of one
  std::vector<int64_t> took_ns;  // measured, of those that ran
};

struct RanComparison {
  RanDump dump;  // without its collectives
  std::vector<RanRow> rows;
  std::vector<std::pair<std::string, int64_t>> not_compared;  // barriers and the like, by name
};
[[nodiscard]] bool as_planned(const RanComparison& comparison);

// `times`: how often the program that was planned ran.
[[nodiscard]] RanComparison compare_ran(const Plan& plan, RanDump dump, int64_t times);
// A heading, a line a row and a summary.
[[nodiscard]] std::string to_text(const RanComparison& comparison);

}  // namespace meshplan
