#include "search/moves.h"

#include <algorithm>

#include "base/int_math.h"
#include "cost/protocols.h"
#include "cost/step_figures.h"
#include "search/joining_sums.h"
#include "search/listing_work.h"
#include "search/work.h"
#include "tensor/box.h"

namespace meshplan {
namespace {

bool has(unsigned mask, int i) { return (mask >> i & 1) != 0; }

uint16_t bit(int i) { return static_cast<uint16_t>(1U << i); }

class Mover {
 public:
  Mover(const PlanProblem& p, const SearchState& from, std::vector<Edge>& out,
        const MoveLimits& limits)
      : p_(p), from_(from), out_(out), limits_(limits) {
    sharding_ = sharding(from, p.dims);
    free_ = static_cast<uint16_t>(p.all & ~sharding_ & ~from.pending & ~from.made);
    if (limits.last_only && from.pending == p.target.pending && p.target.made == 0 && p.kept == 0) {
      for (int d = 0; d < p.dims; ++d) must_leave(d);
    }
  }

  // Whether the list is whole.
  bool run() {
    slices();
    gathers();
    scalar_ = is_scalar(p_);
    reductions();
    all_to_alls();
    to_partials();
    joining_sums();
    p_.work += work_;
    return work_ <= limits_.most_work;
  }

 private:
  void emit(Edge& edge) {
    if (p_.only_even && !cuts_evenly(p_, edge.to)) return;
    if (!p_.even && !nests(edge.to)) return;
    if (limits_.last_only && !is_local(edge.op) && !local_steps_lead_to_target(p_, edge.to)) return;
    if (work_ > limits_.most_work) return;
    work_ += work::move;
    out_.push_back(edge);
  }
  // Whether boxes of both states lie in those of what their lists begin with alike: what a step
  // other than an exchange takes from shards or adds to them.
  [[nodiscard]] bool nests(const SearchState& to) const {
    for (int d = 0; d < p_.dims; ++d) {
      const int k = common_prefix(from_, to, d);
      if (!shards_nest(p_, from_, d, k) || !shards_nest(p_, to, d, k)) return false;
    }
    return true;
  }
  [[nodiscard]] bool asks_bounds() const {
    return limits_.world != nullptr && limits_.most_ps != INT64_MAX;
  }
  [[nodiscard]] Packed packed(const SearchState& s) const {
    return asks_bounds() ? limits_.world->pack(s) : Packed{};
  }
  // `of`: packed, with one sub-axis more behind list d of `s`.
  [[nodiscard]] Packed packed_with(const Packed& of, const SearchState& s, int d,
                                   int sub_axis) const {
    Packed next = of;
    if (asks_bounds()) limits_.world->put(next, d, limits_.world->digits_in(s, d), sub_axis);
    return next;
  }
  // Whether no plan through a communicating step to `to`, or to what has more sub-axes behind its
  // lists, can be of use.
  [[nodiscard]] bool useless(const SearchState& to, const Packed& packed_to, int64_t step_ps) {
    if (!asks_bounds()) return false;
    work_ += work::aim;
    const int64_t left = limits_.world->left_from_growing_ps(to, packed_to, *limits_.target);
    return saturating_add(step_ps, left) > limits_.most_ps;
  }

  // Cuts a free sub-axis's part out of what every rank holds. Condition: the sub-axis is free.
  // Progress: a step towards any target that shards on it.
  void slices() {
    if (is_scalar(p_)) return;
    for (int i = 0; i < p_.sub_axes; ++i) {
      if (!has(free_, i)) continue;
      for (int d = 0; d < p_.dims; ++d) {
        Edge edge;
        edge.op = Op::slice;
        edge.group = bit(i);
        edge.to = from_;
        append(edge.to, p_.dims, d, static_cast<uint8_t>(i));
        emit(edge);
        // Under a limit of the peak several at once: what lies between would need room of its own.
        if (p_.peak_limit != INT64_MAX) slices_below(edge);
      }
    }
  }
  void slices_below(const Edge& first) {
    if (work_ > limits_.most_work) return;
    for (unsigned left = free_ & ~first.group; left != 0; left &= left - 1) {
      const int i = __builtin_ctz(left);
      for (int d = 0; d < p_.dims; ++d) {
        // Each arrangement arises from its sub-axes' order in the lists: dims ascending, then
        // places.
        if (!extends(first.to, d)) continue;
        Edge edge = first;
        edge.group = static_cast<uint16_t>(edge.group | bit(i));
        append(edge.to, p_.dims, d, static_cast<uint8_t>(i));
        emit(edge);
        slices_below(edge);
      }
    }
  }
  // Whether no list behind d is longer than where the step starts.
  [[nodiscard]] bool extends(const SearchState& now, int d) const {
    for (int e = d + 1; e < p_.dims; ++e) {
      if (now.length(e) > from_.length(e)) return false;
    }
    return true;
  }

