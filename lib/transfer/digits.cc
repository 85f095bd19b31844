// Lines up the digits of two states: cuts mesh dims until every digit position of the tensor has
// one radix on both sides.
//
//     mesh a 4 x b 2, [8], S(0)[a b] -> S(0)[b a]
//     shares of tensor dim 0      before a 4, b 2: cut at 4, 8      after b 2, a 4: cut at 2, 8
//     cut before at 2             a = 2 x 2
//     cut after at 4              the same cut of a; now both are cut at 2, 4, 8
//     digits                      a:(1)2 a:(2)2 b               b a:(1)2 a:(2)2, each of radix 2
#include "transfer/digits.h"

#include <algorithm>
#include <vector>

#include "base/int_math.h"
#include "tensor/box.h"

namespace meshplan {
namespace {

// Sorted products of leading factors at which a mesh dim is cut, from 1 to its size. Each divides
// the next.
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

// A factor of a mesh dim between two neighbouring cuts.
struct Factor {
  int32_t mesh_dim;
  int64_t lo;  // products of leading factors
  int64_t hi;
};

// The order's sub-axes cut at the mesh dims' cuts, major first. Valid until the next call.
std::span<const Factor> factors_of(const std::vector<SubAxis>& order,
                                   const std::vector<Cuts>& cuts) {
  thread_local std::vector<Factor> factors;
  factors.clear();
  for (const SubAxis& sub_axis : order) {
    const Cuts& c = cuts[static_cast<size_t>(sub_axis.mesh_dim)];
    for (size_t i = 0; i + 1 < c.size(); ++i) {
      if (c[i] >= sub_axis.before && c[i + 1] <= sub_axis.before * sub_axis.size)
        factors.push_back({sub_axis.mesh_dim, c[i], c[i + 1]});
    }
  }
  return factors;
}

// Cuts `order`'s sub-axes where the tensor dim is cut into `at` shares by the other state.
bool cut_order(const std::vector<SubAxis>& order, int64_t at, std::vector<Cuts>& cuts,
               bool& changed) {
  int64_t reached = 1;
  for (const SubAxis& sub_axis : order) {
    const int64_t next = reached * sub_axis.size;
    if (at <= reached) return true;
    if (at < next) {
      if (at % reached != 0 || next % at != 0) return false;
      return add_cut(cuts[static_cast<size_t>(sub_axis.mesh_dim)], sub_axis.before * (at / reached),
                     changed);
    }
    reached = next;
  }
  return true;
}

// Into how many shares the factors cut a tensor dim: after the first, after two, and so on.
void list_shares(std::span<const Factor> factors, std::vector<int64_t>& products) {
  products.clear();
  int64_t reached = 1;
  for (const Factor& f : factors) products.push_back(reached *= floor_div(f.hi, f.lo));
}

// The cuts between levels; false where a level's digits do not make up a mesh dim.
bool cut_at_levels(const LevelMap& levels, std::vector<Cuts>& cuts) {
  const Mesh& mesh = levels.mesh();
  cuts.resize(mesh.dims.size());
  for (size_t m = 0; m < cuts.size(); ++m) {
    cuts[m].assign(1, 1);
    for (const LevelDigit& digit : levels.digits(m)) {
      const int64_t end = digit.before * digit.size;
      if (end > cuts[m].back()) cuts[m].push_back(end);
    }
    if (cuts[m].back() != mesh.dims[m].size) return false;
  }
  return true;
}

bool cut_at_sub_axes(const State& state, std::vector<Cuts>& cuts) {
  bool changed = false;
  auto cut_at_ends = [&](const SubAxis& sub_axis) {
    Cuts& c = cuts[static_cast<size_t>(sub_axis.mesh_dim)];
    return add_cut(c, sub_axis.before, changed) &&
           add_cut(c, sub_axis.before * sub_axis.size, changed);
  };
  for (const auto& order : state.shards) {
    for (const SubAxis& sub_axis : order) {
      if (!cut_at_ends(sub_axis)) return false;
    }
  }
  for (const PendingSubAxis& p : state.partial) {
    if (!cut_at_ends(p.sub_axis)) return false;
  }
  return true;
}

// Cuts each state where the other cuts the same tensor dim. A cut may move others: until none is
// new.
bool cut_at_each_other(const State& src, const State& dst, std::vector<Cuts>& cuts) {
  thread_local std::vector<int64_t> a;
  thread_local std::vector<int64_t> b;
  bool changed = true;
  while (changed) {
    changed = false;
    for (size_t d = 0; d < src.shards.size(); ++d) {
      // Orders that are alike cut alike.
      if (src.shards[d] == dst.shards[d]) continue;
      list_shares(factors_of(src.shards[d], cuts), a);
      list_shares(factors_of(dst.shards[d], cuts), b);
      for (int64_t at : a) {
        if (!cut_order(dst.shards[d], at, cuts, changed)) return false;
      }
      for (int64_t at : b) {
        if (!cut_order(src.shards[d], at, cuts, changed)) return false;
      }
    }
  }
  return true;
}

// The numbers of digits, by mesh dim and cut.
using DigitIds = std::vector<std::vector<int8_t>>;

// One digit for each factor between cuts; false where there are too many.
bool add_digits(const LevelMap& levels, const std::vector<Cuts>& cuts, DigitWorld& world,
                DigitIds& ids) {
  ids.resize(cuts.size());
  for (size_t m = 0; m < cuts.size(); ++m) {
    ids[m].clear();
    for (size_t i = 0; i + 1 < cuts[m].size(); ++i) {
      int level = 0;
      for (const LevelDigit& digit : levels.digits(m)) {
        if (digit.before <= cuts[m][i] && cuts[m][i + 1] <= digit.before * digit.size)
          level = digit.level;
      }
      ids[m].push_back(static_cast<int8_t>(world.count()));
      if (!world.add(cuts[m][i + 1] / cuts[m][i], level)) return false;
    }
  }
  return true;
}

void list_digits(const std::vector<SubAxis>& order, const std::vector<Cuts>& cuts,
                 const DigitIds& ids, std::vector<int8_t>& digits) {
  digits.clear();
  for (const Factor& factor : factors_of(order, cuts)) {
    const Cuts& c = cuts[static_cast<size_t>(factor.mesh_dim)];
    const auto at = std::lower_bound(c.begin(), c.end(), factor.lo) - c.begin();
    digits.push_back(ids[static_cast<size_t>(factor.mesh_dim)][static_cast<size_t>(at)]);
  }
}

DigitMask pending_digits(const State& state, const std::vector<Cuts>& cuts, const DigitIds& ids) {
  DigitMask set = 0;
  std::vector<int8_t> digits;
  for (const PendingSubAxis& sub_axis : state.partial) {
    list_digits({sub_axis.sub_axis}, cuts, ids, digits);
    for (const int8_t digit : digits) set |= DigitMask{1} << digit;
  }
  return set;
}

}  // namespace

std::optional<DigitProblem> align_digits(const LevelMap& levels, std::span<const int64_t> shape,
                                         int64_t element_bytes, const State& src,
                                         const State& dst) {
  if (!levels.regular()) return std::nullopt;
  thread_local std::vector<Cuts> cuts;
  thread_local DigitIds ids;
  thread_local std::vector<int8_t> a;
  thread_local std::vector<int8_t> b;
  if (!cut_at_levels(levels, cuts) || !cut_at_sub_axes(src, cuts) || !cut_at_sub_axes(dst, cuts) ||
      !cut_at_each_other(src, dst, cuts))
    return std::nullopt;

  std::optional<DigitProblem> problem(std::in_place);
  auto& [world, change, made] = *problem;
  if (!add_digits(levels, cuts, world, ids)) return std::nullopt;
  const DigitMask before = pending_digits(src, cuts, ids);
  const DigitMask after = pending_digits(dst, cuts, ids);
  change.kept = before & after;
  change.reduced = before & ~after;
  made = after & ~before;
  change.total_bytes = element_bytes;
  const std::vector<int64_t> sizes = mesh_shape(levels.mesh());
  for (size_t d = 0; d < shape.size(); ++d) {
    change.total_bytes = saturating_mul(change.total_bytes, shape[d]);
    if (!cuts_evenly(src.shards[d], shape[d], sizes) ||
        !cuts_evenly(dst.shards[d], shape[d], sizes))
      return std::nullopt;
    list_digits(src.shards[d], cuts, ids, a);
    list_digits(dst.shards[d], cuts, ids, b);
    if (!change.add_dim(world, a.data(), static_cast<int>(a.size()), b.data(),
                        static_cast<int>(b.size())))
      return std::nullopt;
    int64_t parts = 1;
    for (int8_t digit : a.size() > b.size() ? a : b) parts *= world.size(digit);
    if (shape[d] % parts != 0) return std::nullopt;
    change.longest = std::max(change.longest, shape[d] / parts);
  }
  if (change.total_bytes == INT64_MAX) return std::nullopt;
  return problem;
}

}  // namespace meshplan
