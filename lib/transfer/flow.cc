#include "transfer/flow.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "transfer/exchange_pieces.h"

namespace meshplan {
namespace {

std::string text_of(const std::vector<int64_t>& index) {
  std::string out = "[";
  for (size_t i = 0; i < index.size(); ++i) out += (i == 0 ? "" : ", ") + std::to_string(index[i]);
  return out + "]";
}

bool contains(const Box& outer, const Box& inner) {
  if (volume(inner) == 0) return true;
  for (size_t d = 0; d < outer.size(); ++d) {
    if (inner[d].lo < outer[d].lo || inner[d].hi > outer[d].hi) return false;
  }
  return true;
}

// A mesh dim of size 1 may be pending without any rank to wait for.
bool pending_of_size_one(const State& state) {
  return std::any_of(state.partial.begin(), state.partial.end(), [](const PendingAtom& p) { return p.atom.size == 1; });
}

bool same_elements(const Box& a, const Box& b) { return a == b || (volume(a) == 0 && volume(b) == 0); }

// Atoms before and after, sorted out.
struct Parts {
  std::vector<Atom> kept;     // pending in both
  std::vector<Atom> reduced;  // pending before only
  std::vector<Atom> added;    // pending after only
  std::vector<Atom> talking;  // the step's mesh dims without the kept ones
};

class FlowMaker {
 public:
  explicit FlowMaker(const FlowQuestion& q)
      : q_(q), before_(*q.before), after_(*q.after), step_(*q.step), crosses_(q.before->mesh != q.after->mesh) {}

  Result<StepFlow> make() {
    if (auto done = sort_parts(); !done) return done.error();
    flow_.slots.resize(after_.ranks.size());
    std::unordered_map<int32_t, int32_t> slot_of_rank;
    for (size_t s = 0; s < before_.ranks.size(); ++s) slot_of_rank.emplace(before_.ranks[s], static_cast<int32_t>(s));
    for (size_t s = 0; s < after_.ranks.size(); ++s) {
      auto same = slot_of_rank.find(after_.ranks[s]);
      if (same != slot_of_rank.end()) flow_.slots[s].self = same->second;
    }
    switch (step_.op) {
      case Op::slice:
        return finish(make_slice());
      case Op::to_partial:
        return finish(make_to_partial());
      case Op::all_gather:
        flow_.form = FlowForm::all_gather;
        break;
      case Op::all_to_all:
        flow_.form = FlowForm::all_to_all;
        break;
      case Op::reduce_scatter:
        flow_.form = FlowForm::reduce_scatter;
        break;
      case Op::all_reduce:
        flow_.form = FlowForm::all_reduce;
        break;
      case Op::exchange:
        flow_.form = FlowForm::send_receive;
        break;
    }
    const bool reduces = step_.op == Op::reduce_scatter || step_.op == Op::all_reduce;
    if (reduces && parts_.reduced.empty() && !pending_of_size_one(before_.state))
      return fail(to_text(step_.op) + std::string(" has no pending reduction to complete"));
    if (!reduces && step_.op != Op::exchange && !parts_.reduced.empty()) {
      return fail(to_text(step_.op) + std::string(" loses a pending reduction"));
    }
    if (!parts_.added.empty()) return fail(to_text(step_.op) + std::string(" adds a pending reduction; only to_partial may"));
    if (reduces || !parts_.reduced.empty()) {
      set_reduction();
      // Across meshes the step's mesh dims are those of the mesh that it lands on, and all of the source's are reduced.
      auto outside = atoms_without(crosses_ ? std::vector<Atom>{} : parts_.reduced, step_.mesh_dims, before_.mesh_shape);
      if (!outside) return fail(outside.error().message);
      if (!outside->empty()) return fail("reduces over a mesh dim that is not among its mesh_dims");
    }
    if (step_.op == Op::exchange) return finish(make_exchange());
    return finish(reduces ? make_reduction() : make_movement());
  }

