// The bundles of a plan file.
//
//     {"alone_ns": 702000, "count": 1, "id": "sync", "max_messages": 1024,
//      "max_staging_bytes": 2147483648, "members": ["w1", "w2"], "proven_gap_ns": 0, "rounds": [
//       {"group": "train+serve", "messages": 16, "op": "exchange",
//        "parts": [{"id": "w1", "step": 0, "to": 3}, ...], "predicted_ns": ..., ...}], ...}
//
// Of 64 members and more that stand in the file behind one another the first and the last are
// named: {"id": "layers.0.w1", "through": "layers.60.w1"}.
//
// Left out where they are usual: "after" (nothing), "stream" (0), and of a part "from" (0), "to"
// (the count of its member), "piece" and "pieces" (0 of 1).
#pragma once

#include <vector>

#include "json/value.h"
#include "json/write.h"
#include "plan/plan.h"

namespace meshplan {

// The value of "bundles".
void write_bundles(JsonWriter& writer, const Plan& plan);
// Throws Unreadable. Every index is in range: members, steps, tensors, rounds before; nothing else
// is checked (verify/bundle.h).
[[nodiscard]] std::vector<PlannedBundle> read_bundles(
    const Value& value, const std::vector<PlannedRedistribution>& redistributions);

}  // namespace meshplan
