// Sets up a question in the optimal planner's own form: which factors of mesh dims are atoms and digits, which tensor dims take part, which
// groups are allowed and how much memory.
#include <algorithm>
#include <numeric>

#include "base/int_math.h"
#include "search/spread.h"
#include "tensor/box.h"

namespace meshplan {
namespace {

// Where mesh dims are cut into atoms: at the ends of atoms that the states already use and, with every group allowed, at level boundaries.
std::vector<std::vector<int64_t>> mesh_cuts(const LevelMap& levels, const State& src, const State& dst, bool split) {
  const Mesh& mesh = levels.mesh();
  std::vector<std::vector<int64_t>> cuts(mesh.dims.size());
  for (size_t m = 0; m < cuts.size(); ++m) {
    cuts[m] = {1, mesh.dims[m].size};
    if (!split || !levels.regular()) continue;
    for (const LevelDigit& digit : levels.digits(m)) cuts[m].push_back(digit.before);
  }
  auto use = [&](const Atom& atom) {
    auto& c = cuts[static_cast<size_t>(atom.mesh_dim)];
    c.push_back(atom.before);
    c.push_back(atom.before * atom.size);
  };
  for (const State* s : {&src, &dst}) {
    for (const auto& order : s->shards) std::for_each(order.begin(), order.end(), use);
    for (const PendingAtom& p : s->partial) use(p.atom);
  }
  for (auto& c : cuts) {
    std::sort(c.begin(), c.end());
    c.erase(std::unique(c.begin(), c.end()), c.end());
    for (size_t i = 0; i + 1 < c.size(); ++i) {
      if (c[i + 1] % c[i] != 0) {
        c = {1, c.back()};
        break;
      }
    }
  }
  return cuts;
}

// Of the size of a mesh dim.
constexpr int64_t largest_divisor_tried = int64_t{1} << 16;

void list_coordinates(PlanProblem& p) {
  for (int64_t r = 0; r < p.ranks; ++r) {
    auto c = coordinates_of(r, p.mesh_sizes);
    for (int i = 0; i < p.atoms; ++i) {
      const Atom& a = p.atom[static_cast<size_t>(i)];
      auto m = static_cast<size_t>(a.mesh_dim);
      p.coordinates.push_back(static_cast<int32_t>(atom_coordinate(a, p.mesh_sizes[m], c[m])));
    }
  }
}

// Ranks that are first or last on every atom: what two orders of shards make a rank miss, one of
// these misses as a rule.
void list_corners(PlanProblem& p) {
  constexpr uint32_t most = 32;
  const uint32_t corners = p.atoms < 5 ? uint32_t{1} << p.atoms : most;
  for (uint32_t k = 0; k < corners; ++k) {
    // Every corner where there are few; else the five atoms of largest weight in turn, spread
    // evenly.
    const uint32_t bits = p.atoms <= 5 ? k : k * 0x9e3779b1U >> (32 - p.atoms);
    for (int i = 0; i < p.atoms; ++i) {
      p.coordinates.push_back(
          (bits >> i & 1) != 0 ? static_cast<int32_t>(p.size[static_cast<size_t>(i)] - 1) : 0);
    }
  }
}

}  // namespace

std::optional<PlanProblem> make_problem(const LevelMap& levels, const MeshTable& meshes, const Request& request, const State& target,
                                        const PlanOptions& options) {
  PlanProblem p;
  p.levels = &levels;
  p.topology = &levels.topology();
  p.mesh = &levels.mesh();
  p.mesh_sizes = mesh_shape(*p.mesh);
  p.tensor = request.tensor;
  p.reduce_dtype = request.reduce_dtype;
  p.element = element_bytes(request.tensor.dtype);
  p.reduce_element = request.reduce_dtype ? element_bytes(*request.reduce_dtype) : p.element;
  p.one_reduction = options.one_reduction;
  p.levels_only = p.topology->model.empty() && p.topology->tables.empty() && p.topology->copy_mb_per_s == 0;

  // Atoms.
  auto cuts = mesh_cuts(levels, request.src, target, options.groups == GroupPolicy::any);
  std::vector<std::vector<int>> ids(cuts.size());
  for (size_t m = 0; m < cuts.size(); ++m) {
    for (size_t i = 0; i + 1 < cuts[m].size(); ++i) {
      int64_t size = cuts[m][i + 1] / cuts[m][i];
      if (size == 1) continue;
      if (p.atoms == max_atoms) return std::nullopt;
      ids[m].push_back(p.atoms);
      p.atom[static_cast<size_t>(p.atoms)] = {static_cast<int32_t>(m), cuts[m][i], size};
      p.size[static_cast<size_t>(p.atoms)] = size;
      ++p.atoms;
    }
  }
  p.all = static_cast<uint16_t>((1U << p.atoms) - 1);
  auto atoms_of = [&](const Atom& whole) {
    std::vector<uint8_t> list;
    for (int id : ids[static_cast<size_t>(whole.mesh_dim)]) {
      const Atom& a = p.atom[static_cast<size_t>(id)];
      if (a.before >= whole.before && a.before * a.size <= whole.before * whole.size) list.push_back(static_cast<uint8_t>(id));
    }
    return list;
  };

  // Tensor dims that take part: those that either end shards, then the widest others up to the room there is.
  const auto rank = static_cast<int32_t>(request.tensor.shape.size());
  std::vector<int32_t> order;
  for (int32_t d = 0; d < rank; ++d) {
    auto at = static_cast<size_t>(d);
    if (!request.src.shards[at].empty() || !target.shards[at].empty()) order.push_back(d);
  }
  if (order.size() > max_spread_dims) return std::nullopt;
  std::vector<int32_t> idle;
  for (int32_t d = 0; d < rank; ++d) {
    if (std::find(order.begin(), order.end(), d) == order.end() && request.tensor.shape[static_cast<size_t>(d)] > 1) idle.push_back(d);
  }
  std::stable_sort(idle.begin(), idle.end(), [&](int32_t a, int32_t b) {
    return request.tensor.shape[static_cast<size_t>(a)] > request.tensor.shape[static_cast<size_t>(b)];
  });
  // A dim that neither end shards is only a place to park atoms: a few serve as well as many, as a
  // rule.
  constexpr size_t enough_dims = 4;
  for (int32_t d : idle) {
    if (order.size() >= enough_dims) {
      p.shortcuts.add(Shortcut::parking_dims);
      break;
    }
    order.push_back(d);
  }
  std::sort(order.begin(), order.end());
  if (order.empty()) {
    if (rank > 0) order.push_back(0);
  }
  p.dims = static_cast<int>(order.size());
  for (size_t i = 0; i < order.size(); ++i) p.tensor_dim[i] = order[i];
  for (int32_t d = 0; d < rank; ++d) {
    int64_t extent = request.tensor.shape[static_cast<size_t>(d)];
    p.total_elements = saturating_mul(p.total_elements, extent);
    if (std::find(order.begin(), order.end(), d) == order.end()) p.idle_longest = std::max(p.idle_longest, extent);
  }
  const bool scalar = p.dims == 0;
  if (scalar) p.dims = 1;  // a list that stays empty
  if (scalar) p.tensor_dim[0] = -1;

  auto spread_of = [&](const State& state, bool source) {
    Spread s;
    for (int d = 0; d < p.dims && !scalar; ++d) {
      for (const Atom& atom : state.shards[static_cast<size_t>(p.tensor_dim[static_cast<size_t>(d)])]) {
        for (uint8_t id : atoms_of(atom)) append(s, p.dims, d, id);
      }
    }
    for (const PendingAtom& pending : state.partial) {
      for (uint8_t id : atoms_of(pending.atom)) {
        (source ? p.source_op : p.target_op)[id] = pending.op;
        s.pending = static_cast<uint16_t>(s.pending | 1U << id);
      }
    }
    return s;
  };
  p.source = spread_of(request.src, true);
  p.target = spread_of(target, false);
  for (int i = 0; i < p.atoms; ++i) {
    auto bit = static_cast<uint16_t>(1U << i);
    if ((p.source.pending & p.target.pending & bit) != 0 && p.source_op[static_cast<size_t>(i)] == p.target_op[static_cast<size_t>(i)]) {
      p.kept = static_cast<uint16_t>(p.kept | bit);
    }
  }
  p.source_pending = p.source.pending;
  p.target.made = static_cast<uint16_t>(p.target.pending & ~p.kept);
  p.target.pending = p.kept;
  for (int d = 0; d < p.dims; ++d) p.frozen[static_cast<size_t>(d)] = common_prefix(p.source, p.target, d);

  // Even: every extent divides by the product of all atoms that can ever shard it.
  for (int d = 0; d < p.dims && !scalar; ++d) {
    int64_t extent = request.tensor.shape[static_cast<size_t>(p.tensor_dim[static_cast<size_t>(d)])];
    int64_t all = 1;
    for (int i = 0; i < p.atoms; ++i) all = saturating_mul(all, p.size[static_cast<size_t>(i)]);
    p.even = p.even && extent % all == 0;
    // Chunks that are rounded up leave none to the last parts only where extents are small.
    if (extent == 0 || (extent % all != 0 && extent / all < all)) p.may_move_nothing = true;
  }

  // Digits: each atom's part on one level; where these have several sizes they are cut into primes, so that 4 lines up with 2 and 2.
  auto part_of = [](const LevelDigit& digit, const Atom& atom) {
    const int64_t lo = std::max(digit.before, atom.before);
    const int64_t hi = std::min(digit.before * digit.size, atom.before * atom.size);
    return hi > lo ? hi / lo : 1;
  };
  int64_t part = 1;  // the size of every part so far
  bool cut_to_primes = false;
  for (int i = 0; i < p.atoms && levels.regular() && !cut_to_primes; ++i) {
    for (const LevelDigit& digit : levels.digits(static_cast<size_t>(p.atom[static_cast<size_t>(i)].mesh_dim))) {
      const int64_t size = part_of(digit, p.atom[static_cast<size_t>(i)]);
      if (size == 1) continue;
      if (part != 1 && size != part) cut_to_primes = true;
      part = size;
    }
  }
  p.exact_levels = levels.regular();
  for (int i = 0; i < p.atoms && p.exact_levels; ++i) {
    const Atom& atom = p.atom[static_cast<size_t>(i)];
    if (!levels.aligned(atom)) p.exact_levels = false;
    const auto at = static_cast<size_t>(i);
    auto add = [&](int64_t size, int level) {
      if (p.digit_count[at] == max_digits_per_atom || !p.world.add(size, level)) {
        p.exact_levels = false;
        return;
      }
      const int digit = p.world.count() - 1;
      p.digit_set[at] |= DigitMask{1} << digit;
      p.digit_of[at][static_cast<size_t>(p.digit_count[at]++)] = static_cast<int8_t>(digit);
      p.atoms_are_digits = p.atoms_are_digits && digit == i;
      p.always_line_up = p.always_line_up && size == p.world.size(0);
    };
    for (const LevelDigit& digit : levels.digits(static_cast<size_t>(atom.mesh_dim))) {
      int64_t left = part_of(digit, atom);
      if (left == 1 || !p.exact_levels) continue;
      if (cut_to_primes) {
        // What has no divisor up to there stays one digit: it lines up with itself, or not at all.
        for (int64_t prime = 2; prime <= largest_divisor_tried && prime * prime <= left; ++prime) {
          while (left % prime == 0 && left > prime) {
            add(prime, digit.level);
            left /= prime;
          }
        }
      }
      add(left, digit.level);
    }
  }
  p.always_line_up = p.always_line_up && p.exact_levels;
  p.ranks = mesh_size(*p.mesh);
  // Uneven worlds that are too large to list rank by rank in a search: where both ends cut evenly,
  // only states that do are looked at; else exchanges are priced on extents rounded up.
  constexpr int64_t few_ranks = 64;
  if (!p.even && p.ranks > few_ranks && p.exact_levels) {
    p.only_even = p.even = cuts_evenly(p, p.source) && cuts_evenly(p, p.target);
    p.padded = !p.even;
    p.shortcuts.add(p.padded ? Shortcut::padded_prices : Shortcut::uneven_states);
    p.may_move_nothing = p.may_move_nothing && (p.padded || p.total_elements == 0);
  }
  // Behind an uneven cut ranks may hold nothing, and a shard that both ends have may do better
  // elsewhere on the way.
  if (!p.even && p.padded) {
    if (std::any_of(p.frozen.begin(), p.frozen.end(), [](int n) { return n > 0; }))
      p.shortcuts.add(Shortcut::frozen_prefixes);
  } else if (!p.even) {
    p.frozen.fill(0);
  }
  if (!p.even || !p.always_line_up) {
    if (p.ranks <= few_ranks) {
      list_coordinates(p);
    } else {
      list_corners(p);
    }
  }
  if (!p.exact_levels) p.units = units_to_look_at(p);

  if (p.padded) {
    p.padded_shape = request.tensor.shape;
    int64_t all = 1;
    for (int i = 0; i < p.atoms; ++i) all = saturating_mul(all, p.size[static_cast<size_t>(i)]);
    for (int d = 0; d < p.dims && !scalar; ++d) {
      int64_t& extent = p.padded_shape[static_cast<size_t>(p.tensor_dim[static_cast<size_t>(d)])];
      extent = saturating_mul(ceil_div(extent, all), all);
    }
  }

  p.digit_bytes = p.element;
  for (int64_t extent : p.padded ? p.padded_shape : p.tensor.shape) p.digit_bytes = saturating_mul(p.digit_bytes, extent);
  p.digit_reduce_bytes = saturating_mul(p.digit_bytes / p.element, p.reduce_element);

  // Which sets of atoms a collective may run on.
  const size_t masks = size_t{1} << p.atoms;
  p.allowed.assign(masks, options.groups == GroupPolicy::any ? 1 : 0);
  p.shapes.assign(masks, nullptr);
  if (options.groups != GroupPolicy::any) {
    std::vector<size_t> wide;
    for (size_t m = 0; m < cuts.size(); ++m) {
      if (!ids[m].empty()) wide.push_back(m);
    }
    auto mask_of = [&](size_t m) {
      uint16_t mask = 0;
      for (int id : ids[m]) mask = static_cast<uint16_t>(mask | 1U << id);
      return mask;
    };
    for (size_t m : wide) p.allowed[mask_of(m)] = 1;
    // Sets of several mesh dims, where anything can declare one: a flatten, or a root of one dim.
    const bool any_set = !meshes.flattens.empty() || (!meshes.meshes.empty() && meshes.meshes.front().dims.size() == 1);
    for (size_t pick = 1; any_set && pick < size_t{1} << wide.size(); ++pick) {
      if ((pick & (pick - 1)) == 0) continue;
      std::vector<size_t> set;
      uint16_t mask = 0;
      for (size_t i = 0; i < wide.size(); ++i) {
        if ((pick >> i & 1) == 0) continue;
        set.push_back(wide[i]);
        mask = static_cast<uint16_t>(mask | mask_of(wide[i]));
      }
      if (find_native_flatten(meshes, *p.mesh, set)) p.allowed[mask] = 1;
    }
  }

  // Memory.
  if (options.max_memory_bytes == 0) {
    p.state_limit = saturating_mul(std::max(box_elements(p, p.source), box_elements(p, p.target)), p.element);
  } else if (options.max_memory_bytes > 0) {
    p.peak_limit = options.max_memory_bytes;
  }
  return p;
}

}  // namespace meshplan
