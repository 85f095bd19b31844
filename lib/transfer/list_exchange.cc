#include "transfer/list_exchange.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/int_math.h"

namespace meshplan {
namespace {

bool pending_in(const State& state, const Atom& atom) {
  return std::any_of(state.partial.begin(), state.partial.end(), [&](const PendingAtom& p) { return p.atom == atom; });
}

// Coordinates on a list of atoms as one number.
int64_t index_on(const std::vector<Atom>& atoms, std::span<const int64_t> mesh_shape, std::span<const int64_t> coordinates) {
  int64_t index = 0;
  for (const Atom& atom : atoms) {
    const auto m = static_cast<size_t>(atom.mesh_dim);
    index = index * atom.size + atom_coordinate(atom, mesh_shape[m], coordinates[m]);
  }
  return index;
}

// One mesh under one state, by index in the mesh.
struct Boxes {
  std::vector<Interval> box;  // index-major
  std::vector<int64_t> contribution;
};

Boxes boxes_of(const Mesh& mesh, const State& state, std::span<const int64_t> shape, const std::vector<Atom>& reduced) {
  Boxes out;
  const std::vector<int64_t> sizes = mesh_shape(mesh);
  const int64_t ranks = mesh_size(mesh);
  out.box.reserve(static_cast<size_t>(ranks) * shape.size());
  std::vector<int64_t> at(sizes.size(), 0);
  for (int64_t i = 0; i < ranks; ++i) {
    for (size_t d = 0; d < shape.size(); ++d) out.box.push_back(shard_interval(state.shards[d], shape[d], sizes, at));
    if (!reduced.empty()) out.contribution.push_back(index_on(reduced, sizes, at));
    for (size_t m = sizes.size(); m-- > 0 && ++at[m] == sizes[m];) at[m] = 0;
  }
  return out;
}

// The chosen indices of a mesh with their global ids, ascending by id; `number`: an index's place among the chosen.
struct Chosen {
  int64_t id = 0;
  int64_t number = 0;
};
std::vector<Chosen> by_id(const Mesh& mesh, int64_t copy, std::span<const int64_t> chosen) {
  std::vector<Chosen> order;
  order.reserve(chosen.size());
  for (size_t i = 0; i < chosen.size(); ++i) {
    order.push_back({rank_at(*mesh.universe, position_of(mesh, copy, chosen[i])), static_cast<int64_t>(i)});
  }
  const auto before = [](const Chosen& a, const Chosen& b) { return a.id < b.id; };
  if (!std::is_sorted(order.begin(), order.end(), before)) std::sort(order.begin(), order.end(), before);
  return order;
}

// The chosen indices of a mesh as one side of an exchange, ascending by id.
SideBoxes side_of(const Mesh& mesh, int64_t copy, const Boxes& boxes, std::span<const int64_t> chosen, size_t dims) {
  SideBoxes side;
  side.dims = static_cast<int>(dims);
  const std::vector<Chosen> order = by_id(mesh, copy, chosen);
  side.id.reserve(order.size());
  side.box.reserve(order.size() * dims);
  for (const auto& [id, number] : order) {
    const int64_t i = chosen[static_cast<size_t>(number)];
    side.id.push_back(id);
    const auto at = boxes.box.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(i) * dims);
    side.box.insert(side.box.end(), at, at + static_cast<std::ptrdiff_t>(dims));
    if (!boxes.contribution.empty()) side.contribution.push_back(boxes.contribution[static_cast<size_t>(i)]);
  }
  return side;
}

class Lister {
 public:
  explicit Lister(const ListQuestion& q) : q_(q), src_mesh_(q.levels->mesh()), left_(q.most_pairs) {
    for (const TopologyLevel& level : q.levels->topology().levels) level_ranks_.push_back(level.ranks);
    for (const PendingAtom& p : q.src->partial) {
      (q.dst_mesh == nullptr && pending_in(*q.dst, p.atom) ? apart_ : reduced_).push_back(p.atom);
    }
  }

  // Calls visit(ranks, units) for every class that differs from those before; false: too many pairs.
  template <class Visitor>
  bool for_each_class(bool split_alike_dims, Visitor&& visit) {
    const LevelUnits units(level_ranks_);
    left_ -= mesh_size(src_mesh_) + (q_.dst_mesh != nullptr ? mesh_size(*q_.dst_mesh) : 0);
    if (left_ < 0) return false;
    const Boxes before = boxes_of(src_mesh_, *q_.src, q_.shape, reduced_);
    if (q_.dst_mesh != nullptr) {
      const Boxes after = boxes_of(*q_.dst_mesh, *q_.dst, q_.shape, {});
      return one(side_of(src_mesh_, 0, before, all_of(src_mesh_), q_.shape.size()),
                 side_of(*q_.dst_mesh, 0, after, all_of(*q_.dst_mesh), q_.shape.size()), units, visit);
    }
    const Boxes after = boxes_of(src_mesh_, *q_.dst, q_.shape, {});
    if (split_alike_dims) {
      for (size_t d = 0; d < q_.shape.size(); ++d) {
        if (q_.src->shards[d] == q_.dst->shards[d]) apart_.insert(apart_.end(), q_.src->shards[d].begin(), q_.src->shards[d].end());
      }
    }
    const std::vector<std::vector<int64_t>> classes = classes_of(src_mesh_);
    // Copies differ only where units cut them differently.
    const int64_t copies = q_.levels->regular() ? 1 : mesh_copies(src_mesh_);
    for (int64_t copy = 0; copy < copies; ++copy) {
      for (const std::vector<int64_t>& chosen : classes) {
        if (classes.size() * static_cast<size_t>(copies) > 1 && !is_new(copy, before, chosen, units)) continue;
        if (!one(side_of(src_mesh_, copy, before, chosen, q_.shape.size()), side_of(src_mesh_, copy, after, chosen, q_.shape.size()), units,
                 visit)) {
          return false;
        }
      }
    }
    return true;
  }

