// The transfers of a plan as CSV and JSON, for programs that execute them and people who ask where
// data comes from. The columns: schemas/transfers.schema.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/text_sink.h"
#include "plan/plan.h"

namespace meshplan {

struct TransfersQuestion {
  std::vector<std::string> ids;  // only these redistributions, each in the plan; empty: all
  std::optional<int64_t> rank;   // only what this rank sends, receives or keeps, by global id
};

// The transfers of one step at a time exist in memory, whatever the plan. A redistribution that
// repeats one listed before it is not listed again: it names that one.
[[nodiscard]] Status write_transfers_csv(const Plan& plan, const TransfersQuestion& question,
                                         const TextSink& sink);
[[nodiscard]] Status write_transfers_json(const Plan& plan, const TransfersQuestion& question,
                                          const TextSink& sink);

}  // namespace meshplan
