// Which collective moves the boxes that an exchange moves, and what the finer tiers say about it.
#include <algorithm>

#include "base/int_math.h"
#include "cost/finer_tiers.h"
#include "cost/step_figures.h"
#include "transfer/sub_axes.h"

namespace meshplan {
namespace {

// The one collective for shards that disappear (`left`), appear (`came`) and pending reductions
// that are run (`reduced`), where nothing else changes. What appears beyond that is sliced
// beforehand, without moving anything.
template <class Set>
Op collective_of(const Set& left, const Set& came, const Set& reduced) {
  if (!reduced.empty()) {
    if (!left.empty()) return Op::exchange;
    if (came.includes(reduced)) return Op::reduce_scatter;
    return came.meets(reduced) ? Op::exchange : Op::all_reduce;
  }
  if (left.empty()) return Op::exchange;
  if (!came.meets(left)) return Op::all_gather;
  return came.includes(left) ? Op::all_to_all : Op::exchange;
}

struct Digits {
  DigitMask set = 0;
  [[nodiscard]] bool empty() const { return set == 0; }
  [[nodiscard]] bool includes(const Digits& other) const { return (other.set & ~set) == 0; }
  [[nodiscard]] bool meets(const Digits& other) const { return (other.set & set) != 0; }
};

struct SubAxes {
  std::vector<SubAxis> list;  // ascending
  [[nodiscard]] bool empty() const { return list.empty(); }
  [[nodiscard]] bool has(const SubAxis& sub_axis) const {
    return std::binary_search(list.begin(), list.end(), sub_axis);
  }
  [[nodiscard]] bool includes(const SubAxes& other) const {
    return std::all_of(other.list.begin(), other.list.end(),
                       [&](const SubAxis& sub_axis) { return has(sub_axis); });
  }
  [[nodiscard]] bool meets(const SubAxes& other) const {
    return std::any_of(other.list.begin(), other.list.end(),
                       [&](const SubAxis& sub_axis) { return has(sub_axis); });
  }
};

// The order without mesh dims of size 1, which cut nothing.
std::vector<SubAxis> cutting(const std::vector<SubAxis>& order) {
  std::vector<SubAxis> kept;
  std::copy_if(order.begin(), order.end(), std::back_inserter(kept),
               [](const SubAxis& sub_axis) { return sub_axis.size > 1; });
  return kept;
}

}  // namespace

SameBoxes same_boxes(const Topology& topology, const DigitWorld& world, const DigitChange& change) {
  if (change.crossed != 0 || !has_tables(topology)) return {};
  const Op op =
      collective_of(Digits{change.src_only}, Digits{change.dst_only}, Digits{change.reduced});
  if (op == Op::exchange) return {};
  const DigitMask group = change.reduced != 0 ? change.reduced : change.src_only;
  GroupShape shape;
  int64_t members = 1;
  for (size_t l = 0; l < topology.levels.size(); ++l) {
    members *= world.product(group & world.at_level(static_cast<int>(l)));
    shape.members.push_back(members);
  }
  CollectiveBytes bytes;
  bytes.op = op;
  const int64_t box = change.total_bytes / world.product(change.dst);
  bytes.whole = op == Op::reduce_scatter ? saturating_mul(box, members) : box;
  bytes.piece = ceil_div(bytes.whole, members);
  const auto price = finer_price(topology, shape, bytes);
  return price ? SameBoxes{op, *price} : SameBoxes{};
}

SameBoxes same_boxes(const LevelMap& levels, std::span<const int64_t> shape, int64_t element_bytes,
                     const State& src, const State& dst) {
  if (!has_tables(levels.topology())) return {};
  SubAxes left;
  SubAxes came;
  SubAxes reduced;
  State sliced = src;  // with what the target cuts besides
  for (size_t d = 0; d < src.shards.size(); ++d) {
    const std::vector<SubAxis> a = cutting(src.shards[d]);
    const std::vector<SubAxis> b = cutting(dst.shards[d]);
    const auto [in_a, in_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    if (in_a != a.end() && in_b != b.end()) return {};
    left.list.insert(left.list.end(), in_a, a.end());
    came.list.insert(came.list.end(), in_b, b.end());
  }
  for (const PendingSubAxis& p : reduced_between(src, dst, mesh_shape(levels.mesh())))
    reduced.list.push_back(p.sub_axis);
  for (SubAxes* sub_axes : {&left, &came, &reduced})
    std::sort(sub_axes->list.begin(), sub_axes->list.end());
  const Op op = collective_of(left, came, reduced);
  if (op == Op::exchange) return {};
  const SubAxes& group = reduced.empty() ? left : reduced;
  for (size_t d = 0; d < src.shards.size(); ++d) {
    const std::vector<SubAxis> wanted = cutting(dst.shards[d]);
    sliced.shards[d] = cutting(src.shards[d]);
    for (size_t i = sliced.shards[d].size(); i < wanted.size(); ++i) {
      if (!group.has(wanted[i])) sliced.shards[d].push_back(wanted[i]);
    }
  }
  int64_t ranks = 1;
  for (const SubAxis& sub_axis : group.list) ranks = saturating_mul(ranks, sub_axis.size);
  const StepFigures figures = step_figures(sliced, dst, shape, levels, op, ranks, element_bytes);
  SameBoxes slowest;
  for (const GroupShape& one : levels.shapes(group.list)) {
    const auto price = finer_price(levels.topology(), one, figures.bytes);
    if (price && price->ps > slowest.price.ps) slowest = {op, *price};
  }
  return slowest;
}

}  // namespace meshplan