 private:
  static std::vector<int64_t> all_of(const Mesh& mesh) {
    std::vector<int64_t> all(static_cast<size_t>(mesh_size(mesh)));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  // Indices of the mesh by their coordinates on the atoms that keep ranks apart.
  [[nodiscard]] std::vector<std::vector<int64_t>> classes_of(const Mesh& mesh) const {
    if (apart_.empty()) return {all_of(mesh)};
    int64_t count = 1;
    for (const Atom& atom : apart_) count = saturating_mul(count, atom.size);
    const std::vector<int64_t> sizes = mesh_shape(mesh);
    const int64_t ranks = mesh_size(mesh);
    std::vector<std::vector<int64_t>> classes(static_cast<size_t>(std::min(count, ranks)));
    std::vector<int64_t> at(sizes.size(), 0);
    for (int64_t i = 0; i < ranks; ++i) {
      classes[static_cast<size_t>(index_on(apart_, sizes, at))].push_back(i);
      for (size_t m = sizes.size(); m-- > 0 && ++at[m] == sizes[m];) at[m] = 0;
    }
    return classes;
  }

  // Whether no class before has the same widths, the same order of ids and the same units.
  bool is_new(int64_t copy, const Boxes& before, const std::vector<int64_t>& chosen, const LevelUnits& units) {
    const size_t dims = q_.shape.size();
    std::vector<int64_t> look;
    look.reserve(2 * chosen.size() + dims);
    // A dim that both states cut alike has one interval in a class; of others the intervals are the same in all classes.
    for (size_t d = 0; d < dims; ++d) {
      if (q_.src->shards[d] == q_.dst->shards[d]) look.push_back(width(before.box[static_cast<size_t>(chosen.front()) * dims + d]));
    }
    int64_t last = -1;
    for (const auto& [id, i] : by_id(src_mesh_, copy, chosen)) {
      look.push_back(i);
      int64_t fresh = 0;  // levels on which a unit begins
      for (int l = 0; l + 1 < units.levels(); ++l) fresh = 2 * fresh + (last < 0 || units.unit(last, l) != units.unit(id, l) ? 1 : 0);
      look.push_back(fresh);
      last = id;
    }
    return seen_.insert(std::move(look)).second;
  }

  template <class Visitor>
  bool one(const SideBoxes& sources, const SideBoxes& targets, const LevelUnits& units, Visitor&& visit) {
    const auto ranks = make_exchange_ranks(sources, targets, left_);
    if (!ranks) return false;
    left_ -= visit(*ranks, units);
    return left_ >= 0;
  }

  const ListQuestion& q_;
  const Mesh& src_mesh_;
  int64_t left_;
  std::vector<int64_t> level_ranks_;
  std::vector<Atom> apart_;    // ranks that differ on these do not talk
  std::vector<Atom> reduced_;  // pending before, not after
  std::set<std::vector<int64_t>> seen_;
};

}  // namespace

std::optional<ListedPhase> list_exchange(const ListQuestion& question) {
  ListedPhase listed;
  ExchangeTraffic whole;
  bool several_holders = false;
  const bool done = Lister(question).for_each_class(true, [&](const ExchangeRanks& ranks, const LevelUnits& units) {
    const ExchangeTraffic even = list_one_phase(ranks, units, question.element_bytes, ExchangeCut::even);
    join_traffic(listed.even, even);
    if (ranks.holders.size() == ranks.shards()) {
      join_traffic(whole, even);
      return even.work;
    }
    several_holders = true;
    const ExchangeTraffic other = list_one_phase(ranks, units, question.element_bytes, ExchangeCut::whole);
    join_traffic(whole, other);
    return even.work + other.work;
  });
  if (!done) return std::nullopt;
  if (several_holders) listed.whole = whole;
  return listed;
}

std::optional<ExchangeTraffic> list_exchange_in_two_phases(const ListQuestion& question) {
  ExchangeTraffic all;
  const bool done = Lister(question).for_each_class(false, [&](const ExchangeRanks& ranks, const LevelUnits& units) {
    const ExchangeTraffic one = list_two_phases(ranks, units, question.element_bytes);
    join_traffic(all, one);
    return one.work;
  });
  if (!done) return std::nullopt;
  return all;
}

}  // namespace meshplan