  // Suffixes of one or more dims at once, on the product group.
  void gathers() { gather_from(0, from_, 0); }
  void gather_from(int d, const SearchState& now, uint16_t group) {
    if (d == p_.dims) {
      if (group == 0 || p_.allowed[group] == 0) return;
      Edge edge;
      edge.op = Op::all_gather;
      edge.group = group;
      edge.to = now;
      emit(edge);
      return;
    }
    SearchState cut = now;
    const int movable = now.length(d) - p_.frozen[static_cast<size_t>(d)];
    const int least = leaves_[static_cast<size_t>(d)];
    for (int k = 0;; ++k) {
      if (k >= least) gather_from(d + 1, cut, group);
      if (k == movable) break;
      uint8_t last = cut.sub_axis[static_cast<size_t>(cut.end_of(d) - 1)];
      drop_last(cut, p_.dims, d, 1);
      group = static_cast<uint16_t>(group | bit(last));
    }
  }

  // Any subset of the pending sub-axes at once: to R (all_reduce) or appended to dims with free
  // sub-axes sliced in between (reduce_scatter).
  void reductions() {
    const uint16_t open = from_.pending;
    for (uint16_t q = open; q != 0; q = static_cast<uint16_t>((q - 1) & open)) {
      if (p_.allowed[q] == 0 || !may_reduce(p_, from_, q)) continue;
      Edge edge;
      edge.op = Op::all_reduce;
      edge.group = q;
      edge.reduced = q;
      edge.to = from_;
      edge.to.pending = static_cast<uint16_t>(from_.pending & ~q);
      emit(edge);
      if (scalar_) continue;
      scatter_ps_ = least_scatter_ps(edge);
      if (scatter_ps_ <= limits_.most_ps) scatter(q, q, edge.to, packed(edge.to), 0);
    }
  }
  // What a reduce_scatter takes at least: with every free sub-axis sliced in the same step.
  [[nodiscard]] int64_t least_scatter_ps(const Edge& reduce) const {
    if (!p_.even || !p_.by_boxes) return limits_.least_latency_ps;
    Edge any = reduce;
    any.op = Op::reduce_scatter;
    for (unsigned left = free_ | reduce.reduced; left != 0; left &= left - 1)
      append(any.to, p_.dims, 0, static_cast<uint8_t>(__builtin_ctz(left)));
    price_collective(p_, from_, any);
    return any.cost.ps;
  }
  // Puts the reduced sub-axes `left` and free ones behind the lists, dims ascending from `first`,
  // so that all lists arise once. A slice that could come first as a step of its own is left to
  // that step: a free sub-axis only goes below a reduced one, but under a limit of the peak, where
  // the step of its own may not fit.
  void scatter(uint16_t q, uint16_t left, const SearchState& now, const Packed& packed_now,
               int first) {
    if (work_ > limits_.most_work) return;
    if (left == 0) {
      Edge edge;
      edge.op = Op::reduce_scatter;
      edge.group = q;
      edge.reduced = q;
      edge.to = now;
      emit(edge);
    }
    const unsigned free = free_ & ~sharding(now, p_.dims);
    for (int d = first; d < p_.dims; ++d) {
      const bool may_slice =
          p_.peak_limit != INT64_MAX || (now.length(d) > 0 && below_reduced(now, d, q));
      for (unsigned rest = left | (may_slice ? free : 0U); rest != 0; rest &= rest - 1) {
        const int i = __builtin_ctz(rest);
        SearchState next = now;
        append(next, p_.dims, d, static_cast<uint8_t>(i));
        const Packed packed_next = packed_with(packed_now, now, d, i);
        if (useless(next, packed_next, scatter_ps_)) continue;
        scatter(q, static_cast<uint16_t>(left & ~bit(i)), next, packed_next, d);
      }
    }
  }
  [[nodiscard]] bool below_reduced(const SearchState& now, int d, uint16_t q) const {
    for (int k = now.begin_of(d); k < now.end_of(d); ++k) {
      if (has(q, now.sub_axis[static_cast<size_t>(k)])) return true;
    }
    return false;
  }

