// The numbers that a plan says in words: every one of them must be one that its data has.
//
//     gathers the shards over tp into one collective of 4 ranks     said: "over tp", "4 ranks"
//
// Words are not compared: a sentence may be put in any way as long as whatever digits stand in it
// are part of something that the data says.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "verify/digits.h"

namespace meshplan::verification {

// Problem: digits of the text that are part of none of what may be said. What may be said is not
// found inside a longer number: "4 ranks" is not in "14 ranks".
[[nodiscard]] Problem check_numbers(std::string_view text, const std::vector<std::string>& said);

// "4 ranks", "1 rank".
[[nodiscard]] std::string counted_noun(int64_t n, const std::string& noun);

// Why each step is there: its mesh dims, tensor dims and ranks, the steps it stands for, what it
// divides by, and what its mesh dims become in the end. The states must have been checked.
[[nodiscard]] Problem check_reason(const PlannedRedistribution& redistribution, const Step& step,
                                   std::span<const std::string> dim_names,
                                   std::span<const int64_t> mesh_shape);

}  // namespace meshplan::verification
