#include "transfer/listed_transfers.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/check.h"
#include "plan/step_mesh.h"

namespace meshplan {
namespace {

bool starts_before(const Box& a, const Box& b) {
  for (size_t d = 0; d < a.size(); ++d) {
    if (a[d].lo != b[d].lo) return a[d].lo < b[d].lo;
  }
  return false;
}

// Where the part begins in the row-major buffer of `whole`, in elements.
int64_t start_in(const Box& whole, const Box& part) {
  int64_t offset = 0;
  for (size_t d = 0; d < whole.size(); ++d)
    offset = offset * width(whole[d]) + (part[d].lo - whole[d].lo);
  return offset;
}

class TransferLister {
 public:
  TransferLister(const StepTransfers& transfers, const HeldBoxes& before, const HeldBoxes& after,
                 const RankTable& ranks, const TransferVisitor& visit)
      : transfers_(transfers), before_(before), after_(after), ranks_(ranks), visit_(visit) {}

  Status list() {
    if (auto done = list_first_phase(); !done) return done;
    phase_ = transfers_.first_phase.empty() ? 1 : 2;
    std::vector<size_t> slots(after_.ranks.size());
    std::iota(slots.begin(), slots.end(), size_t{0});
    std::sort(slots.begin(), slots.end(),
              [&](size_t a, size_t b) { return after_.ranks[a] < after_.ranks[b]; });
    for (const size_t slot : slots) {
      if (auto done = list_slot(slot); !done) return done;
    }
    return Done{};
  }

 private:
  // What a slot fetched, and where in the packed buffer it begins.
  struct Fetched {
    Box box;
    int64_t offset = 0;
  };

  [[nodiscard]] int64_t id_of(const HeldBoxes& held, size_t slot) const {
    return ranks_.global_ids[static_cast<size_t>(held.ranks[slot])];
  }
  [[nodiscard]] int32_t before_rank(int32_t slot) const {
    return before_.ranks[static_cast<size_t>(slot)];
  }
  [[nodiscard]] int32_t after_rank(int32_t slot) const {
    return after_.ranks[static_cast<size_t>(slot)];
  }
  // Of a piece: what was fetched is in the sender's new box.
  [[nodiscard]] bool is_shared(const Transfer& t) const {
    return t.fetched && transfers_.first_phase.empty();
  }
  [[nodiscard]] TransferEnd held_end(const HeldBoxes& held, size_t slot, const Box& box) const {
    const Box& whole = box_of_slot(held, static_cast<int64_t>(slot));
    return {id_of(held, slot), false, whole, start_in(whole, box)};
  }
  [[nodiscard]] TransferEnd fetched_end(size_t slot, const Fetched& fetched) const {
    return {id_of(after_, slot), true, fetched.box, fetched.offset};
  }

  Status list_first_phase() {
    std::vector<const FirstTransfer*> sorted;
    for (const FirstTransfer& t : transfers_.first_phase) sorted.push_back(&t);
    std::sort(sorted.begin(), sorted.end(), [&](const FirstTransfer* a, const FirstTransfer* b) {
      if (a->to != b->to) return after_rank(a->to) < after_rank(b->to);
      if (a->from != b->from) return before_rank(a->from) < before_rank(b->from);
      return starts_before(a->box, b->box);
    });
    std::map<int32_t, int64_t> filled;  // elements in the packed buffer of each slot
    for (const FirstTransfer* t : sorted) {
      const Fetched fetched{t->box, filled[t->to]};
      filled[t->to] += volume(t->box);
      fetched_.emplace(std::pair(t->to, corner_of(t->box)), fetched);
      ListedTransfer row;
      row.box = t->box;
      row.chunk = t->chunk;
      row.from = held_end(before_, static_cast<size_t>(t->from), t->box);
      row.to = fetched_end(static_cast<size_t>(t->to), fetched);
      row.action = row.from.rank == row.to.rank ? TransferAction::copy : TransferAction::send;
      if (auto done = visit_(row); !done) return done;
    }
    return Done{};
  }

