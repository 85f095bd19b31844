// The bytes of a collective from the two states it joins.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cost/exchange.h"
#include "cost/step_cost.h"
#include "tensor/state.h"

namespace meshplan {

struct StepFigures {
  int64_t input = 0;    // bytes of the largest box before
  int64_t output = 0;   // and after
  int64_t staging = 0;  // padded buffers where chunks do not lie one after the other
  int64_t wire = 0;     // received by one rank
  CollectiveBytes bytes;
};

// Figures of every op but exchange (price_exchange has its). `levels`: of the mesh that it runs on;
// `group`: ranks of the communicator.
[[nodiscard]] StepFigures step_figures(const State& before, const State& after,
                                       std::span<const int64_t> shape, const LevelMap& levels,
                                       Op op, int64_t group, int64_t element_bytes);

// The time by the finest tier that covers the step: measured tables, then protocols, then levels.
// `tier` says which.
[[nodiscard]] int64_t finer_ps(const Topology& topology, const std::vector<GroupShape>& shapes,
                               const CollectiveBytes& bytes, std::string& tier);

// price_step with the mesh's level map at hand.
[[nodiscard]] StepCost price_step_on(const LevelMap& levels, const StepQuestion& question);

// Bytes of an element on the way: a reduction may run in a type of its own.
[[nodiscard]] int64_t wire_element_bytes(const StepQuestion& question);

// The exchange that the question's step is. Points at what the question points at.
[[nodiscard]] ExchangeQuestion exchange_question(const LevelMap& levels,
                                                 const StepQuestion& question);

}  // namespace meshplan
