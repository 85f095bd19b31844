// What really ran, read from what PyTorch writes: one dump a rank.
//
//     flight recorder, JSON     {"version": "2.9", "pg_config": {...}, "entries": [...]}
//     Kineto (torch.profiler)   {"traceEvents": [...]}
//     Chakra execution trace    {"schema": "1.1.1-chakra.0.0.4", "nodes": [...]}
//
// Of gloo's collectives only the flight recorder knows groups and sizes, and of their groups, in
// PyTorch 2.15, only the names.
//
// What it is not: for pickles of the flight recorder, which only Python reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/op_table.h"

namespace meshplan {

struct RanCollective {
  std::string name;            // as written: "nccl:_all_gather_base"
  std::optional<Op> op;        // none: nothing that a plan has, such as a barrier
  bool by_gloo = false;        // whose all_to_all of shards is an all_gather, and whose
                               // reduce_scatter is an all_reduce
  std::vector<int64_t> ranks;  // of its group, ascending; empty: not known
  std::string group_name;      // where they are not known: "mesh_tp", "default_pg"
  int64_t group_size = 0;      // 0: not known
  int64_t in_bytes = 0;
  int64_t out_bytes = 0;
  std::optional<int64_t> took_ns;
};

struct RanDump {
  std::string source;                      // the file
  std::string format;                      // "flight recorder 2.9"
  std::vector<RanCollective> collectives;  // in the order in which they were issued
  int64_t dropped = 0;                     // earlier ones that a full buffer has lost
};

// Errors (bad_input) name what is wrong and what is read.
[[nodiscard]] Result<RanDump> read_ran_dump(std::string_view text, const std::string& source);

}  // namespace meshplan
