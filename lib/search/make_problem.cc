// Sets up a question in the optimal planner's own form: which factors of mesh dims are sub-axes and
// digits, which tensor dims take part, which groups are allowed and how much memory.
#include <algorithm>
#include <numeric>

#include "base/int_math.h"
#include "cost/exchange.h"
#include "cost/finer_tiers.h"
#include "cost/listed_bounds.h"
#include "cost/protocols.h"
#include "search/joining_sums.h"
#include "search/mesh_cuts.h"
#include "search/search_state.h"
#include "search/telling_units.h"
#include "tensor/box.h"

namespace meshplan {
namespace {

// Of the size of a mesh dim.
constexpr int64_t largest_divisor_tried = int64_t{1} << 16;

void list_every_rank(PlanProblem& p) {
  std::vector<int64_t> all(static_cast<size_t>(p.ranks));
  std::iota(all.begin(), all.end(), int64_t{0});
  p.sides = RankSides(p.sub_axes);
  p.sides.add_ranks(p, all);
}

// Ranks that are first or last on every sub-axis: what two orders of shards make a rank miss, one
// of these misses as a rule.
void list_corners(PlanProblem& p) {
  constexpr uint32_t most = 32;
  std::vector<int32_t> coordinates;
  const uint32_t corners = p.sub_axes < 5 ? uint32_t{1} << p.sub_axes : most;
  for (uint32_t k = 0; k < corners; ++k) {
    // Every corner where there are few; else the five sub-axes of largest weight in turn, state
    // evenly.
    const uint32_t bits = p.sub_axes <= 5 ? k : k * 0x9e3779b1U >> (32 - p.sub_axes);
    for (int i = 0; i < p.sub_axes; ++i) {
      coordinates.push_back(
          (bits >> i & 1) != 0 ? static_cast<int32_t>(p.size[static_cast<size_t>(i)] - 1) : 0);
    }
  }
  p.sides = RankSides(p.sub_axes);
  p.sides.add_part(coordinates);
}

// The size of a sub-axis's part on the level of `digit`; 1: none.
int64_t part_of(const LevelDigit& digit, const SubAxis& sub_axis) {
  const int64_t lo = std::max(digit.before, sub_axis.before);
  const int64_t hi = std::min(digit.before * digit.size, sub_axis.before * sub_axis.size);
  return hi > lo ? hi / lo : 1;
}

class ProblemMaker {
 public:
  // `made`: empty.
  ProblemMaker(const LevelMap& levels, const PlanQuestion& question, const Request& request,
               const State& target, Cuts cuts, PlanProblem& made)
      : levels_(levels),
        meshes_(*question.meshes),
        request_(request),
        target_(target),
        options_(*question.options),
        crosses_(question.request->src_mesh != question.request->dst_mesh),
        parks_anywhere_(question.parks_anywhere),
        cuts_(cuts),
        p_(made) {}

  // False: more sub-axes or tensor dims than a search holds.
  bool make() {
    set_question();
    if (!find_sub_axes() || !find_dims()) return false;
    set_ends();
    find_evenness();
    find_digits();
    p_.ranks = mesh_size(*p_.mesh);
    list_ranks();
    set_joins();
    const bool cut_evenly = p_.exact_levels && p_.even;
    if (!cut_evenly || (all_may_fetch() && !p_.always_line_up)) look_at_units(p_);
    p_.units_tell = !cut_evenly && !p_.units.empty();
    p_.inside = inside_units(p_);
    set_bytes();
    p_.all_may_fetch = all_may_fetch() && (cut_evenly || p_.units_tell);
    allow_groups();
    limit_memory();
    return true;
  }

