// What ranks of a mesh hold or want in a state, as one side of an exchange.
//
//     2 x 2, [8], S(0)R      ranks 0 1: [0:4], ranks 2 3: [4:8]
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "mesh/mesh.h"
#include "transfer/exchange_ranks.h"
#include "transfer/sub_axes.h"

namespace meshplan {

// The coordinates of ranks of a mesh on a list of sub-axes as one number: the exchanges of one
// question ask for few lists. One mesh alone.
class NumbersOnLists {
 public:
  // Calls visit(i, number) for the i-th of these indices in the mesh.
  template <class Visitor>
  void visit(const Mesh& mesh, const std::vector<SubAxis>& list, std::span<const int64_t> indices,
             Visitor&& visit) {
    // Of few ranks each is asked for itself.
    if (static_cast<int64_t>(indices.size()) < mesh_size(mesh) / 4) {
      const CoordinatesOn on(list, mesh_shape(mesh));
      for (size_t i = 0; i < indices.size(); ++i)
        visit(i, static_cast<int32_t>(on.number(indices[i])));
      return;
    }
    const std::vector<int32_t>& numbers = of(mesh, list);
    for (size_t i = 0; i < indices.size(); ++i) visit(i, numbers[static_cast<size_t>(indices[i])]);
  }

 private:
  // Of every rank, by index in the mesh.
  const std::vector<int32_t>& of(const Mesh& mesh, const std::vector<SubAxis>& list);
  std::map<std::vector<SubAxis>, std::vector<int32_t>> known_;
  size_t numbers_ = 0;
};

// Ranks of a mesh, by index in it. `ids`: theirs, ascending. `numbers`: of the mesh.
[[nodiscard]] SideBoxes side_of(const Mesh& mesh, const State& state,
                                std::span<const int64_t> shape, const std::vector<SubAxis>& reduced,
                                std::span<const int64_t> indices, std::vector<int64_t> ids,
                                NumbersOnLists& numbers);

// All ranks of the first copy.
[[nodiscard]] SideBoxes whole_side(const Mesh& mesh, const State& state,
                                   std::span<const int64_t> shape,
                                   const std::vector<SubAxis>& reduced);

}  // namespace meshplan