  Status list_slot(size_t slot) {
    const SlotTransfers& own = transfers_.slots[slot];
    if (own.identity) {
      ListedTransfer row;
      row.phase = phase_;
      row.action = TransferAction::fill;
      row.box = box_of_slot(after_, static_cast<int64_t>(slot));
      row.to = held_end(after_, slot, row.box);
      if (volume(row.box) > 0) {
        if (auto done = visit_(row); !done) return done;
      }
    }
    std::vector<const Transfer*> sorted;
    for (const Transfer& t : own.transfers) {
      if (volume(t.box) > 0) sorted.push_back(&t);
    }
    std::sort(sorted.begin(), sorted.end(), [&](const Transfer* a, const Transfer* b) {
      if (a->contribution != b->contribution) return a->contribution < b->contribution;
      const int32_t from_a = sender_rank(*a, before_, after_);
      const int32_t from_b = sender_rank(*b, before_, after_);
      if (from_a != from_b) return from_a < from_b;
      return starts_before(a->box, b->box);
    });
    for (const Transfer* t : sorted) {
      ListedTransfer row;
      row.phase = phase_;
      row.chunk = t->chunk;
      row.contribution = t->contribution;
      row.box = t->box;
      row.to = held_end(after_, slot, t->box);
      row.from = sender(*t);
      row.action = row.from.rank == row.to.rank ? TransferAction::copy : TransferAction::send;
      if (is_shared(*t)) row.action = TransferAction::share;
      if (auto done = visit_(row); !done) return done;
    }
    return Done{};
  }

  [[nodiscard]] TransferEnd sender(const Transfer& t) const {
    if (is_shared(t)) return held_end(after_, static_cast<size_t>(t.from), t.box);
    if (!t.fetched) return held_end(before_, static_cast<size_t>(t.from), t.box);
    const auto at = fetched_.find(std::pair(t.from, corner_of(t.box)));
    MESHPLAN_CHECK(at != fetched_.end() && at->second.box == t.box,
                   "the second phase passes on what the first fetched, whole");
    return fetched_end(static_cast<size_t>(t.from), at->second);
  }

  const StepTransfers& transfers_;
  const HeldBoxes& before_;
  const HeldBoxes& after_;
  const RankTable& ranks_;
  const TransferVisitor& visit_;
  int64_t phase_ = 1;
  // By slot after and lower corner: what a slot fetched is disjoint.
  std::map<std::pair<int32_t, std::vector<int64_t>>, Fetched> fetched_;
};

}  // namespace

const char* to_text(TransferAction action) {
  switch (action) {
    case TransferAction::fill:
      return "fill";
    case TransferAction::copy:
      return "copy";
    case TransferAction::send:
      return "send";
    case TransferAction::share:
      return "share";
  }
  return "";
}

std::vector<HeldBoxes> held_boxes_of(const Plan& plan, const PlannedRedistribution& redistribution,
                                     const RankTable& ranks) {
  const Request& request = redistribution.request;
  const auto mesh_at = [&](size_t index) -> const Mesh& { return plan.meshes.meshes[index]; };
  const bool crosses = request.src_mesh != request.dst_mesh;
  // Across meshes, copy 0 of each takes part; on one mesh, all copies do the same at once.
  const int64_t copies = crosses ? 1 : mesh_copies(mesh_at(request.src_mesh));
  std::vector<HeldBoxes> held;
  held.push_back(
      make_held_boxes(mesh_at(request.src_mesh), request.src, request.tensor.shape, copies, ranks));
  for (const Step& step : redistribution.steps) {
    const Mesh& mesh = mesh_after(plan.meshes, request, step);
    held.push_back(make_held_boxes(mesh, step.state, request.tensor.shape, copies, ranks));
  }
  return held;
}

Status list_transfers(const StepTransfers& transfers, const HeldBoxes& before,
                      const HeldBoxes& after, const RankTable& ranks,
                      const TransferVisitor& visit) {
  return TransferLister(transfers, before, after, ranks, visit).list();
}

}  // namespace meshplan
