// Sets of mesh dims that collectives may run on as one, if they are declared flattened.
//
//     mesh data 2 x fsdp 4 x tensor 8, data_fsdp declared     not declared: data_tensor,
//                                                             fsdp_tensor, data_fsdp_tensor
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mesh/mesh_table.h"
#include "plan/plan.h"

namespace meshplan {

// Mesh dims in mesh order.
using DimSet = std::vector<size_t>;

// Those of more than one rank.
[[nodiscard]] std::vector<size_t> wide_dims(const Mesh& mesh);
// Sets of two wide dims or more; none of a mesh of more than 12 of them.
[[nodiscard]] std::vector<DimSet> sets_of_dims(const Mesh& mesh);
// Those of them that can be declared and are not.
[[nodiscard]] std::vector<DimSet> undeclared_sets(const MeshTable& meshes, const Mesh& mesh);

// Declares dims flattened, in the order given, under their names, with "_" behind them where
// another set has that name. Returns the name; none: no name is free.
std::optional<std::string> declare_set(MeshTable& meshes, const std::string& mesh,
                                       const std::vector<std::string>& dims);
std::optional<std::string> declare_set(MeshTable& meshes, const Mesh& mesh, const DimSet& set);

// Whether the step is a collective over a group of mesh dims.
[[nodiscard]] bool runs_on_group(const Step& step);
// The mesh dims of its group.
[[nodiscard]] DimSet dims_of(const Step& step);
// Whether the step runs as things are declared: it is no collective on several dims of the mesh, or
// these are declared flattened.
[[nodiscard]] bool runs_as_declared(const MeshTable& meshes, const Mesh& mesh, const Step& step);

}  // namespace meshplan