 private:
  [[nodiscard]] Error fail(const std::string& what) const { return wrong_data(q_.place + ": " + what); }
  [[nodiscard]] int64_t global_id(int32_t rank) const { return q_.ranks->global_ids[static_cast<size_t>(rank)]; }
  Result<StepFlow> finish(const Status& status) {
    if (!status) return status.error();
    return std::move(flow_);
  }

  Status sort_parts() {
    const std::vector<Atom> before = partial_atoms(before_.state);
    const std::vector<Atom> after = partial_atoms(after_.state);
    if (crosses_) {
      if (step_.op != Op::exchange) return fail(to_text(step_.op) + std::string(" cannot cross from mesh to mesh; only an exchange may"));
      if (!after.empty()) return fail("an exchange across meshes leaves a reduction pending; complete it before or after");
      parts_.reduced = before;
      return Done{};
    }
    auto reduced = atoms_without(before, after, before_.mesh_shape);
    auto added = atoms_without(after, before, before_.mesh_shape);
    if (!reduced) return fail(reduced.error().message);
    if (!added) return fail(added.error().message);
    auto kept = atoms_without(before, *reduced, before_.mesh_shape);
    if (!kept) return fail(kept.error().message);
    auto talking = atoms_without(step_.mesh_dims, *kept, before_.mesh_shape);
    if (!talking) return fail(talking.error().message);
    parts_ = {std::move(*kept), std::move(*reduced), std::move(*added), std::move(*talking)};
    return Done{};
  }

  void set_reduction() {
    bool averages = true;
    for (const PendingAtom& p : before_.state.partial) {
      for (const Atom& a : parts_.reduced) {
        if (p.atom.mesh_dim == a.mesh_dim && p.atom.before <= a.before) averages = averages && p.op == ReduceOp::avg;
      }
    }
    const ReduceOp fallback = averages ? ReduceOp::avg : before_.state.partial.front().op;
    flow_.reduce_op = step_.reduce_op.value_or(fallback);
    for (const Atom& a : parts_.reduced) flow_.contributions *= a.size;
    flow_.divisor = step_.scale_divisor;
    if (*flow_.reduce_op == ReduceOp::avg) flow_.divisor *= flow_.contributions;
  }

  Status make_slice() {
    if (!parts_.reduced.empty() || !parts_.added.empty()) return fail("a slice changes a pending reduction");
    for (size_t s = 0; s < flow_.slots.size(); ++s) {
      const Box& want = box_of_slot(after_, static_cast<int64_t>(s));
      const int32_t self = flow_.slots[s].self;
      if (self < 0 || !contains(box_of_slot(before_, self), want)) {
        std::vector<Take> held;
        if (self >= 0) held.push_back({self, 0, false, intersect(box_of_slot(before_, self), want)});
        return missing(s, held, "the rank itself does not hold it before a slice");
      }
      if (volume(want) > 0) flow_.slots[s].takes.push_back({self, 0, false, want});
    }
    return Done{};
  }

