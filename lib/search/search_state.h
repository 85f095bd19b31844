// The optimal planner's own form of a problem: sub-axes as small numbers, states as a few bytes
//
//     mesh a 2 x b 8 on hosts of 4,      sub-axes 0 = a, 1 = b:(1)2 (across hosts),
//     tensor [64, 64]                    2 = b:(2)4 (inside)
//     S(1)S(0) = lists {1 2}{0}          a SearchState: per tensor dim the sub-axes that shard it,
//                                        major first
//
// Size-1 mesh dims are not sub-axes. Parts of a mesh dim are sub-axes only where every group is
// allowed. What both ends have in common at the front of a list may move like the rest of it:
//
//     a 8 x b 48, S(0)[0]S(0)[1] -> S(0)S(1)     over b at once: 47 peers
//     ... -> S(1)S(0) -> ...                     over a and b: 8 peers, then 6
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "base/int_math.h"
#include "cost/bounds.h"
#include "cost/collective_time.h"
#include "cost/exchange.h"
#include "mesh/mesh_table.h"
#include "plan/question.h"
#include "search/exchange_peers.h"
#include "search/exchange_way.h"
#include "search/known_exchanges.h"
#include "search/list_meetings.h"
#include "search/list_pairs.h"
#include "search/rank_sides.h"
#include "search/search_state_bytes.h"
#include "search/unit_needs.h"
#include "tensor/box.h"
#include "transfer/level_map.h"

