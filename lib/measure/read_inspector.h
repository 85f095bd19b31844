// NCCL Inspector's records, one JSON object a line (output format 4.0).
//
//     {"header": {"id": "0x7f8c", "rank": 2, "n_ranks": 8, "nnodes": 1}, "metadata": {...},
//      "coll_perf": {"coll": "AllReduce", "coll_sn": 1407, "coll_msg_size_bytes": 17179869184,
//                    "coll_exec_time_us": 61974, "coll_timing_source": "kernel_gpu", ...}}
//
// The message of AllGather and ReduceScatter is one rank's; nccl-tests' size is that of all ranks.
#pragma once

#include "measure/measured_file.h"

namespace meshplan {

// Whether the first line is of such a file.
[[nodiscard]] bool is_inspector(std::string_view text);
// As read_measured; places are "FILE:LINE".
[[nodiscard]] Result<MeasuredFile> read_inspector(std::string_view text, const std::string& file);

}  // namespace meshplan