  Status make_to_partial() {
    if (!parts_.reduced.empty()) return fail("to_partial completes a pending reduction");
    if (parts_.added.empty() && !pending_of_size_one(after_.state)) return fail("to_partial adds no pending reduction");
    auto from_replicate = atoms_without(parts_.added, shard_atoms(before_.state), before_.mesh_shape);
    if (!from_replicate) return fail(from_replicate.error().message);
    auto from_shard = atoms_without(parts_.added, *from_replicate, before_.mesh_shape);
    if (!from_shard) return fail(from_shard.error().message);
    auto op_of = [&](const Atom& a) {
      for (const PendingAtom& p : after_.state.partial) {
        if (p.atom.mesh_dim == a.mesh_dim && p.atom.before <= a.before && p.atom.before * p.atom.size >= a.before * a.size) return p.op;
      }
      return ReduceOp::sum;
    };
    for (const Atom& a : *from_shard) {
      if (op_of(a) != ReduceOp::sum) return fail(std::string("a shard cannot become P(") + to_text(op_of(a)) + "), only P(sum)");
    }
    // Kinds that count every rank's value hold it on coordinate 0 only; the others hold it everywhere.
    std::vector<Atom> counted;
    for (const Atom& a : *from_replicate) {
      if (op_of(a) == ReduceOp::sum || op_of(a) == ReduceOp::product) counted.push_back(a);
    }
    flow_.reduce_op = parts_.added.empty() ? ReduceOp::sum : op_of(parts_.added.front());
    const DigitSet others(counted, before_.mesh_shape);
    for (size_t s = 0; s < flow_.slots.size(); ++s) {
      SlotFlow& slot = flow_.slots[s];
      const Box& want = box_of_slot(after_, static_cast<int64_t>(s));
      const Box& held = box_of_slot(before_, slot.self);
      if (!contains(want, held))
        return fail("rank " + std::to_string(global_id(after_.ranks[s])) + " holds " + to_text(held) + " before to_partial and only " +
                    to_text(want) + " after it");
      if (from_shard->empty() && !same_elements(want, held))
        return fail("to_partial moves elements of rank " + std::to_string(global_id(after_.ranks[s])));
      const bool carries = others.part(slot.self % before_.size) == 0;
      slot.identity = !carries || !same_elements(want, held);
      if (carries && volume(held) > 0) slot.takes.push_back({slot.self, 0, false, held});
    }
    return Done{};
  }

  // Slots before, by what they differ on: key = copy and all digits but `free`.
  [[nodiscard]] static int64_t key_of(const Stand& stand, int64_t slot, const DigitSet& free) {
    const int64_t index = slot % stand.size;
    return slot - index + (index - free.part(index));
  }

  // The slots before of each class, ascending by replay rank.
  [[nodiscard]] std::unordered_map<int64_t, std::vector<int32_t>> classes(const DigitSet& free) const {
    std::unordered_map<int64_t, std::vector<int32_t>> out;
    for (size_t s = 0; s < before_.ranks.size(); ++s) {
      out[key_of(before_, static_cast<int64_t>(s), free)].push_back(static_cast<int32_t>(s));
    }
    for (auto& [key, slots] : out) {
      std::sort(slots.begin(), slots.end(),
                [&](int32_t a, int32_t b) { return before_.ranks[static_cast<size_t>(a)] < before_.ranks[static_cast<size_t>(b)]; });
    }
    return out;
  }

  // all_gather, all_to_all: whoever of the group holds an element gives it, the rank itself first.
  Status make_movement() {
    const DigitSet free(parts_.talking, before_.mesh_shape);
    const auto groups = classes(free);
    // Distinct boxes of each class with their first holder.
    std::unordered_map<int64_t, std::vector<int32_t>> holders;
    for (const auto& [key, slots] : groups) {
      std::vector<int32_t>& distinct = holders[key];
      std::map<std::vector<int64_t>, bool> seen;
      for (int32_t s : slots) {
        const Box& box = box_of_slot(before_, s);
        if (volume(box) == 0) continue;
        std::vector<int64_t> corner;
        for (const Interval& i : box) corner.push_back(i.lo);
        if (seen.emplace(std::move(corner), true).second) distinct.push_back(s);
      }
    }
    for (size_t s = 0; s < flow_.slots.size(); ++s) {
      SlotFlow& slot = flow_.slots[s];
      const int64_t key = key_of(after_, static_cast<int64_t>(s), free);
      slot.group = groups.at(key);
      const Box& want = box_of_slot(after_, static_cast<int64_t>(s));
      if (volume(want) == 0) continue;
      const Box& own = box_of_slot(before_, slot.self);
      int64_t covered = 0;
      for (int32_t h : holders.at(key)) {
        const Box& held = box_of_slot(before_, h);
        Box part = intersect(held, want);
        const int64_t n = volume(part);
        if (n == 0) continue;
        covered += n;
        slot.takes.push_back({held == own ? slot.self : h, 0, false, std::move(part)});
      }
      if (covered != volume(want))
        return missing(s, slot.takes, "nobody in its group of " + std::to_string(slot.group.size()) + " ranks holds it");
    }
    return Done{};
  }