 private:
  void set_question() {
    p_.levels = &levels_;
    p_.topology = &levels_.topology();
    p_.mesh = &levels_.mesh();
    p_.mesh_sizes = mesh_shape(*p_.mesh);
    p_.tensor = request_.tensor;
    p_.reduce_dtype = request_.reduce_dtype;
    p_.element = element_bytes(request_.tensor.dtype);
    p_.reduce_element = request_.reduce_dtype ? element_bytes(*request_.reduce_dtype) : p_.element;
    p_.one_reduction = options_.one_reduction;
    p_.by_boxes = p_.topology->tables.empty() && p_.topology->copy_mb_per_s == 0;
    const bool reduces = !request_.src.partial.empty() || !target_.partial.empty();
    p_.times = LeastTimes(*p_.topology, reduces);
    p_.bounded = bound_topology(*p_.topology, reduces);
  }

  bool find_sub_axes() {
    MeshCuts of_dim;
    for (size_t m = 0; m < p_.mesh->dims.size(); ++m) {
      of_dim.find(levels_, m, request_.src, target_, cuts_ == Cuts::at_levels);
      p_.cut_at_levels = p_.cut_at_levels || of_dim.at_levels();
      const std::vector<int64_t>& cuts = of_dim.cuts();
      for (size_t i = 0; i + 1 < cuts.size(); ++i) {
        const int64_t size = floor_div(cuts[i + 1], cuts[i]);
        if (size == 1) continue;
        if (p_.sub_axes == max_sub_axes) return false;
        p_.sub_axis[static_cast<size_t>(p_.sub_axes)] = {static_cast<int32_t>(m), cuts[i], size};
        p_.size[static_cast<size_t>(p_.sub_axes)] = size;
        ++p_.sub_axes;
      }
    }
    p_.all = static_cast<uint16_t>((1U << p_.sub_axes) - 1);
    return true;
  }

  // Calls visit(number) for the sub-axes that make up a sub-axis, major first.
  template <class Visit>
  void each_sub_axis_of(const SubAxis& whole, Visit visit) const {
    for (unsigned left = sub_axes_within(p_, whole); left != 0; left &= left - 1)
      visit(static_cast<uint8_t>(__builtin_ctz(left)));
  }
  // The sub-axes of a mesh dim, as bits.
  [[nodiscard]] uint16_t mask_of(size_t mesh_dim) const {
    uint16_t mask = 0;
    for (int i = 0; i < p_.sub_axes; ++i) {
      if (static_cast<size_t>(p_.sub_axis[as_index(i)].mesh_dim) == mesh_dim)
        mask = static_cast<uint16_t>(mask | 1U << i);
    }
    return mask;
  }

  // Tensor dims that take part: those that either end shards, then the widest others up to the room
  // there is. One of extent 1, too, where all that is parked lies on one rank: next to a crossing,
  // as the other mesh may start or end with that, and where cuts are uneven, as few ranks that hold
  // much may do better through one of their unit. Where all is cut evenly, as many hold the same.
  bool find_dims() {
    const std::vector<int64_t>& shape = request_.tensor.shape;
    const auto rank = static_cast<int32_t>(shape.size());
    std::vector<int32_t> order;
    std::vector<int32_t> idle;
    std::optional<int32_t> of_one;
    bool has_one = false;
    for (int32_t d = 0; d < rank; ++d) {
      const auto at = static_cast<size_t>(d);
      if (!request_.src.shards[at].empty() || !target_.shards[at].empty()) {
        order.push_back(d);
        has_one = has_one || shape[at] == 1;
      } else if (shape[at] > 1) {
        idle.push_back(d);
      } else if (shape[at] == 1) {
        of_one = d;
      }
    }
    if (order.size() > max_search_dims) return false;
    if (of_one && !has_one && (crosses_ || !all_cut_evenly(order) || !all_cut_evenly(idle)))
      idle.push_back(*of_one);
    if (idle.size() > 1) {
      std::stable_sort(idle.begin(), idle.end(), [&](int32_t a, int32_t b) {
        return shape[static_cast<size_t>(a)] > shape[static_cast<size_t>(b)];
      });
    }
    // A dim that neither end shards is only a place to park sub-axes: a few serve as well as many,
    // as a rule.
    const size_t enough_dims = parks_anywhere_ ? max_search_dims : 4;
    for (const int32_t d : idle) {
      if (order.size() >= enough_dims) {
        p_.shortcuts.add(Shortcut::parking_dims);
        break;
      }
      order.push_back(d);
    }
    std::sort(order.begin(), order.end());
    if (order.empty() && rank > 0) order.push_back(0);
    p_.dims = static_cast<int>(order.size());
    for (size_t i = 0; i < order.size(); ++i) p_.tensor_dim[i] = order[i];
    for (int32_t d = 0; d < rank; ++d) {
      const int64_t extent = shape[static_cast<size_t>(d)];
      p_.total_elements = saturating_mul(p_.total_elements, extent);
      if (std::find(order.begin(), order.end(), d) == order.end())
        p_.idle_longest = std::max(p_.idle_longest, extent);
    }
    p_.idle_elements = p_.total_elements;
    for (const int32_t d : order) {
      if (p_.total_elements > 0) p_.idle_elements /= shape[static_cast<size_t>(d)];
    }
    scalar_ = p_.dims == 0;
    if (scalar_) p_.dims = 1;  // a list that stays empty
    if (scalar_) p_.tensor_dim[0] = -1;
    return true;
  }