namespace meshplan {

constexpr int max_digits_per_sub_axis = 12;
// Worlds of so few ranks are listed rank by rank.
constexpr int64_t few_ranks = 64;

[[nodiscard]] inline uint64_t hash_of(const SearchState& s) {
  std::array<uint64_t, 3> words;
  std::memcpy(words.data(), &s, sizeof s);
  uint64_t h = words[0] * 0x9e3779b97f4a7c15U;
  h = (h ^ h >> 29 ^ words[1]) * 0xbf58476d1ce4e5b9U;
  h = (h ^ h >> 32 ^ words[2]) * 0x94d049bb133111ebU;
  return h ^ h >> 29;
}

// A state's digits (transfer/digits.h): list d is digit[end[d-1] .. end[d]), what lies beyond the
// last end is not read.
struct DigitState {
  std::array<int8_t, max_digits> digit;
  std::array<uint8_t, max_search_dims> end;
  DigitMask pending;  // with either op
};

// All sub-axes at once, and where the lists end.
__extension__ using SubAxisBytes = unsigned __int128;
[[nodiscard]] inline SubAxisBytes sub_axis_bytes(const SearchState& s) {
  SubAxisBytes all = 0;
  std::memcpy(&all, s.sub_axis.data(), s.sub_axis.size());
  return all;
}
// One in the ends of list d and those behind it.
[[nodiscard]] inline uint64_t ends_from(int dims, int d) {
  return (0x0101010101010101U << 8 * d) & (~uint64_t{0} >> (64 - 8 * dims));
}

// Appends to or cuts the end of list d.
inline void append(SearchState& s, int dims, int d, uint8_t sub_axis) {
  const int at = 8 * s.end_of(d);
  const SubAxisBytes all = sub_axis_bytes(s);
  const SubAxisBytes before = (SubAxisBytes{1} << at) - 1;
  const SubAxisBytes next = (all & before) | SubAxisBytes{sub_axis} << at | (all & ~before) << 8;
  std::memcpy(s.sub_axis.data(), &next, s.sub_axis.size());
  uint64_t ends;
  std::memcpy(&ends, s.end.data(), sizeof ends);
  ends += ends_from(dims, d);
  std::memcpy(s.end.data(), &ends, sizeof ends);
}
inline void drop_last(SearchState& s, int dims, int d, int count) {
  const int at = 8 * (s.end_of(d) - count);
  const SubAxisBytes all = sub_axis_bytes(s);
  const SubAxisBytes before = (SubAxisBytes{1} << at) - 1;
  const SubAxisBytes next = (all & before) | (all >> 8 * count & ~before);
  std::memcpy(s.sub_axis.data(), &next, s.sub_axis.size());
  uint64_t ends;
  std::memcpy(&ends, s.end.data(), sizeof ends);
  ends -= ends_from(dims, d) * static_cast<uint64_t>(count);
  std::memcpy(s.end.data(), &ends, sizeof ends);
}
// How many sub-axes list d of both begins with alike.
[[nodiscard]] inline int common_prefix(const SearchState& a, const SearchState& b, int d) {
  int k = 0;
  while (k < a.length(d) && k < b.length(d) &&
         a.sub_axis[as_index(a.begin_of(d) + k)] == b.sub_axis[as_index(b.begin_of(d) + k)])
    ++k;
  return k;
}
// Sub-axes in any list.
[[nodiscard]] uint16_t sharding(const SearchState& s, int dims);

// Times of collectives that were priced, by what decides them; a state leads on by many alike.
struct KnownTimes {
  struct Entry {
    int64_t whole = -1;  // bytes, as of CollectiveBytes
    int64_t piece = 0;
    uint16_t group = 0;
    Op op = Op::slice;
    int64_t ps = 0;
  };
  std::array<Entry, 16> entries{};
  Entry& slot(const CollectiveBytes& bytes, uint16_t group) {
    const uint64_t key = static_cast<uint64_t>(bytes.whole) ^ uint64_t { group } << 32 ^
                         static_cast<uint64_t>(bytes.op) << 52;
    return entries[key * 0x9e3779b97f4a7c15U >> 60];
  }
};

// Tells problems of a thread apart: a copy is another one.
struct ProblemNumber {
  uint64_t value = next();
  ProblemNumber() = default;
  ProblemNumber(const ProblemNumber& /*other*/) {}
  ProblemNumber& operator=(const ProblemNumber& /*other*/) {
    value = next();
    return *this;
  }
  ProblemNumber(ProblemNumber&&) = default;
  ProblemNumber& operator=(ProblemNumber&&) = default;
  ~ProblemNumber() = default;
  static uint64_t next() {
    thread_local uint64_t last = 0;
    return ++last;
  }
};

struct PlanProblem {
  ProblemNumber number;
  const LevelMap* levels = nullptr;
  const Topology* topology = nullptr;  // what steps are priced in
  LeastTimes times;                    // what bounds are taken in
  Topology bounded;                    // the same as levels alone (bound_topology)
  const Mesh* mesh = nullptr;
  std::vector<int64_t> mesh_sizes;
  TensorMeta tensor;
  std::optional<DType> reduce_dtype;
  int64_t element = 1;         // bytes
  int64_t reduce_element = 1;  // bytes of an element while it is reduced
  int sub_axes = 0;
  bool cut_at_levels = false;  // some mesh dim where neither end cuts it
  std::array<SubAxis, max_sub_axes> sub_axis{};
  std::array<int64_t, max_sub_axes> size{};
  int dims = 0;  // tensor dims that take part
  std::array<int32_t, max_search_dims> tensor_dim{};
  std::array<int, max_search_dims> frozen{};  // sub-axes of the common prefix that stay (even_part)
  uint16_t all = 0;                           // every sub-axis
  uint16_t kept = 0;   // pending in both ends with one op; may be reduced and made again on the way
  uint16_t joins = 0;  // may be made sums on the way, beside what is pending (joining_sums.h)
  std::array<ReduceOp, max_sub_axes> source_op{};
  std::array<ReduceOp, max_sub_axes> target_op{};
  SearchState source;
  SearchState target;
  bool even = true;        // every order of sub-axes cuts every extent evenly: boxes are products
  bool only_even = false;  // boxes are products as states that do not cut evenly are left out
  bool may_move_nothing = false;  // boxes may be empty: some exchanges between two states are free
  // Of a bundle: no laps, no far shares, nothing fetched by all (ExchangeQuestion).
  bool in_rounds = false;
  bool exact_levels = true;    // digits of sub-axes are known: exchanges have closed forms
  bool all_may_fetch = false;  // exchanges fetched by all are among the moves (ExchangeWay::by_all)
  int64_t total_elements = 1;
  int64_t idle_elements = 1;  // along the tensor dims that do not take part
  int64_t idle_longest = 1;   // longest extent among tensor dims that do not take part
  // Digits of each sub-axis, for closed forms.
  DigitWorld world;
  std::array<std::array<int8_t, max_digits_per_sub_axis>, max_sub_axes> digit_of{};
  std::array<int8_t, max_sub_axes> digit_count{};
  std::array<DigitMask, max_sub_axes> digit_set{};
  bool sub_axes_are_digits = true;  // sub-axis i is digit i
  bool always_line_up = true;       // every digit has one size: any two states line up
  // Of the tensor.
  int64_t digit_bytes = 0;
  int64_t digit_reduce_bytes = 0;  // the same while it is reduced
  // For bounds that digits do not answer: of every rank, or of a few at the corners of a large
  // mesh, and of the members of each unit below.
  RankSides sides;
  [[nodiscard]] size_t listed_ranks() const { return sides.ranks_of(0); }
  // By sub-axis, where levels are not exact: the most coordinates on it of one unit's ranks.
  std::array<int64_t, max_sub_axes> inside{};
  ListMeetings meetings;    // the same
  mutable ListPairs pairs;  // of lists, on these ranks and the units below
  mutable KnownPeers known_peers;
  mutable KnownExchanges known_exchanges;
  // Looked at where levels cut the mesh unevenly or states the tensor (telling_units.h), and the
  // one to look at first. Where only digits do not line up, they tell what all fetch alone.
  std::vector<UnitRanks> units;
  bool units_tell = false;  // of bounds, and of exchanges in every way
  mutable size_t telling_unit = 0;
  mutable UnitBoxTable unit_boxes;  // of their members
  mutable UnitPair unit_pair;
  int64_t ranks = 1;
  std::vector<uint8_t> allowed;     // by mask of sub-axes: a collective may run on it
  int64_t state_limit = INT64_MAX;  // bytes of the largest box of a state on the way
  int64_t peak_limit = INT64_MAX;   // peak of any step
  bool one_reduction = false;
  // No measured table and no copy term: collectives are priced from boxes alone.
  bool by_boxes = true;
  mutable std::vector<const std::vector<GroupShape>*> shapes;  // by mask
  uint16_t source_pending = 0;                                 // pending before the first step
  Shortcuts shortcuts;                                         // taken in setting it up
  mutable KnownTimes known_times;                              // of collectives
  mutable TurnTable turns;         // of whole pieces, where digits are known
  mutable bool estimated = false;  // some price was an estimate
  mutable int64_t work = 0;        // units (search/work.h) that its functions took so far
  // Of these what was worked out once for many pairs of states, and not again if one is asked
  // again.
  mutable int64_t shared_work = 0;
  void share_work(int64_t more) const {
    work += more;
    shared_work += more;
  }
};

// Where mesh dims are cut into sub-axes, beside where the states of both ends cut them.
enum class Cuts : uint8_t {
  // Where the parts inside and outside of units meet; where units cut a dim unevenly over which a
  // sum is reduced, off the part that lies inside of all units. With more parts than a SearchState
  // holds nowhere, which is a shortcut.
  at_levels,
  of_ends,  // nowhere
};

// `request`: the question's, or one that its plans are made of; `target`: the state to reach
// (request.dst, or another order of it). nullopt with more sub-axes or dims than a SearchState
// holds.
[[nodiscard]] std::optional<PlanProblem> make_problem(const LevelMap& levels,
                                                      const PlanQuestion& question,
                                                      const Request& request, const State& target,
                                                      Cuts cuts = Cuts::at_levels);

// The same question with the states alone that cut evenly, which is answered by closed forms; both
// ends cut evenly. The common prefix of both ends stays in the lists, frozen. A plan of it is one
// of the whole question, but may not be the cheapest.
[[nodiscard]] PlanProblem even_part(const PlanProblem& p);
// Those of the frozen prefixes: they stay in the lists, so they are pending in no state.
[[nodiscard]] uint16_t frozen_sub_axes(const PlanProblem& p);

// Whether there are so few states that searches ask for the same pairs of them again and again: of
// 3 sub-axes and 2 tensor dims there are 49 lists; one sub-axis more makes 261, one dim more 106.
[[nodiscard]] inline bool has_few_states(const PlanProblem& p) {
  return p.sub_axes <= 3 && p.dims <= 2;
}

// Nothing shards a scalar: it has one list, which stays empty.
[[nodiscard]] inline bool is_scalar(const PlanProblem& p) { return p.tensor_dim[0] < 0; }

// The sub-axes that make up `whole`, as bits: numbers ascend from the major one.
[[nodiscard]] uint16_t sub_axes_within(const PlanProblem& p, const SubAxis& whole);

[[nodiscard]] State to_state(const PlanProblem& p, const SearchState& s);

// Sub-axes of list d from `begin` on that continue one another in one mesh dim: they cut as one.
// Those from the start of the mesh dim take chunks of what the whole dim would be cut into
// (tensor/box.cc).
struct SubAxisRun {
  int end = 0;
  int64_t parts = 1;     // that the run has
  int64_t cut_into = 1;  // a multiple of them
  // Of so many elements what each part takes, but for the last ones.
  [[nodiscard]] int64_t chunk_of(int64_t width) const {
    return ceil_div(width, cut_into) * floor_div(cut_into, parts);
  }
};
[[nodiscard]] SubAxisRun run_of_sub_axes(const PlanProblem& p, const SearchState& s, int d,
                                         int begin);

// Whether every shard by all of list d lies in the one by its first k sub-axes. Not where both end
// in one run of parts of a mesh dim, off its start, that does not cut evenly.
//
//     [2], a of 8    a:(2)2 cuts it at 1, a:(2)4 into 1 1 0 0: its second shard lies in the half
//                    that the first and the second quarter do not share
[[nodiscard]] bool shards_nest(const PlanProblem& p, const SearchState& s, int d, int k);

// Whether all shards of every tensor dim are as wide. Law: as cuts_evenly of tensor/box.h.
[[nodiscard]] bool cuts_evenly(const PlanProblem& p, const SearchState& s);
// The same of dim d alone, which exists.
[[nodiscard]] bool cuts_evenly(const PlanProblem& p, const SearchState& s, int d);
// Elements of the largest box.
[[nodiscard]] int64_t box_elements(const PlanProblem& p, const SearchState& s);
// Elements that boxes of both may share at most; no more than an int64_t holds are counted.
[[nodiscard]] int64_t shared_elements(const PlanProblem& p, const SearchState& a,
                                      const SearchState& b);
[[nodiscard]] int64_t group_size(const PlanProblem& p, uint16_t mask);
[[nodiscard]] const std::vector<GroupShape>& group_shapes(const PlanProblem& p, uint16_t mask);
// Mesh sub-axes of a mask in mesh order, adjacent parts of one mesh dim joined.
[[nodiscard]] std::vector<SubAxis> mesh_sub_axes(const PlanProblem& p, uint16_t mask);

[[nodiscard]] DigitState digits_of(const PlanProblem& p, const SearchState& s);
// Whether the boxes of both states are products of digits, so that closed forms answer.
[[nodiscard]] bool boxes_are_products(const PlanProblem& p, const SearchState& from,
                                      const SearchState& to);
// Lines up two states for bounds (`longest` is not set); false where digits do not match, or boxes
// are not products of them: the slow engines answer then.
[[nodiscard]] bool line_up(const PlanProblem& p, const DigitState& from, const DigitState& to,
                           DigitChange& out);
// Whether closed forms answer of an exchange between them: both.
[[nodiscard]] bool lines_up(const PlanProblem& p, const SearchState& from, const SearchState& to,
                            DigitChange& change);
// Extent of the longest dim of one piece between two states that line up.
[[nodiscard]] int64_t longest_of_piece(const PlanProblem& p, const DigitState& from,
                                       const DigitState& to);

// Bytes of an element on the way between two states, the least that any step moves it in.
[[nodiscard]] inline int64_t wire_element(const PlanProblem& p, const SearchState& from,
                                          const SearchState& to) {
  return (from.pending & ~to.pending) != 0 ? std::min(p.element, p.reduce_element) : p.element;
}

// Whether a unit of the innermost level can have several members that want one box of `to`: only
// there two phases pay, but for laps.
[[nodiscard]] bool members_share(const PlanProblem& p, const SearchState& to);
// Whether ranks of the mesh lie in several units of the topology's innermost level.
[[nodiscard]] bool has_two_levels(const PlanProblem& p);
// Whether an exchange between two states may go in this way: in two phases where members share a
// box, or may fetch in laps; by all where nothing is pending, no more is listed than
// whole_mesh_listed, and, where both states line up, members of units miss unevenly (all_fetch.h).
[[nodiscard]] bool may_go(const PlanProblem& p, const SearchState& from, const SearchState& to,
                          ExchangeWay way);

// Whether exchanges that reduce nothing may have a far share.
[[nodiscard]] bool may_have_far_share(const PlanProblem& p, ExchangeWay way);
// Price of an exchange between two states, reducing the sub-axes that are pending before and not
// after. One above `most_ps` is of no use, and may be told too low, but not as low as that.
// `plain`: in no laps and without a far share, as these take more memory.
[[nodiscard]] ExchangeCost price_between(const PlanProblem& p, const SearchState& from,
                                         const SearchState& to, ExchangeWay way,
                                         int64_t most_ps = INT64_MAX, bool plain = false);
// What no plan from `from` to `to` can beat. `growing`: nor one from any state that has more
// sub-axes behind the lists of `from`. Above `enough_ps` it may be more.
[[nodiscard]] Bounds bound_between(const PlanProblem& p, const SearchState& from,
                                   const SearchState& to, bool growing = false,
                                   int64_t enough_ps = INT64_MAX);
// The part of it that boxes of so many elements tell, the largest before and after: rank 0 has
// both, and misses what the second is larger by. 0 where sums may join others. Told in a fraction
// of the time.
[[nodiscard]] int64_t larger_box_ps(const PlanProblem& p, const SearchState& from,
                                    const SearchState& to, int64_t from_elements,
                                    int64_t to_elements);
// What no plan between them that communicates in two steps or more can beat, ps.
[[nodiscard]] int64_t several_between_ps(const PlanProblem& p, const SearchState& from,
                                         const SearchState& to);
// Sub-axes pending in `to` that a plan from `from` has yet to make, or may reduce and make again:
// the ranks that differ on these alone hold each value of the target between them.
[[nodiscard]] uint16_t joined_sub_axes(const PlanProblem& p, const SearchState& from,
                                       const SearchState& to);

}  // namespace meshplan
