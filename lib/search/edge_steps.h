// From edges of the search to steps of the plan document.
#pragma once

#include <vector>

#include "search/search.h"

namespace meshplan {

// `mesh_name` is written into every step where the redistribution crosses meshes; empty otherwise.
[[nodiscard]] std::vector<Step> steps_of_edges(const PlanProblem& p, const std::vector<Edge>& edges,
                                               const std::string& mesh_name);

// Fills src, dst, tensor_dim or moves of a step from the states around it.
void describe_change(const State& before, const Mesh& mesh, Step& step);

// Every mesh dim as an atom: what an exchange lists.
[[nodiscard]] std::vector<Atom> every_dim(const Mesh& mesh);

}  // namespace meshplan