  // A suffix of one dim moves to others, in any order and over several of them.
  void all_to_alls() {
    for (int d = 0; d < p_.dims; ++d) {
      if (leaving_dims_ > (leaves_[static_cast<size_t>(d)] > 0 ? 1 : 0)) continue;
      SearchState cut = from_;
      uint16_t group = 0;
      int movable = from_.length(d) - p_.frozen[static_cast<size_t>(d)];
      for (int k = 1; k <= movable; ++k) {
        uint8_t last = cut.sub_axis[static_cast<size_t>(cut.end_of(d) - 1)];
        drop_last(cut, p_.dims, d, 1);
        group = static_cast<uint16_t>(group | bit(last));
        if (k < leaves_[static_cast<size_t>(d)] || p_.allowed[group] == 0) continue;
        // Where boxes are even, all that it may lead to costs the same.
        Edge any;
        any.op = Op::all_to_all;
        any.group = group;
        any.to = cut;
        if (p_.even && p_.by_boxes) price_collective(p_, from_, any);
        move_ps_ = std::max(any.cost.ps, limits_.least_latency_ps);
        if (move_ps_ <= limits_.most_ps) move_onto(d, any, group, cut, packed(cut), 0);
      }
    }
  }
  void move_onto(int source, Edge& edge, uint16_t left, const SearchState& now,
                 const Packed& packed_now, int from_dim) {
    if (left == 0) {
      edge.to = now;
      emit(edge);
      return;
    }
    if (work_ > limits_.most_work) return;
    for (int d = from_dim; d < p_.dims; ++d) {
      if (d == source) continue;
      for (unsigned rest = left; rest != 0; rest &= rest - 1) {
        const int i = __builtin_ctz(rest);
        SearchState next = now;
        append(next, p_.dims, d, static_cast<uint8_t>(i));
        const Packed packed_next = packed_with(packed_now, now, d, i);
        if (useless(next, packed_next, move_ps_)) continue;
        move_onto(source, edge, static_cast<uint16_t>(left & ~bit(i)), next, packed_next, d);
      }
    }
  }

  // A pending sub-axis that only the target has, or that was reduced on the way, from R or, for a
  // sum, from the last shard of a dim, zero-filled.
  void to_partials() {
    const unsigned pending = from_.pending | from_.made;
    for (unsigned left = (p_.target.made & ~from_.made) | (p_.kept & ~pending); left != 0;
         left &= left - 1) {
      const int i = __builtin_ctz(left);
      Edge edge;
      edge.op = Op::to_partial;
      edge.group = bit(i);
      edge.to = from_;
      uint16_t& set = has(p_.kept, i) ? edge.to.pending : edge.to.made;
      set = static_cast<uint16_t>(set | bit(i));
      if (!mixes(i)) continue;
      if (has(free_, i)) {
        emit(edge);
        continue;
      }
      if (p_.target_op[static_cast<size_t>(i)] != ReduceOp::sum) continue;
      for (int d = 0; d < p_.dims; ++d) {
        if (from_.length(d) <= p_.frozen[static_cast<size_t>(d)]) continue;
        if (from_.sub_axis[static_cast<size_t>(from_.end_of(d) - 1)] != i) continue;
        drop_last(edge.to, p_.dims, d, 1);
        emit(edge);
        break;
      }
    }
  }
  void joining_sums() {
    each_joining_sum(p_, from_, [&](const SearchState& to, uint16_t sub_axis) {
      if (useless(to, packed(to), 0)) return;
      Edge edge;
      edge.op = Op::to_partial;
      edge.group = sub_axis;
      edge.to = to;
      edge.cost.ps = joining_ps;
      emit(edge);
    });
  }
  // Pending kinds that may not mix never stand side by side.
  [[nodiscard]] bool mixes(int sub_axis) const {
    for (int i = 0; i < p_.sub_axes; ++i) {
      if (has(from_.pending, i) && !may_mix(p_.source_op[static_cast<size_t>(i)],
                                            p_.target_op[static_cast<size_t>(sub_axis)]))
        return false;
    }
    return true;
  }

