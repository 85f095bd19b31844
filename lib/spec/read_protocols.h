// Reads what a topology says of protocols: "model" and "protocols".
#pragma once

#include <span>
#include <vector>

#include "json/reader.h"
#include "plan/plan.h"
#include "plan/protocol.h"

namespace meshplan {

// `model` and `protocols`: the values of these keys of the topology at `index`, 0 where it lacks
// one; `levels`: its levels, none where they could not be read. Of the model "nccl", the old
// spelling, NCCL's own.
[[nodiscard]] std::vector<Protocol> read_protocols(Reader& reader, uint32_t index, uint32_t model,
                                                   uint32_t protocols,
                                                   std::span<const TopologyLevel> levels);

}  // namespace meshplan