  // Whether every order of sub-axes cuts these tensor dims evenly.
  [[nodiscard]] bool all_cut_evenly(const std::vector<int32_t>& dims) const {
    const int64_t divisor = even_divisor();
    return std::all_of(dims.begin(), dims.end(), [&](int32_t d) {
      return request_.tensor.shape[static_cast<size_t>(d)] % divisor == 0;
    });
  }

  SearchState spread_of(const State& state, std::array<ReduceOp, max_sub_axes>& ops) {
    SearchState s;
    for (int d = 0; d < p_.dims && !scalar_; ++d) {
      const auto tensor_dim = static_cast<size_t>(p_.tensor_dim[static_cast<size_t>(d)]);
      for (const SubAxis& sub_axis : state.shards[tensor_dim]) {
        each_sub_axis_of(sub_axis, [&](uint8_t id) { append(s, p_.dims, d, id); });
      }
    }
    for (const PendingSubAxis& pending : state.partial) {
      each_sub_axis_of(pending.sub_axis, [&](uint8_t id) {
        ops[id] = pending.op;
        s.pending = static_cast<uint16_t>(s.pending | 1U << id);
      });
    }
    return s;
  }

  void set_ends() {
    p_.source = spread_of(request_.src, p_.source_op);
    p_.target = spread_of(target_, p_.target_op);
    for (int i = 0; i < p_.sub_axes; ++i) {
      const auto at = static_cast<size_t>(i);
      const auto bit = static_cast<uint16_t>(1U << i);
      if ((p_.source.pending & p_.target.pending & bit) != 0 &&
          p_.source_op[at] == p_.target_op[at])
        p_.kept = static_cast<uint16_t>(p_.kept | bit);
    }
    p_.source_pending = p_.source.pending;
    p_.target.made = static_cast<uint16_t>(p_.target.pending & ~p_.kept);
    p_.target.pending = p_.kept;
  }

  void set_joins() {
    p_.joins = joining_sub_axes(p_);
    for (unsigned left = p_.joins; left != 0; left &= left - 1)
      p_.source_op[as_index(__builtin_ctz(left))] = ReduceOp::sum;
  }

  [[nodiscard]] int64_t product_of_sub_axes() const {
    int64_t all = 1;
    for (int i = 0; i < p_.sub_axes; ++i)
      all = saturating_mul(all, p_.size[static_cast<size_t>(i)]);
    return all;
  }