  // all_reduce, reduce_scatter: one contribution from each value of the reduced digits, each from the rank that differs on nothing else.
  Status make_reduction() {
    const DigitSet reduced(parts_.reduced, before_.mesh_shape);
    const auto groups = classes(reduced);
    for (size_t s = 0; s < flow_.slots.size(); ++s) {
      SlotFlow& slot = flow_.slots[s];
      slot.group = groups.at(key_of(after_, static_cast<int64_t>(s), reduced));
      const Box& want = box_of_slot(after_, static_cast<int64_t>(s));
      if (step_.op == Op::all_reduce && !same_elements(want, box_of_slot(before_, slot.self))) {
        return fail("all_reduce changes the box of rank " + std::to_string(global_id(after_.ranks[s])) + " from " +
                    to_text(box_of_slot(before_, slot.self)) + " to " + to_text(want));
      }
      if (volume(want) == 0) continue;
      int32_t contribution = 0;
      for (int32_t h : slot.group) {
        Box part = intersect(box_of_slot(before_, h), want);
        if (volume(part) != volume(want)) {
          return missing(s, {{h, 0, false, part}},
                         "rank " + std::to_string(global_id(before_.ranks[static_cast<size_t>(h)])) + " does not hold its contribution");
        }
        slot.takes.push_back({h, contribution++, false, std::move(part)});
      }
    }
    return Done{};
  }

  [[nodiscard]] std::vector<int64_t> level_ranks() const {
    std::vector<int64_t> ranks;
    for (const TopologyLevel& level : q_.topology->levels) ranks.push_back(level.ranks);
    if (ranks.empty()) ranks.push_back(INT64_MAX);
    return ranks;
  }

  [[nodiscard]] std::vector<RankBox> rank_boxes(const Stand& stand, const std::vector<int32_t>& slots) const {
    std::vector<RankBox> out;
    for (int32_t s : slots) out.push_back({global_id(stand.ranks[static_cast<size_t>(s)]), box_of_slot(stand, s)});
    return out;
  }

