// Lines up the digits of two states: cuts mesh dims until every digit position of the tensor has one radix on both sides.
#include "transfer/digits.h"

#include <algorithm>
#include <vector>

#include "base/int_math.h"
#include "tensor/box.h"

namespace meshplan {
namespace {

// Sorted products of leading factors at which a mesh dim is cut, from 1 to its size. Each divides the next.
using Cuts = std::vector<int64_t>;

// Adds a cut; false where it does not divide cleanly.
bool add_cut(Cuts& cuts, int64_t at, bool& changed) {
  auto place = std::lower_bound(cuts.begin(), cuts.end(), at);
  if (place != cuts.end() && *place == at) return true;
  if (place == cuts.begin() || place == cuts.end()) return false;
  if (at % *(place - 1) != 0 || *place % at != 0) return false;
  cuts.insert(place, at);
  changed = true;
  return true;
}

struct Piece {
  int32_t mesh_dim;
  int64_t lo;  // products of leading factors
  int64_t hi;
};

// The order's atoms cut at the mesh dims' cuts, major first.
std::vector<Piece> pieces_of(const std::vector<Atom>& order, const std::vector<Cuts>& cuts) {
  std::vector<Piece> pieces;
  for (const Atom& atom : order) {
    const Cuts& c = cuts[static_cast<size_t>(atom.mesh_dim)];
    for (size_t i = 0; i + 1 < c.size(); ++i) {
      if (c[i] >= atom.before && c[i + 1] <= atom.before * atom.size) pieces.push_back({atom.mesh_dim, c[i], c[i + 1]});
    }
  }
  return pieces;
}

// Cuts `order`'s atoms where the tensor dim is cut at `at` (a product of leading shares).
bool cut_order(const std::vector<Atom>& order, int64_t at, std::vector<Cuts>& cuts, bool& changed) {
  int64_t reached = 1;
  for (const Atom& atom : order) {
    int64_t next = reached * atom.size;
    if (at <= reached) return true;
    if (at < next) {
      if (at % reached != 0 || next % at != 0) return false;
      return add_cut(cuts[static_cast<size_t>(atom.mesh_dim)], atom.before * (at / reached), changed);
    }
    reached = next;
  }
  return true;
}

std::vector<int64_t> shares(const std::vector<Piece>& pieces) {
  std::vector<int64_t> products;
  int64_t reached = 1;
  for (const Piece& p : pieces) products.push_back(reached *= p.hi / p.lo);
  return products;
}

}  // namespace

std::optional<DigitProblem> align_digits(const LevelMap& levels, std::span<const int64_t> shape, int64_t element_bytes, const State& src,
                                         const State& dst) {
  if (!levels.regular()) return std::nullopt;
  const Mesh& mesh = levels.mesh();
  std::vector<Cuts> cuts(mesh.dims.size());
  for (size_t m = 0; m < cuts.size(); ++m) {
    cuts[m].push_back(1);
    for (const LevelDigit& digit : levels.digits(m)) {
      if (digit.before * digit.size > cuts[m].back()) cuts[m].push_back(digit.before * digit.size);
    }
    if (cuts[m].back() != mesh.dims[m].size) return std::nullopt;
  }
  bool changed = false;
  auto cut_at_ends = [&](const Atom& atom) {
    Cuts& c = cuts[static_cast<size_t>(atom.mesh_dim)];
    return add_cut(c, atom.before, changed) && add_cut(c, atom.before * atom.size, changed);
  };
  for (const State* state : {&src, &dst}) {
    for (const auto& order : state->shards) {
      for (const Atom& atom : order) {
        if (!cut_at_ends(atom)) return std::nullopt;
      }
    }
    for (const PendingAtom& p : state->partial) {
      if (!cut_at_ends(p.atom)) return std::nullopt;
    }
  }
  do {
    changed = false;
    for (size_t d = 0; d < shape.size(); ++d) {
      auto a = shares(pieces_of(src.shards[d], cuts));
      auto b = shares(pieces_of(dst.shards[d], cuts));
      for (int64_t at : a) {
        if (!cut_order(dst.shards[d], at, cuts, changed)) return std::nullopt;
      }
      for (int64_t at : b) {
        if (!cut_order(src.shards[d], at, cuts, changed)) return std::nullopt;
      }
    }
  } while (changed);

  std::optional<DigitProblem> problem(std::in_place);
  auto& [world, change, made] = *problem;
  // One digit per cut of each mesh dim that is larger than one.
  std::vector<std::vector<int8_t>> id(cuts.size());
  for (size_t m = 0; m < cuts.size(); ++m) {
    for (size_t i = 0; i + 1 < cuts[m].size(); ++i) {
      int level = 0;
      for (const LevelDigit& digit : levels.digits(m)) {
        if (digit.before <= cuts[m][i] && cuts[m][i + 1] <= digit.before * digit.size) level = digit.level;
      }
      id[m].push_back(static_cast<int8_t>(world.count()));
      if (!world.add(cuts[m][i + 1] / cuts[m][i], level)) return std::nullopt;
    }
  }
  auto digits_of = [&](const std::vector<Atom>& order) {
    std::vector<int8_t> digits;
    for (const Piece& piece : pieces_of(order, cuts)) {
      const Cuts& c = cuts[static_cast<size_t>(piece.mesh_dim)];
      auto at = static_cast<size_t>(std::lower_bound(c.begin(), c.end(), piece.lo) - c.begin());
      digits.push_back(id[static_cast<size_t>(piece.mesh_dim)][at]);
    }
    return digits;
  };
  auto pending = [&](const State& state) {
    DigitMask set = 0;
    for (const PendingAtom& atom : state.partial) {
      for (int8_t digit : digits_of({atom.atom})) set |= DigitMask{1} << digit;
    }
    return set;
  };
  change.kept = pending(src) & pending(dst);
  change.reduced = pending(src) & ~pending(dst);
  made = pending(dst) & ~pending(src);
  change.total_bytes = element_bytes;
  const std::vector<int64_t> sizes = mesh_shape(mesh);
  for (size_t d = 0; d < shape.size(); ++d) {
    change.total_bytes = saturating_mul(change.total_bytes, shape[d]);
    if (!cuts_evenly(src.shards[d], shape[d], sizes) || !cuts_evenly(dst.shards[d], shape[d], sizes)) return std::nullopt;
    const auto a = digits_of(src.shards[d]);
    const auto b = digits_of(dst.shards[d]);
    if (!change.add_dim(world, a.data(), static_cast<int>(a.size()), b.data(), static_cast<int>(b.size()))) return std::nullopt;
    int64_t parts = 1;
    for (int8_t digit : a.size() > b.size() ? a : b) parts *= world.size(digit);
    if (shape[d] % parts != 0) return std::nullopt;
    change.longest = std::max(change.longest, shape[d] / parts);
  }
  if (change.total_bytes == INT64_MAX) return std::nullopt;
  return problem;
}

}  // namespace meshplan
