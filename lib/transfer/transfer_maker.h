// Makes the transfers of one step. Files: step_transfers.cc (what the step's op may do, reductions,
// errors), local_transfers.cc (slice, to_partial), collective_transfers.cc (all_gather, all_to_all,
// all_reduce, reduce_scatter), exchange_step.cc (exchange).
#pragma once

#include <map>
#include <memory>
#include <unordered_map>

#include "transfer/step_cuts.h"
#include "transfer/step_transfers.h"
#include "transfer/sub_axes.h"

namespace meshplan {

// Sub-axes of the mesh, by what the step does with them.
//
//     2 x 4 x 2, P(sum)P(sum)R -> P(sum)RS(0), reduce_scatter on dims 1 2
//     pending dim 0 is kept, dim 1 is reduced; ranks that differ on dims 1 2 talk
struct StepSubAxes {
  std::vector<SubAxis> kept;     // pending before and after
  std::vector<SubAxis> reduced;  // pending before only
  std::vector<SubAxis> added;    // pending after only
  std::vector<SubAxis> talking;  // the step's mesh dims without the kept ones
};

class TransferMaker {
 public:
  explicit TransferMaker(const TransferQuestion& q)
      : q_(q),
        before_(*q.before),
        after_(*q.after),
        step_(*q.step),
        crosses_(q.before->mesh != q.after->mesh) {}

  Result<StepTransfers> make();
  // Of an exchange, without looking whether all is there (transfer/step_cuts.h).
  Status for_each_received(const std::function<void(const ReceivedAlike&)>& use);
  Result<PhasePairs> pairs_in_two_phases();

 private:
  // The ranks of an exchange that may talk to one another: on one mesh, those that differ only on
  // the talking sub-axes; across meshes, all.
  struct ExchangeClass {
    std::vector<int32_t> targets;                          // slots after
    std::map<int64_t, std::vector<int32_t>> contributors;  // contribution -> slots before
    std::shared_ptr<std::vector<int32_t>> group;           // all slots before
  };

  [[nodiscard]] Error fail(const std::string& what) const;
  [[nodiscard]] int64_t global_id(int32_t rank) const {
    return q_.ranks->global_ids[static_cast<size_t>(rank)];
  }
  Status sort_sub_axes();
  void find_selves();
  Status make_all();
  Status check_pending(bool reduces) const;
  Status set_reduction();

  Status make_slice();
  Status make_to_partial();
  Status fill_partial(const CoordinatesOn& counted, bool from_replicate);
  Status make_movement();
  Status make_reduction();
  Status make_exchange();
  [[nodiscard]] std::map<int64_t, ExchangeClass> exchange_classes() const;
  void add_one_phase(const ExchangeClass& ranks, const std::vector<int32_t>& sources,
                     int32_t contribution);
  Status add_two_phases(const ExchangeClass& ranks, const std::vector<int32_t>& sources);

  // Slots before, by what they differ on: the copy, and all coordinates but those on `free`.
  [[nodiscard]] static int64_t key_of(const HeldBoxes& held, int64_t slot,
                                      const CoordinatesOn& free) {
    const int64_t index = slot % held.size;
    return slot - free.part(index);
  }
  using Group = std::shared_ptr<const std::vector<int32_t>>;
  // Slots before with one key are one group, by replay rank. Of a question about one rank: its own.
  [[nodiscard]] std::unordered_map<int64_t, Group> groups(const CoordinatesOn& free) const;
  // The first and the last but one of these slots before, by replay rank, that the question asks of
  // what goes to the slot after: all, or of what goes to another rank the one that it is about.
  [[nodiscard]] std::pair<size_t, size_t> asked(size_t slot,
                                                const std::vector<int32_t>& slots) const;
  Status move_to(size_t s, const std::vector<int32_t>& holders);
  Status reduce_to(size_t s);
  void sort_by_rank(std::vector<int32_t>& slots) const;

  void add(int32_t slot, Transfer&& transfer) {
    out_.slots[static_cast<size_t>(slot)].transfers.push_back(std::move(transfer));
  }
  // Names the first element of the slot's new box that no box of `held` has.
  [[nodiscard]] Error missing(size_t slot, const std::vector<Transfer>& held,
                              const std::string& why) const;

  const TransferQuestion& q_;
  const HeldBoxes& before_;
  const HeldBoxes& after_;
  const Step& step_;
  bool crosses_;
  StepSubAxes sub_axes_;
  StepTransfers out_;
};

// Empty boxes have no elements, wherever they lie.
[[nodiscard]] inline bool same_elements(const Box& a, const Box& b) {
  return a == b || (volume(a) == 0 && volume(b) == 0);
}
// A mesh dim of size 1 may have a pending reduction without any other rank to wait for.
[[nodiscard]] bool pending_of_size_one(const State& state);

}  // namespace meshplan