  // Sub-axes at the end of list d that stand where the target has others or none: a last step moves
  // at least these.
  void must_leave(int d) {
    leaves_[static_cast<size_t>(d)] = from_.length(d) - common_prefix(from_, p_.target, d);
    if (leaves_[static_cast<size_t>(d)] > 0) ++leaving_dims_;
  }

  const PlanProblem& p_;
  const SearchState& from_;
  std::vector<Edge>& out_;
  uint16_t sharding_ = 0;
  uint16_t free_ = 0;
  const MoveLimits& limits_;
  int64_t work_ = 0;
  int64_t scatter_ps_ = 0;  // of the reduce_scatters of one set of sub-axes, at least
  int64_t move_ps_ = 0;     // of the all_to_alls of one end of a list, at least
  bool scalar_ = false;
  std::array<int, max_search_dims>
      leaves_{};  // where only a last step counts: sub-axes that must leave the end of each list
  int leaving_dims_ = 0;
};

bool arrange(const PlanProblem& p, const SearchState& now, uint16_t left, int d, size_t limit,
             std::vector<SearchState>& out) {
  if (p.only_even && !cuts_evenly(p, now)) return true;
  if (d == p.dims) {
    if (out.size() == limit) return false;
    out.push_back(now);
    return true;
  }
  bool complete = arrange(p, now, left, d + 1, limit, out);
  for (int i = 0; i < p.sub_axes && complete; ++i) {
    if (!has(left, i)) continue;
    SearchState next = now;
    append(next, p.dims, d, static_cast<uint8_t>(i));
    complete = arrange(p, next, static_cast<uint16_t>(left & ~bit(i)), d, limit, out);
  }
  return complete;
}

}  // namespace

bool list_collectives(const PlanProblem& p, const SearchState& from, std::vector<Edge>& out,
                      const MoveLimits& limits) {
  return Mover(p, from, out, limits).run();
}

namespace {

// Elements of the largest piece that a rank sends to one other, for bytes_of of the op table.
int64_t piece_elements(const PlanProblem& p, const SearchState& from, const Edge& edge,
                       int64_t members) {
  const OpPiece piece = row_of(edge.op).piece;
  if (piece == OpPiece::box_after) return box_elements(p, edge.to);
  if (piece != OpPiece::overlap) return box_elements(p, from);
  if (p.even) return floor_div(box_elements(p, from), members);
  if (p.total_elements != INT64_MAX) return shared_elements(p, from, edge.to);
  const std::vector<int64_t> before = largest_box(to_state(p, from), p.tensor.shape, p.mesh_sizes);
  const std::vector<int64_t> after =
      largest_box(to_state(p, edge.to), p.tensor.shape, p.mesh_sizes);
  int64_t elements = 1;
  for (size_t d = 0; d < before.size(); ++d)
    elements = saturating_mul(elements, std::min(before[d], after[d]));
  return elements;
}

// Where all groups look alike, members in a unit of each level are products over digits.
int64_t alike_groups_ps(const PlanProblem& p, uint16_t group, const CollectiveBytes& bytes) {
  DigitMask digits = 0;
  for (unsigned left = group; left != 0; left &= left - 1)
    digits |= p.digit_set[static_cast<size_t>(__builtin_ctz(left))];
  std::array<int64_t, max_levels> members;
  const size_t levels = p.topology->levels.size();
  int64_t inside = 1;
  for (size_t l = 0; l < levels; ++l)
    members[l] = inside *= p.world.product(digits & p.world.at_level(static_cast<int>(l)));
  const std::span<const int64_t> alike(members.data(), levels);
  if (by_protocols(*p.topology, bytes.op)) return protocols_ps(*p.topology, alike, bytes);
  return traffic_ps(*p.topology, collective_traffic(alike, bytes), peers_of(bytes.op),
                    bytes.copied);
}

}  // namespace

void price_collective(const PlanProblem& p, const SearchState& from, Edge& edge) {
  const int64_t g = group_size(p, edge.group);
  const int64_t element = row_of(edge.op).reduces ? p.reduce_element : p.element;
  p.work += work::price;
  if (!p.by_boxes) {
    p.work += work::step;
    // Copies and finer tiers need staging and shapes in full.
    State before = to_state(p, from);
    State after = to_state(p, edge.to);
    StepFigures f = step_figures(before, after, p.tensor.shape, *p.levels, edge.op, g, element);
    std::string tier;
    edge.cost = {finer_ps(*p.topology, group_shapes(p, edge.group), f.bytes, tier), 1, f.wire};
    return;
  }
  const OpBytes moved =
      bytes_of(edge.op, saturating_mul(piece_elements(p, from, edge, g), element), g);
  const CollectiveBytes bytes{edge.op, moved.whole, moved.piece, 0};
  KnownTimes::Entry& known = p.known_times.slot(bytes, edge.group);
  if (known.whole != bytes.whole || known.piece != bytes.piece || known.group != edge.group ||
      known.op != edge.op) {
    const int64_t ps = p.exact_levels
                           ? alike_groups_ps(p, edge.group, bytes)
                           : collective_ps(*p.topology, group_shapes(p, edge.group), bytes);
    known = {bytes.whole, bytes.piece, edge.group, edge.op, ps};
  }
  edge.cost = {known.ps, 1, moved.wire};
}

bool collective_moves(const PlanProblem& p, const SearchState& from, std::vector<Edge>& out,
                      const MoveLimits& limits) {
  const size_t first = out.size();
  const bool whole = list_collectives(p, from, out, limits);
  for (size_t i = first; i < out.size(); ++i) {
    if (!is_local(out[i].op)) price_collective(p, from, out[i]);
  }
  return whole;
}

bool local_steps_lead_to_target(const PlanProblem& p, const SearchState& at) {
  if ((at.pending & ~p.target.pending) != 0) return false;
  // What is still to be made pending may be made of shards at the ends of lists.
  const unsigned make = (p.target.made & ~at.made) | (p.target.pending & ~at.pending);
  for (int d = 0; d < p.dims; ++d) {
    int stays = at.length(d);
    while (stays > 0 && has(make, at.sub_axis[as_index(at.begin_of(d) + stays - 1)])) --stays;
    if (common_prefix(at, p.target, d) < stays || !shards_nest(p, p.target, d, stays)) return false;
  }
  return true;
}

bool slices_lead_to(const PlanProblem& p, const SearchState& from, const SearchState& to) {
  if (from.pending != to.pending || from.made != to.made) return false;
  for (int d = 0; d < p.dims; ++d) {
    if (common_prefix(from, to, d) < from.length(d)) return false;
  }
  SearchState at = from;
  for (int d = 0; d < p.dims && !p.even; ++d) {
    for (int k = from.length(d); k < to.length(d); ++k) {
      append(at, p.dims, d, to.sub_axis[as_index(to.begin_of(d) + k)]);
      if (!shards_nest(p, at, d, k)) return false;
    }
  }
  return true;
}

int64_t peak_of(const PlanProblem& p, const SearchState& from, const Edge& edge) {
  p.work += work::step;
  const ListingWork listings(*p.levels);
  Step step;
  step.op = edge.op;
  step.mesh_dims = mesh_sub_axes(p, edge.group);
  step.state = to_state(p, edge.to);
  step.phases = edge.phases;
  step.chunks = edge.chunks;
  set_fetchers(edge.fetchers, step);
  step.far_64ths = edge.far_64ths;
  step.whole_pieces = edge.whole_pieces;
  if (edge.reduced != 0) step.reduce_op = ReduceOp::sum;
  State before = to_state(p, from);
  StepQuestion q;
  q.topology = p.topology;
  q.src_mesh = q.dst_mesh = p.mesh;
  q.tensor = &p.tensor;
  q.reduce_dtype = p.reduce_dtype;
  q.before = &before;
  q.step = &step;
  const int64_t peak = price_step_on(*p.levels, q).peak_bytes;
  p.work += listings.since();
  return peak;
}

bool all_spreads(const PlanProblem& p, const SearchState& like, uint16_t movable, size_t limit,
                 std::vector<SearchState>& out) {
  if (is_scalar(p)) {
    out.push_back(like);
    return true;
  }
  SearchState base = like;
  for (int d = 0; d < p.dims; ++d)
    drop_last(base, p.dims, d, base.length(d) - p.frozen[static_cast<size_t>(d)]);
  return arrange(p, base, movable, 0, limit, out);
}

}  // namespace meshplan
