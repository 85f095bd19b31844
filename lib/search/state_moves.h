// Collectives and slices between listed states, by both of their ends.
#pragma once

#include <cstdint>
#include <vector>

#include "search/search.h"

namespace meshplan {

// The number of a state, and of one of the moves from it.
struct StateMove {
  uint32_t from = 0;
  uint32_t number = 0;
};

struct StateMoves {
  std::vector<std::vector<Edge>> from;          // by where they begin; priced where one was asked
  std::vector<std::vector<uint32_t>> leads_to;  // the states that these lead to
  std::vector<std::vector<StateMove>> to;       // by where they lead
  std::vector<std::vector<uint32_t>> finer;     // the states that one slice leads to
  std::vector<std::vector<uint32_t>> coarser;   // and those that one leads there from
};

}  // namespace meshplan
