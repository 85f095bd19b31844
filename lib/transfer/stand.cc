#include "transfer/stand.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace meshplan {

RankTable make_rank_table(const Universe& universe) {
  RankTable table;
  const auto world = static_cast<size_t>(universe.world);
  std::vector<int64_t> positions(world);
  std::iota(positions.begin(), positions.end(), 0);
  std::sort(positions.begin(), positions.end(), [&](int64_t a, int64_t b) { return rank_at(universe, a) < rank_at(universe, b); });
  table.of_position.resize(world);
  for (size_t r = 0; r < world; ++r) {
    table.global_ids.push_back(rank_at(universe, positions[r]));
    table.of_position[static_cast<size_t>(positions[r])] = static_cast<int32_t>(r);
  }
  return table;
}

Result<RankTable> rank_table_within(const Universe& universe, int64_t there) {
  if (there >= universe.world) return make_rank_table(universe);
  return environment("the plan needs " + std::to_string(universe.world) + " ranks and there are " + std::to_string(there) +
                     "; start as many processes");
}

Stand make_stand(const Mesh& mesh, const State& state, std::vector<int64_t> tensor_shape, int64_t copies, const RankTable& ranks) {
  Stand stand;
  stand.mesh = &mesh;
  stand.mesh_shape = mesh_shape(mesh);
  stand.shape = std::move(tensor_shape);
  stand.state = state;
  stand.copies = copies;
  stand.size = mesh_size(mesh);
  for (int64_t copy = 0; copy < copies; ++copy) {
    for (int64_t index = 0; index < stand.size; ++index) {
      stand.ranks.push_back(ranks.of_position[static_cast<size_t>(position_of(mesh, copy, index))]);
    }
  }
  for (int64_t index = 0; index < stand.size; ++index) {
    stand.boxes.push_back(box_of(state, stand.shape, stand.mesh_shape, coordinates_of(index, stand.mesh_shape)));
  }
  return stand;
}

DigitSet::DigitSet(std::vector<Atom> atoms, std::vector<int64_t> mesh_shape)
    : atoms_(std::move(atoms)), mesh_shape_(std::move(mesh_shape)), strides_(mesh_shape_.size(), 1) {
  for (size_t d = mesh_shape_.size(); d-- > 1;) strides_[d - 1] = strides_[d] * mesh_shape_[d];
  for (const Atom& atom : atoms_) size_ *= atom.size;
}

int64_t DigitSet::part(int64_t index) const {
  int64_t sum = 0;
  for (const Atom& atom : atoms_) {
    const auto d = static_cast<size_t>(atom.mesh_dim);
    const int64_t coordinate = index / strides_[d] % mesh_shape_[d];
    const int64_t below = mesh_shape_[d] / (atom.before * atom.size);
    sum += atom_coordinate(atom, mesh_shape_[d], coordinate) * below * strides_[d];
  }
  return sum;
}

Result<std::vector<Atom>> atoms_without(const std::vector<Atom>& a, const std::vector<Atom>& b, const std::vector<int64_t>& mesh_shape) {
  std::vector<Atom> left;
  for (const Atom& atom : a) {
    // Cut the atom where any other atom of its mesh dim starts or ends.
    const int64_t end = atom.before * atom.size;
    std::vector<int64_t> cuts{atom.before, end};
    for (const Atom& other : b) {
      if (other.mesh_dim != atom.mesh_dim) continue;
      for (int64_t cut : {other.before, other.before * other.size}) {
        if (cut > atom.before && cut < end) cuts.push_back(cut);
      }
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      if (cuts[i + 1] % cuts[i] != 0 || mesh_shape[static_cast<size_t>(atom.mesh_dim)] % cuts[i + 1] != 0) {
        return wrong_data("parts of mesh dim " + std::to_string(atom.mesh_dim) + " overlap at factors " + std::to_string(cuts[i]) +
                          " and " + std::to_string(cuts[i + 1]) + " of " + std::to_string(mesh_shape[static_cast<size_t>(atom.mesh_dim)]));
      }
      const bool covered = std::any_of(b.begin(), b.end(), [&](const Atom& other) {
        return other.mesh_dim == atom.mesh_dim && other.before <= cuts[i] && other.before * other.size >= cuts[i + 1];
      });
      if (!covered) left.push_back({atom.mesh_dim, cuts[i], cuts[i + 1] / cuts[i]});
    }
  }
  return left;
}

std::vector<Atom> partial_atoms(const State& state) {
  std::vector<Atom> atoms;
  for (const PendingAtom& p : state.partial) atoms.push_back(p.atom);
  return atoms;
}

std::vector<Atom> shard_atoms(const State& state) {
  std::vector<Atom> atoms;
  for (const auto& order : state.shards) atoms.insert(atoms.end(), order.begin(), order.end());
  return atoms;
}

}  // namespace meshplan