  // Every class of ranks that may talk (one for each value of the kept pending digits) and every contribution is an exchange of its own.
  Status make_exchange() {
    if (step_.phases == 2 && (crosses_ || !parts_.reduced.empty())) {
      return fail("two phases are for exchanges on one mesh that reduce nothing");
    }
    const DigitSet free(parts_.talking, before_.mesh_shape);
    const DigitSet reduced(parts_.reduced, before_.mesh_shape);
    const std::vector<int64_t> levels = level_ranks();
    std::map<int64_t, std::vector<int32_t>> targets;
    for (size_t s = 0; s < flow_.slots.size(); ++s) {
      targets[crosses_ ? 0 : key_of(after_, static_cast<int64_t>(s), free)].push_back(static_cast<int32_t>(s));
    }
    std::map<int64_t, std::map<int64_t, std::vector<int32_t>>> sources;  // class -> contribution -> slots
    std::map<int64_t, std::vector<int32_t>> everyone;
    for (size_t s = 0; s < before_.ranks.size(); ++s) {
      const auto slot = static_cast<int64_t>(s);
      const int64_t key = crosses_ ? 0 : key_of(before_, slot, free);
      sources[key][reduced.part(slot % before_.size)].push_back(static_cast<int32_t>(s));
      everyone[key].push_back(static_cast<int32_t>(s));
    }
    const ExchangeCut cut = step_.whole_pieces ? ExchangeCut::whole : ExchangeCut::even;
    for (const auto& [key, target_slots] : targets) {
      const std::vector<RankBox> wanting = rank_boxes(after_, target_slots);
      std::vector<int32_t>& group = everyone[key];
      std::sort(group.begin(), group.end(),
                [&](int32_t a, int32_t b) { return before_.ranks[static_cast<size_t>(a)] < before_.ranks[static_cast<size_t>(b)]; });
      for (int32_t t : target_slots) flow_.slots[static_cast<size_t>(t)].group = group;
      int32_t contribution = 0;
      for (const auto& [digits, source_slots] : sources[key]) {
        const std::vector<RankBox> holding = rank_boxes(before_, source_slots);
        if (step_.phases == 2) {
          TwoPhasePieces pieces = two_phase_pieces(holding, wanting, levels);
          // On one mesh target slots and source slots of a class are the same ranks: a fetching target is a slot before, too.
          auto self_of = [&, &slots_of_class = target_slots](int32_t target) {
            return flow_.slots[static_cast<size_t>(slots_of_class[static_cast<size_t>(target)])].self;
          };
          for (ExchangePiece& p : pieces.fetches) {
            flow_.fetches.push_back({source_slots[static_cast<size_t>(p.source)], self_of(p.target), std::move(p.box)});
          }
          for (ExchangePiece& p : pieces.from_sources) {
            take(target_slots[static_cast<size_t>(p.target)], {source_slots[static_cast<size_t>(p.source)], 0, false, std::move(p.box)});
          }
          for (ExchangePiece& p : pieces.from_fetches) {
            take(target_slots[static_cast<size_t>(p.target)], {self_of(p.source), 0, true, std::move(p.box)});
          }
        } else {
          for (ExchangePiece& p : exchange_pieces(holding, wanting, levels, cut)) {
            take(target_slots[static_cast<size_t>(p.target)],
                 {source_slots[static_cast<size_t>(p.source)], contribution, false, std::move(p.box)});
          }
        }
        for (int32_t t : target_slots) {
          std::vector<Take> now;
          int64_t covered = 0;
          for (const Take& k : flow_.slots[static_cast<size_t>(t)].takes) {
            if (k.contribution == contribution) covered += volume(k.box);
          }
          const auto s = static_cast<size_t>(t);
          if (covered == volume(box_of_slot(after_, t))) continue;
          for (const Take& k : flow_.slots[s].takes) {
            if (k.contribution == contribution) now.push_back(k);
          }
          return missing(s, now, "no rank of the exchange holds it");
        }
        ++contribution;
      }
    }
    return Done{};
  }

  void take(int32_t slot, Take&& piece) { flow_.slots[static_cast<size_t>(slot)].takes.push_back(std::move(piece)); }

  // The first element of the slot's new box that none of `held` covers.
  [[nodiscard]] Error missing(size_t slot, const std::vector<Take>& held, const std::string& why) const {
    const Box& want = box_of_slot(after_, static_cast<int64_t>(slot));
    const int64_t n = volume(want);
    std::vector<int64_t> index;
    for (int64_t at = 0; at < n; ++at) {
      index = index_at(want, at);
      const bool covered = std::any_of(held.begin(), held.end(), [&](const Take& t) {
        for (size_t d = 0; d < index.size(); ++d) {
          if (index[d] < t.box[d].lo || index[d] >= t.box[d].hi) return false;
        }
        return true;
      });
      if (!covered) break;
    }
    return fail("rank " + std::to_string(global_id(after_.ranks[slot])) + " needs element " + text_of(index) + " and " + why);
  }

  const FlowQuestion& q_;
  const Stand& before_;
  const Stand& after_;
  const Step& step_;
  bool crosses_;
  Parts parts_;
  StepFlow flow_;
};

}  // namespace

Result<StepFlow> make_flow(const FlowQuestion& question) { return FlowMaker(question).make(); }

}  // namespace meshplan
