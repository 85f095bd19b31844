// From edges of the search to steps of the plan document.
#pragma once

#include <span>
#include <vector>

#include "search/search.h"

namespace meshplan {

// `mesh_name` is written into every step where the redistribution crosses meshes; empty otherwise.
[[nodiscard]] std::vector<Step> steps_of_edges(const PlanProblem& p, const std::vector<Edge>& edges,
                                               const std::string& mesh_name);

// Fills src, dst, tensor_dim or moves of a step from the states around it.
void describe_change(const State& before, const Mesh& mesh, Step& step);

// The tensor narrowed, at coordinate 0, by what these mesh dims do not touch: the logical shape of
// a step over them from that state.
[[nodiscard]] std::vector<int64_t> shape_apart(const State& state,
                                               const std::vector<SubAxis>& mesh_dims,
                                               std::vector<int64_t> shape,
                                               std::span<const int64_t> mesh_sizes);

// Why an exchange on one mesh is fetched by all.
inline constexpr const char* fetched_by_all_reason =
    "lets all ranks of each host share the fetching of what it misses over its slow links, once, "
    "then shares it inside the host";

}  // namespace meshplan
