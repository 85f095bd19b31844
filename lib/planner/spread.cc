#include "planner/spread.h"

#include <algorithm>
#include <numeric>

#include "base/int_math.h"
#include "tensor/box.h"

namespace meshplan {

void append(Spread& s, int dims, int d, uint8_t atom) {
  int at = s.end_of(d);
  int last = s.end_of(dims - 1);
  for (int i = last; i > at; --i) s.atom[static_cast<size_t>(i)] = s.atom[static_cast<size_t>(i - 1)];
  s.atom[static_cast<size_t>(at)] = atom;
  for (int e = d; e < dims; ++e) ++s.end[static_cast<size_t>(e)];
}

void drop_last(Spread& s, int dims, int d, int count) {
  int from = s.end_of(d);
  int last = s.end_of(dims - 1);
  for (int i = from; i < last; ++i) s.atom[static_cast<size_t>(i - count)] = s.atom[static_cast<size_t>(i)];
  for (int i = last - count; i < last; ++i) s.atom[static_cast<size_t>(i)] = 0;
  for (int e = d; e < dims; ++e) s.end[static_cast<size_t>(e)] = static_cast<uint8_t>(s.end[static_cast<size_t>(e)] - count);
}

uint16_t sharding(const Spread& s, int dims) {
  uint16_t mask = 0;
  for (int i = 0; i < s.end_of(dims - 1); ++i) mask = static_cast<uint16_t>(mask | 1U << s.atom[static_cast<size_t>(i)]);
  return mask;
}

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
  // A dim that neither end shards is only a place to park atoms: one that is wide enough serves as well as several.
  constexpr size_t enough_dims = 4;
  for (int32_t d : idle) {
    if (order.size() >= enough_dims) break;
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
  p.target.made = static_cast<uint16_t>(p.target.pending & ~p.kept);
  p.target.pending = p.kept;
  for (int d = 0; d < p.dims; ++d) {
    int common = 0;
    while (common < p.source.length(d) && common < p.target.length(d) &&
           p.source.atom[static_cast<size_t>(p.source.begin_of(d) + common)] ==
               p.target.atom[static_cast<size_t>(p.target.begin_of(d) + common)]) {
      ++common;
    }
    p.frozen[static_cast<size_t>(d)] = common;
  }

  // Even: every extent divides by the product of all atoms that can ever shard it.
  for (int d = 0; d < p.dims && !scalar; ++d) {
    int64_t extent = request.tensor.shape[static_cast<size_t>(p.tensor_dim[static_cast<size_t>(d)])];
    int64_t all = 1;
    for (int i = 0; i < p.atoms; ++i) all = saturating_mul(all, p.size[static_cast<size_t>(i)]);
    p.even = p.even && extent % all == 0;
  }

  // Digits. Atoms whose size shares a factor with another size are cut into primes, so that 4 lines up with 2 and 2.
  auto cut_to_primes = [&](int64_t size) {
    for (int i = 0; i < p.atoms; ++i) {
      int64_t other = p.size[static_cast<size_t>(i)];
      if (other != size && std::gcd(other, size) > 1) return true;
    }
    return false;
  };
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
      int64_t lo = std::max(digit.before, atom.before);
      int64_t hi = std::min(digit.before * digit.size, atom.before * atom.size);
      if (hi <= lo || !p.exact_levels) continue;
      int64_t left = hi / lo;
      if (cut_to_primes(atom.size)) {
        for (int64_t prime = 2; prime * prime <= left; ++prime) {
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
  // Uneven worlds that are too large to list rank by rank in a search: where both ends cut evenly, only spreads that do are looked at; else
  // exchanges are priced on extents rounded up.
  constexpr int64_t few_ranks = 64;
  if (!p.even && p.ranks > few_ranks && p.exact_levels) {
    p.only_even = p.even = cuts_evenly(p, p.source) && cuts_evenly(p, p.target);
    p.padded = !p.even;
  }
  if (p.ranks <= few_ranks && p.even && !p.always_line_up) list_coordinates(p);

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
  p.digit_reduce_bytes = p.digit_bytes / p.element * p.reduce_element;

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

State to_state(const PlanProblem& p, const Spread& s) {
  State state;
  state.shards.resize(p.tensor.shape.size());
  auto joined = [](std::vector<Atom>& list, const Atom& atom) {
    if (!list.empty() && list.back().mesh_dim == atom.mesh_dim && list.back().before * list.back().size == atom.before) {
      list.back().size *= atom.size;
    } else {
      list.push_back(atom);
    }
  };
  for (int d = 0; d < p.dims; ++d) {
    for (int i = s.begin_of(d); i < s.end_of(d); ++i) {
      joined(state.shards[static_cast<size_t>(p.tensor_dim[static_cast<size_t>(d)])], p.atom[s.atom[static_cast<size_t>(i)]]);
    }
  }
  for (int i = 0; i < p.atoms; ++i) {
    bool source = (s.pending >> i & 1) != 0;
    if (!source && (s.made >> i & 1) == 0) continue;
    const Atom& atom = p.atom[static_cast<size_t>(i)];
    ReduceOp op = source ? p.source_op[static_cast<size_t>(i)] : p.target_op[static_cast<size_t>(i)];
    if (!state.partial.empty()) {
      PendingAtom& last = state.partial.back();
      if (last.op == op && last.atom.mesh_dim == atom.mesh_dim && last.atom.before * last.atom.size == atom.before) {
        last.atom.size *= atom.size;
        continue;
      }
    }
    state.partial.push_back({atom, op});
  }
  return state;
}

int64_t box_elements(const PlanProblem& p, const Spread& s) {
  if (p.even) {
    int64_t parts = 1;
    for (int i = 0; i < s.end_of(p.dims - 1); ++i) parts *= p.size[s.atom[static_cast<size_t>(i)]];
    return p.total_elements / parts;
  }
  int64_t elements = 1;
  for (int64_t side : largest_box(to_state(p, s), p.tensor.shape, p.mesh_sizes)) elements = saturating_mul(elements, side);
  return elements;
}

int64_t group_size(const PlanProblem& p, uint16_t mask) {
  int64_t size = 1;
  for (int i = 0; i < p.atoms; ++i) {
    if ((mask >> i & 1) != 0) size *= p.size[static_cast<size_t>(i)];
  }
  return size;
}

std::vector<Atom> mesh_atoms(const PlanProblem& p, uint16_t mask) {
  std::vector<Atom> atoms;
  for (int i = 0; i < p.atoms; ++i) {
    if ((mask >> i & 1) == 0) continue;
    const Atom& atom = p.atom[static_cast<size_t>(i)];
    if (!atoms.empty() && atoms.back().mesh_dim == atom.mesh_dim && atoms.back().before * atoms.back().size == atom.before) {
      atoms.back().size *= atom.size;
    } else {
      atoms.push_back(atom);
    }
  }
  return atoms;
}

const std::vector<GroupShape>& group_shapes(const PlanProblem& p, uint16_t mask) {
  const std::vector<GroupShape>*& cached = p.shapes[mask];
  if (cached == nullptr) cached = &p.levels->shapes(mesh_atoms(p, mask));
  return *cached;
}

DigitSpread digits_of(const PlanProblem& p, const Spread& s) {
  DigitSpread out;
  if (p.atoms_are_digits) {
    std::memcpy(out.digit.data(), s.atom.data(), s.atom.size());
    out.end = s.end;
    out.pending = static_cast<DigitMask>(s.pending | s.made);
    return out;
  }
  uint8_t count = 0;
  int at = 0;
  for (int d = 0; d < p.dims; ++d) {
    for (; at < s.end_of(d); ++at) {
      const auto atom = s.atom[static_cast<size_t>(at)];
      for (int k = 0; k < p.digit_count[atom]; ++k) out.digit[count++] = p.digit_of[atom][static_cast<size_t>(k)];
    }
    out.end[static_cast<size_t>(d)] = count;
  }
  out.pending = 0;
  for (unsigned left = s.pending | s.made; left != 0; left &= left - 1)
    out.pending |= p.digit_set[static_cast<size_t>(__builtin_ctz(left))];
  return out;
}

bool line_up(const PlanProblem& p, const DigitSpread& from, const DigitSpread& to, DigitChange& out) {
  if (!p.exact_levels || (!p.even && !p.padded)) return false;
  int a = 0;
  int b = 0;
  for (int d = 0; d < p.dims; ++d) {
    const int a_end = from.end[static_cast<size_t>(d)];
    const int b_end = to.end[static_cast<size_t>(d)];
    if (!out.add_dim(p.world, from.digit.data() + a, a_end - a, to.digit.data() + b, b_end - b)) return false;
    a = a_end;
    b = b_end;
  }
  out.kept = from.pending & to.pending;
  out.reduced = from.pending & ~to.pending;
  out.total_bytes = out.reduced != 0 ? p.digit_reduce_bytes : p.digit_bytes;
  return true;
}

int64_t longest_of_piece(const PlanProblem& p, const DigitSpread& from, const DigitSpread& to) {
  int64_t longest = p.idle_longest;
  const std::vector<int64_t>& shape = p.padded ? p.padded_shape : p.tensor.shape;
  auto parts = [&](const DigitSpread& s, int d) {
    int64_t n = 1;
    for (int i = d == 0 ? 0 : s.end[static_cast<size_t>(d - 1)]; i < s.end[static_cast<size_t>(d)]; ++i)
      n *= p.world.size(s.digit[static_cast<size_t>(i)]);
    return n;
  };
  for (int d = 0; d < p.dims; ++d) {
    if (p.tensor_dim[static_cast<size_t>(d)] < 0) continue;
    longest = std::max(longest, shape[static_cast<size_t>(p.tensor_dim[static_cast<size_t>(d)])] / std::max(parts(from, d), parts(to, d)));
  }
  return longest;
}

ExchangeCost price_between(const PlanProblem& p, const Spread& from, const Spread& to, int phases) {
  DigitChange change;
  const DigitSpread a = digits_of(p, from);
  const DigitSpread b = digits_of(p, to);
  if (line_up(p, a, b, change)) {
    change.longest = longest_of_piece(p, a, b);
    return price_digits(*p.topology, p.world, change, phases, std::nullopt);
  }
  State src = to_state(p, from);
  State dst = to_state(p, to);
  ExchangeQuestion q;
  q.levels = p.levels;
  q.shape = p.padded ? std::span<const int64_t>(p.padded_shape) : std::span<const int64_t>(p.tensor.shape);
  const bool reduces = ((from.pending | from.made) & ~(to.pending | to.made)) != 0;
  q.element_bytes = reduces ? p.reduce_element : p.element;
  q.src = &src;
  q.dst = &dst;
  q.phases = phases;
  return price_exchange(q);
}

namespace {

// The most elements that a rank's target has and its source has not, where boxes are even but do not line up.
int64_t missing_elements(const PlanProblem& p, const Spread& from, const Spread& to) {
  if (p.total_elements == 0) return 0;
  int64_t most = 0;
  const int64_t target = box_elements(p, to);
  for (int64_t r = 0; r < p.ranks; ++r) {
    const int32_t* at = p.coordinates.data() + r * p.atoms;
    int64_t overlap = p.total_elements;
    for (int d = 0; d < p.dims && p.tensor_dim[0] >= 0; ++d) {
      const int64_t extent = p.tensor.shape[static_cast<size_t>(p.tensor_dim[static_cast<size_t>(d)])];
      auto interval = [&](const Spread& s) {
        int64_t lo = 0;
        int64_t width = extent;
        for (int i = s.begin_of(d); i < s.end_of(d); ++i) {
          auto atom = s.atom[static_cast<size_t>(i)];
          width /= p.size[atom];
          lo += at[atom] * width;
        }
        return std::make_pair(lo, lo + width);
      };
      auto [a, a_end] = interval(from);
      auto [b, b_end] = interval(to);
      overlap = overlap / extent * std::max<int64_t>(0, std::min(a_end, b_end) - std::max(a, b));
    }
    most = std::max(most, target - overlap);
  }
  return most;
}

}  // namespace

Bounds bound_between(const PlanProblem& p, const Spread& from, const Spread& to) {
  return bound_between(p, from, digits_of(p, from), to, digits_of(p, to));
}

Bounds bound_between(const PlanProblem& p, const Spread& from, const DigitSpread& from_digits, const Spread& to,
                     const DigitSpread& to_digits) {
  if ((to.made & ~from.made) != 0) return {};
  DigitChange change;
  if (p.even && line_up(p, from_digits, to_digits, change)) {
    if (change.reduced != 0) change.total_bytes = std::min(p.digit_bytes, p.digit_reduce_bytes);
    return bound_digits(*p.topology, p.world, change, true);
  }
  // Uneven: rank 0 has the largest target and misses at least what its source, no larger than the largest, cannot cover.
  Bounds b;
  int64_t wanted = box_elements(p, to);
  int64_t held = box_elements(p, from);
  const bool reduces = ((from.pending | from.made) & ~(to.pending | to.made)) != 0;
  if (reduces) held = 0;
  int64_t missing = std::max<int64_t>(0, wanted - held);
  if (p.even && !reduces && !p.coordinates.empty()) missing = missing_elements(p, from, to);
  if (missing == 0) return b;
  b.bytes = missing * std::min(p.element, reduces ? p.reduce_element : p.element);
  if (!p.levels_only && p.topology->copy_mb_per_s == 0) return b;
  int64_t bandwidth = 0;
  int64_t latency = INT64_MAX;
  for (const TopologyLevel& level : p.topology->levels) {
    bandwidth += level.mb_per_s;
    latency = std::min(latency, level.latency_ns);
  }
  b.ps = saturating_add(saturating_mul(latency, 1000), transfer_ps(b.bytes, 1, bandwidth));
  return b;
}

}  // namespace meshplan
