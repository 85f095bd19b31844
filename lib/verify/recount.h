// The figures of one step, counted anew from the two states that it joins.
//
//   wire_bytes  what one rank receives, the most of any rank, padding included; g ranks in a group
//               all_gather       (g - 1) x the largest box before
//               reduce_scatter   (g - 1) x the largest box after
//               all_to_all       (g - 1) x the largest piece of a pair
//               all_reduce       2 (g - 1) / g x the largest box, rounded up
//               exchange         what is really received (recount_exchange.h)
//   peak_bytes  largest box before + largest box after + staging: the padded buffer of a gather or
//               scatter whose chunks do not lie one after the other (of a scatter: by ascending
//               rank), both padded buffers of an all_to_all, what is received and sent in an
//               exchange
//   time        traffic.h, over the most expensive group
//
// Elements on the way have the width of the reduce dtype where the step reduces. What cannot be
// counted within a stated bound of work is left out and said: nothing is estimated.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "plan/plan.h"
#include "verify/group_time.h"

namespace meshplan::verification {

struct StepView {
  const Plan* plan = nullptr;
  const Mesh* src_mesh = nullptr;
  const Mesh* dst_mesh = nullptr;  // another mesh where the step crosses meshes
  const TensorMeta* tensor = nullptr;
  std::optional<DType> reduce_dtype;
  const State* before = nullptr;
  const Step* step = nullptr;
};

struct Counted {
  std::optional<int64_t> wire_bytes;
  std::optional<int64_t> peak_bytes;
  // nullopt too where a finer tier than levels prices the step: an exchange takes no less than the
  // levels say, a collective between two points of a measured table what lies in a narrow range.
  std::optional<int64_t> ps;
  std::optional<int64_t> least_ps;
  std::optional<int64_t> most_ps;
  std::string left_out;  // why, where something was not counted
  std::string wrong;     // what no step with these states can have; then nothing is counted
};

[[nodiscard]] Counted recount(const StepView& view);

// What a collective moves in a group of several ranks, and what a rank packs for it.
struct Collective {
  Moved moved;
  int64_t wire = 0;
  int64_t staging = 0;
};
[[nodiscard]] Collective collective_of(const StepView& view);
// How long collectives take that run on the groups of the step and together move so much: on the
// slowest of them. nullopt: there are too many groups to look at one by one.
[[nodiscard]] std::optional<TimeRange> time_of_groups(const StepView& view, const Moved& moved);

// The levels on which ranks of a group meet.
[[nodiscard]] std::optional<std::set<size_t>> levels_of_groups(const StepView& view);

// Bytes of an element on the way.
[[nodiscard]] int64_t moved_element_bytes(const StepView& view);
// Bytes of the largest box of a state.
[[nodiscard]] int64_t largest_bytes(const State& state, std::span<const int64_t> shape,
                                    std::span<const int64_t> mesh_shape, int64_t element_bytes);

}  // namespace meshplan::verification