  // What an extent must divide by for every order of sub-axes to cut it evenly. The first part of a
  // mesh dim cuts where the whole dim would (tensor/box.h), also behind all other sub-axes:
  //
  //     a 4 as a:(1)2 and a:(2)2    [4] cut by a:(2)2, then by a:(1)2: 2 rows by 4: 2 and none
  [[nodiscard]] int64_t even_divisor() const {
    const int64_t all = product_of_sub_axes();
    int64_t divisor = all;
    for (int i = 0; i < p_.sub_axes; ++i) {
      const SubAxis& sub_axis = p_.sub_axis[static_cast<size_t>(i)];
      if (sub_axis.before != 1) continue;
      const int64_t behind =
          floor_div(p_.mesh_sizes[static_cast<size_t>(sub_axis.mesh_dim)], sub_axis.size);
      const int64_t needed = saturating_mul(all, behind);
      divisor = saturating_mul(divisor, floor_div(needed, std::gcd(divisor, needed)));
    }
    return divisor;
  }

  void find_evenness() {
    const int64_t all = product_of_sub_axes();
    const int64_t divisor = even_divisor();
    for (int d = 0; d < p_.dims && !scalar_; ++d) {
      const int64_t extent =
          request_.tensor.shape[static_cast<size_t>(p_.tensor_dim[static_cast<size_t>(d)])];
      p_.even = p_.even && extent % divisor == 0;
      // Chunks that are rounded up leave none to the last parts only where extents are small.
      if (extent == 0 || (extent % all != 0 && extent / all < all)) p_.may_move_nothing = true;
    }
  }

  // Whether the parts of sub-axes on levels have several sizes.
  [[nodiscard]] bool parts_differ() const {
    int64_t part = 1;  // the size of every part so far
    for (int i = 0; i < p_.sub_axes && levels_.regular(); ++i) {
      const SubAxis& sub_axis = p_.sub_axis[static_cast<size_t>(i)];
      for (const LevelDigit& digit : levels_.digits(static_cast<size_t>(sub_axis.mesh_dim))) {
        const int64_t size = part_of(digit, sub_axis);
        if (size == 1) continue;
        if (part != 1 && size != part) return true;
        part = size;
      }
    }
    return false;
  }

  void add_digit(int sub_axis, int64_t size, int level) {
    const auto at = static_cast<size_t>(sub_axis);
    if (p_.digit_count[at] == max_digits_per_sub_axis || !p_.world.add(size, level)) {
      p_.exact_levels = false;
      return;
    }
    const int digit = p_.world.count() - 1;
    p_.digit_set[at] |= DigitMask{1} << digit;
    p_.digit_of[at][static_cast<size_t>(p_.digit_count[at]++)] = static_cast<int8_t>(digit);
    p_.sub_axes_are_digits = p_.sub_axes_are_digits && digit == sub_axis;
    p_.always_line_up = p_.always_line_up && size == p_.world.size(0);
  }

  // Digits: each sub-axis's part on one level; where these have several sizes they are cut into
  // primes, so that 4 lines up with 2 and 2.
  void find_digits() {
    const bool cut_to_primes = parts_differ();
    p_.exact_levels = levels_.regular();
    for (int i = 0; i < p_.sub_axes && p_.exact_levels; ++i) {
      const SubAxis& sub_axis = p_.sub_axis[static_cast<size_t>(i)];
      if (!levels_.aligned(sub_axis)) p_.exact_levels = false;
      for (const LevelDigit& digit : levels_.digits(static_cast<size_t>(sub_axis.mesh_dim))) {
        int64_t left = part_of(digit, sub_axis);
        if (left == 1 || !p_.exact_levels) continue;
        // What has no divisor up to there stays one digit: it lines up with itself, or not at all.
        const int64_t last = cut_to_primes ? largest_divisor_tried : 1;
        for (int64_t prime = 2; prime <= last && prime * prime <= left; ++prime) {
          while (left % prime == 0 && left > prime) {
            add_digit(i, prime, digit.level);
            left /= prime;
          }
        }
        add_digit(i, left, digit.level);
      }
    }
    p_.always_line_up = p_.always_line_up && p_.exact_levels;
  }

  // What stands for closed forms where those do not answer.
  void list_ranks() {
    if (p_.even && p_.always_line_up) return;
    if (p_.ranks <= few_ranks) {
      list_every_rank(p_);
    } else {
      list_corners(p_);
    }
  }

