// The text that nccl-tests' programs print (2.13 to 2.18): one log, or several in one file.
#pragma once

#include <map>

#include "measure/measured_file.h"

namespace meshplan {

// Whether a line is of such a log.
[[nodiscard]] bool is_nccl_log(std::string_view text);
// As read_measured; places are "FILE:LINE". What other programs print in between is passed over.
[[nodiscard]] Result<MeasuredFile> read_nccl_log(std::string_view text, const std::string& file);

// How many ranks of a group each of its hosts has.
using HostRanks = std::map<std::string, int64_t>;
// 0: they have different numbers.
[[nodiscard]] int64_t ranks_a_host(const HostRanks& group);
[[nodiscard]] int64_t all_ranks(const HostRanks& group);

}  // namespace meshplan
