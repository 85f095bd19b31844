// Who holds what between two steps, over every copy of the mesh.
//
// Replay ranks number the world's global ids in ascending order: 0..world-1. Process i of an MPI or NCCL run plays replay rank i. A slot is
// one rank of one copy of the mesh: slot = copy * mesh size + row-major index.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "mesh/mesh.h"
#include "plan/plan.h"
#include "tensor/box.h"

namespace meshplan {

struct RankTable {
  std::vector<int64_t> global_ids;   // replay rank -> global id, ascending
  std::vector<int32_t> of_position;  // position in the rank map -> replay rank
};
[[nodiscard]] RankTable make_rank_table(const Universe& universe);
// The same where so many ranks are there; else an error (environment), before anything is made of all of them.
[[nodiscard]] Result<RankTable> rank_table_within(const Universe& universe, int64_t there);

struct Stand {
  const Mesh* mesh = nullptr;
  std::vector<int64_t> mesh_shape;
  std::vector<int64_t> shape;  // of the tensor
  State state;
  int64_t copies = 1;
  int64_t size = 1;            // ranks of one copy
  std::vector<int32_t> ranks;  // slot -> replay rank
  std::vector<Box> boxes;      // index in the mesh -> box (the same in every copy)
};
// `copies`: how many copies of the mesh take part, from copy 0 on.
[[nodiscard]] Stand make_stand(const Mesh& mesh, const State& state, std::vector<int64_t> tensor_shape, int64_t copies,
                               const RankTable& ranks);
[[nodiscard]] inline const Box& box_of_slot(const Stand& stand, int64_t slot) {
  return stand.boxes[static_cast<size_t>(slot % stand.size)];
}

// A set of parts of mesh dims, as digits of a row-major index.
//
// The digits of the atoms of index i, at their places: part(i). Two ranks differ only on the atoms when i - part(i) is the same.
class DigitSet {
 public:
  DigitSet(std::vector<Atom> atoms, std::vector<int64_t> mesh_shape);
  [[nodiscard]] int64_t part(int64_t index) const;
  [[nodiscard]] int64_t size() const { return size_; }  // how many values the digits take
  [[nodiscard]] const std::vector<Atom>& atoms() const { return atoms_; }

 private:
  std::vector<Atom> atoms_;
  std::vector<int64_t> mesh_shape_;
  std::vector<int64_t> strides_;
  int64_t size_ = 1;
};

// The atoms of `a` without those parts that `b` has too; atoms of size 1 vanish. Error where parts of one mesh dim overlap without nesting.
[[nodiscard]] Result<std::vector<Atom>> atoms_without(const std::vector<Atom>& a, const std::vector<Atom>& b,
                                                      const std::vector<int64_t>& mesh_shape);
[[nodiscard]] std::vector<Atom> partial_atoms(const State& state);
[[nodiscard]] std::vector<Atom> shard_atoms(const State& state);

}  // namespace meshplan
