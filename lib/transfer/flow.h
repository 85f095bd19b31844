// Where the data of one step goes: from two stands (before, after) and the step, by exact boxes, for every rank.
//
// Nothing here asks a planner: a rank may take elements only from ranks that differ from it on the step's mesh dims, kept pending
// reductions apart. An element that nobody there holds, or a contribution that is missing, is an error that names rank, step and index.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"
#include "transfer/stand.h"

namespace meshplan {

enum class FlowForm : uint8_t {
  local,           // nobody talks
  all_gather,      // every member sends its box to all
  all_to_all,      // every member sends each other one its part
  reduce_scatter,  // every member sends each other one its chunk, chunks are reduced
  all_reduce,      // every member's box is reduced, all get the result
  send_receive,    // pairs
};

// An element block that a rank takes.
struct Take {
  int32_t from = 0;          // slot before
  int32_t contribution = 0;  // which part of the reduction (0 where nothing is reduced)
  bool fetched = false;      // in two phases: from what slot `from` has fetched, not from what it held
  Box box;
  bool operator==(const Take&) const = default;
};

struct SlotFlow {
  int32_t self = -1;           // slot before of the same rank; -1: none
  std::vector<int32_t> group;  // slots before, ascending by replay rank: the communicator (empty for local)
  bool identity = false;       // the new box starts from the identity (to_partial)
  std::vector<Take> takes;     // by contribution, then as listed; they tile the new box once for every contribution
};

// What a member of a host fetches for its neighbours in the first of two phases.
struct Fetch {
  int32_t from = 0;    // slot before that holds it
  int32_t member = 0;  // slot that fetches it
  Box box;
};

struct StepFlow {
  FlowForm form = FlowForm::local;
  std::vector<SlotFlow> slots;  // one a slot after
  std::vector<Fetch> fetches;   // two phases only
  std::optional<ReduceOp> reduce_op;
  int64_t contributions = 1;
  int64_t divisor = 1;  // after the reduction
};

struct FlowQuestion {
  const Stand* before = nullptr;
  const Stand* after = nullptr;
  const Step* step = nullptr;
  const RankTable* ranks = nullptr;
  const Topology* topology = nullptr;
  std::string place;  // "redistribution 'x', step 2": what errors start with
};
[[nodiscard]] Result<StepFlow> make_flow(const FlowQuestion& question);

}  // namespace meshplan