  // Whether exchanges that all fetch are looked at, in some way.
  [[nodiscard]] bool all_may_fetch() const {
    return !p_.in_rounds && has_two_levels(p_) && p_.ranks <= whole_mesh_listed &&
           p_.total_elements != 0 && p_.total_elements != INT64_MAX;
  }

  void set_bytes() {
    p_.digit_bytes = p_.element;
    for (const int64_t extent : p_.tensor.shape)
      p_.digit_bytes = saturating_mul(p_.digit_bytes, extent);
    p_.digit_reduce_bytes = saturating_mul(p_.digit_bytes / p_.element, p_.reduce_element);
  }

  // Which sets of sub-axes a collective may run on: every set, or those of one mesh dim and of
  // flattens.
  void allow_groups() {
    const size_t masks = size_t{1} << p_.sub_axes;
    p_.allowed.assign(masks, options_.groups == GroupPolicy::any ? 1 : 0);
    p_.shapes.assign(masks, nullptr);
    if (options_.groups == GroupPolicy::any) return;
    std::vector<size_t> wide;
    for (size_t m = 0; m < p_.mesh->dims.size(); ++m) {
      if (mask_of(m) != 0) wide.push_back(m);
    }
    for (const size_t m : wide) p_.allowed[mask_of(m)] = 1;
    // Sets of several mesh dims, where anything can declare one: a flatten, or a root of one dim.
    const bool any_set = !meshes_.flattens.empty() || root_of(meshes_, *p_.mesh).dims.size() == 1;
    for (size_t pick = 1; any_set && pick < size_t{1} << wide.size(); ++pick) {
      if ((pick & (pick - 1)) == 0) continue;
      std::vector<size_t> set;
      uint16_t mask = 0;
      for (size_t i = 0; i < wide.size(); ++i) {
        if ((pick >> i & 1) == 0) continue;
        set.push_back(wide[i]);
        mask = static_cast<uint16_t>(mask | mask_of(wide[i]));
      }
      if (find_native_flatten(meshes_, *p_.mesh, set)) p_.allowed[mask] = 1;
    }
  }

  void limit_memory() {
    if (options_.max_memory_bytes == 0) {
      p_.state_limit = saturating_mul(
          std::max(box_elements(p_, p_.source), box_elements(p_, p_.target)), p_.element);
    } else if (options_.max_memory_bytes > 0 && options_.max_memory_bytes < above_every_peak()) {
      p_.peak_limit = options_.max_memory_bytes;
    }
  }
  // No step's peak: it has two boxes of the tensor, receives at most one from each rank and sends
  // one to each, in two phases twice, or packs and unpacks one of each in buffers. A search without
  // a limit lists fewer moves and knows shorter ways to the same plans.
  [[nodiscard]] int64_t above_every_peak() const {
    int64_t whole = std::max(p_.element, p_.reduce_element);
    for (const int64_t extent : p_.tensor.shape) whole = saturating_mul(whole, extent);
    return saturating_mul(saturating_mul(4, mesh_size(*p_.mesh) + 1), whole);
  }

  const LevelMap& levels_;
  const MeshTable& meshes_;
  const Request& request_;
  const State& target_;
  const PlanOptions& options_;
  const bool crosses_;  // the question does, of which this is one mesh's part
  const bool parks_anywhere_;
  const Cuts cuts_;
  PlanProblem& p_;
  bool scalar_ = false;
};

}  // namespace

std::optional<PlanProblem> make_problem(const LevelMap& levels, const PlanQuestion& question,
                                        const Request& request, const State& target, Cuts cuts) {
  std::optional<PlanProblem> made(std::in_place);
  made->in_rounds = question.in_rounds;
  const bool fits = ProblemMaker(levels, question, request, target, cuts, *made).make();
  if (fits) return made;
  if (cuts == Cuts::of_ends) return std::nullopt;
  made = make_problem(levels, question, request, target, Cuts::of_ends);
  if (made) made->shortcuts.add(Shortcut::too_many_axes);
  return made;
}

}  // namespace meshplan
