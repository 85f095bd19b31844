// The transfers of a bundle as CSV and JSON, round by round, for programs that execute them. The
// columns: schemas/transfers.schema.json.
//
//     round 1, wave 1     w tensor 2, step 0: rank 0 sends [0:4] to 5, from byte 32 of its message
#pragma once

#include <cstdint>
#include <optional>

#include "base/text_sink.h"
#include "plan/plan.h"

namespace meshplan {

struct BundleTransfersQuestion {
  const PlannedBundle* bundle = nullptr;  // of the plan
  std::optional<int64_t> rank;            // only what this rank sends, receives or keeps
};

// Rows are ordered by round, part in the order of packing, tensor, receiver, contribution, sender
// and box. Local steps stand before the round that needs them, those behind the last round at the
// end. The transfers of a few steps exist in memory at a time, and one offset for each pair of
// ranks, whatever the bundle.
[[nodiscard]] Status write_bundle_transfers_csv(const Plan& plan,
                                                const BundleTransfersQuestion& question,
                                                const TextSink& sink);
[[nodiscard]] Status write_bundle_transfers_json(const Plan& plan,
                                                 const BundleTransfersQuestion& question,
                                                 const TextSink& sink);

}  // namespace meshplan
