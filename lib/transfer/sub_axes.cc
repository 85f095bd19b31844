#include "transfer/sub_axes.h"

#include <algorithm>

namespace meshplan {

CoordinatesOn::CoordinatesOn(std::span<const Atom> atoms, std::span<const int64_t> mesh_shape) {
  for (const Atom& atom : atoms) {
    const auto m = static_cast<size_t>(atom.mesh_dim);
    int64_t below = mesh_shape[m] / (atom.before * atom.size);
    for (size_t inner = m + 1; inner < mesh_shape.size(); ++inner) below *= mesh_shape[inner];
    digits_.push_back({below, atom.size});
    count_ *= atom.size;
  }
}

namespace {

// The factors at which the sub-axis is cut by others of its mesh dim, its own ends included.
std::vector<int64_t> cuts_of(const Atom& atom, const std::vector<Atom>& others) {
  const int64_t end = atom.before * atom.size;
  std::vector<int64_t> cuts{atom.before, end};
  for (const Atom& other : others) {
    if (other.mesh_dim != atom.mesh_dim) continue;
    for (int64_t cut : {other.before, other.before * other.size}) {
      if (cut > atom.before && cut < end) cuts.push_back(cut);
    }
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

}  // namespace

Result<std::vector<Atom>> atoms_without(const std::vector<Atom>& a, const std::vector<Atom>& b,
                                        const std::vector<int64_t>& mesh_shape) {
  std::vector<Atom> left;
  for (const Atom& atom : a) {
    const int64_t size = mesh_shape[static_cast<size_t>(atom.mesh_dim)];
    const std::vector<int64_t> cuts = cuts_of(atom, b);
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      if (cuts[i + 1] % cuts[i] != 0 || size % cuts[i + 1] != 0) {
        return wrong_data("parts of mesh dim " + std::to_string(atom.mesh_dim) +
                          " overlap at factors " + std::to_string(cuts[i]) + " and " +
                          std::to_string(cuts[i + 1]) + " of " + std::to_string(size));
      }
      const bool covered = std::any_of(b.begin(), b.end(), [&](const Atom& other) {
        return other.mesh_dim == atom.mesh_dim && other.before <= cuts[i] &&
               other.before * other.size >= cuts[i + 1];
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
