// `meshplan check` of one spec: whether it can be planned, its committed plan is current, budgets
// are met, and its program still does what it says (--record).
#pragma once

#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/context.h"

namespace meshplan {

// One spec with its committed plan, and the result.
struct CheckItem {
  std::string spec;   // empty: there is none, the plan stands alone
  std::string plan;   // empty: none
  std::string flags;  // " --planner greedy": flags to plan it again
  int code = 0;
  std::string result;             // one line
  std::string detail;             // what differs
  std::vector<std::string> said;  // what a program printed that could not be recorded
  Diagnostics diagnostics;
};

// Items may be checked in several threads, but for --record.
void check_item(Context& context, const Arguments& arguments, CheckItem& item);

}  // namespace meshplan
