#include "planner/zero_filled_sums.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"
#include "plan/op_table.h"
#include "planner/priced_steps.h"
#include "search/edge_steps.h"
#include "tensor/largest_elements.h"

namespace meshplan {
namespace {

// With more of them the others are left out: those of fewer mesh dims.
constexpr size_t most_choices = 16;

bool rounds(const Request& request) {
  return request.reduce_dtype && *request.reduce_dtype != request.tensor.dtype &&
         element_bytes(*request.reduce_dtype) <= element_bytes(request.tensor.dtype);
}

bool mixes_with_sums(const State& state) {
  return std::all_of(state.partial.begin(), state.partial.end(), [](const PendingSubAxis& p) {
    return p.sub_axis.size == 1 || may_mix(p.op, ReduceOp::sum);
  });
}

// How many mesh dims at the end of a list may be filled up: whole ones.
size_t fillable(const std::vector<SubAxis>& from, const std::vector<SubAxis>& to,
                std::span<const int64_t> mesh_sizes) {
  const auto common = static_cast<size_t>(
      std::mismatch(from.begin(), from.end(), to.begin(), to.end()).first - from.begin());
  size_t count = 0;
  while (count < from.size() - common) {
    const SubAxis& last = from[from.size() - 1 - count];
    if (last.size != mesh_sizes[static_cast<size_t>(last.mesh_dim)]) break;
    ++count;
  }
  return count;
}

// With the last mesh dim of a list pending in place of sharding.
State with_one_filled(State state, size_t dim) {
  const SubAxis last = state.shards[dim].back();
  state.shards[dim].pop_back();
  const auto behind = std::find_if(state.partial.begin(), state.partial.end(),
                                   [&](const PendingSubAxis& p) { return last < p.sub_axis; });
  state.partial.insert(behind, {last, ReduceOp::sum});
  return state;
}

}  // namespace

std::vector<State> zero_filled(const Request& request, std::span<const int64_t> mesh_sizes,
                               int64_t most_elements) {
  const State src = without_single_ranks(request.src);
  const State dst = without_single_ranks(request.dst);
  if (rounds(request) || !mixes_with_sums(src)) return {};
  std::vector<State> states{src};
  for (size_t d = 0; d < src.shards.size(); ++d) {
    const size_t most = fillable(src.shards[d], dst.shards[d], mesh_sizes);
    const size_t before = states.size();
    for (size_t i = 0; i < before; ++i) {
      State next = states[i];
      for (size_t count = 0; count < most; ++count) {
        next = with_one_filled(std::move(next), d);
        states.push_back(next);
      }
    }
  }
  states.erase(states.begin());
  std::erase_if(states, [&](const State& state) {
    return largest_elements(state, request.tensor.shape, mesh_sizes) > most_elements;
  });
  std::stable_sort(states.begin(), states.end(), [](const State& a, const State& b) {
    return a.partial.size() > b.partial.size();
  });
  if (states.size() > most_choices) states.resize(most_choices);
  return states;
}

std::vector<Step> filling_steps(const Request& request, const Mesh& mesh,
                                const State& contributions) {
  const std::vector<int64_t> sizes = mesh_shape(mesh);
  std::vector<Step> steps;
  State now = without_single_ranks(request.src);
  for (size_t d = 0; d < now.shards.size(); ++d) {
    while (now.shards[d].size() > contributions.shards[d].size()) {
      const SubAxis last = now.shards[d].back();
      Step step;
      step.op = Op::to_partial;
      step.mesh_dims = {last};
      step.state = with_one_filled(now, d);
      step.logical_shape = shape_apart(now, step.mesh_dims, request.tensor.shape, sizes);
      describe_change(now, mesh, step);
      step.why = filled(row_of(step.op).why,
                        {{"dims", mesh.dims[static_cast<size_t>(last.mesh_dim)].name}});
      now = step.state;
      steps.push_back(std::move(step));
    }
  }
  return steps;
}

std::optional<AuditFinding> zeros_save(const MeshTable& meshes, const Topology& topology,
                                       const PlannedRedistribution& planned, const State& filled,
                                       const PlannedRedistribution& by_sums) {
  auto found = surely_better(meshes, topology, planned, by_sums);
  if (!found) return std::nullopt;
  const std::vector<int64_t> sizes = mesh_shape(meshes.meshes[planned.request.src_mesh]);
  const bool has_sign = is_floating(planned.request.tensor.dtype);
  found->code = "A0411";
  found->kind = "zeros_save";
  found->message = "summed, each shard in a tensor of zeros, the plan takes " +
                   human_ns(ns_of_ps(found->better_predicted_ps)) + "; as planned " +
                   human_ns(ns_of_ps(found->predicted_ps)) + "; fill them up and ask from " +
                   to_text(filled, sizes) + " for its steps" +
                   (has_sign ? ", if -0.0 may become 0.0" : "");
  return found;
}

}  // namespace meshplan
