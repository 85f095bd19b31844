// Prepares a step. Files: prepare_step.cc (casts, local work), prepare_collectives.cc (all_gather,
// all_to_all, reductions) and prepare_pairs.cc (sends and receives).
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "replay/prepared_step.h"

namespace meshplan {

// A transfer seen from the sender.
struct Outgoing {
  int32_t to = 0;  // slot after
  const Transfer* transfer = nullptr;
};

class StepPreparer {
 public:
  explicit StepPreparer(const PrepareQuestion& q)
      : q_(q),
        before_(*q.before),
        after_(*q.after),
        transfers_(*q.transfers),
        casts_(!is_local(transfers_.op) && transfers_.reduce_op && q.reduce_dtype &&
               *q.reduce_dtype != q.dtype),
        wire_dtype_(casts_ ? *q.reduce_dtype : q.dtype),
        wire_size_(element_bytes(wire_dtype_)) {}

  Result<PreparedStep> make();

 private:
  [[nodiscard]] bool local_before(size_t slot) const { return number(before_.ranks[slot]) >= 0; }
  [[nodiscard]] bool local_after(size_t slot) const { return number(after_.ranks[slot]) >= 0; }
  [[nodiscard]] int32_t number(int32_t rank) const { return (*q_.local_number)[rank]; }
  [[nodiscard]] const Box& before_box(size_t slot) const {
    return box_of_slot(before_, static_cast<int64_t>(slot));
  }
  [[nodiscard]] const Box& after_box(size_t slot) const {
    return box_of_slot(after_, static_cast<int64_t>(slot));
  }
  [[nodiscard]] Error located(const Error& error) const { return at_place(q_.place, error); }

  Phase& add_phase() {
    out_.phases.emplace_back();
    out_.phases.back().work.resize(static_cast<size_t>(q_.locals));
    return out_.phases.back();
  }
  std::vector<LocalOp>& work_of(int32_t rank) { return out_.phases.back().work[number(rank)]; }

  void copy(int32_t rank, const Box& part, const std::byte* from, const Box& from_box,
            std::byte* to, const Box& to_box);
  Result<std::byte*> stage(int32_t rank, int64_t count, StagingUse use = StagingUse::packed);
  // The dtype of the reduction: data is cast before the call and cast back after it.
  Status cast_sources();
  // Divides and casts back, in a last phase without a call.
  void finish_reduction();
  // Copies the parts that the rank already has.
  void copy_own_transfers(size_t s);
  // Replay ranks of a group of slots; shared by all groups with the same first slot.
  const std::vector<int32_t>* group_of(const std::vector<int32_t>& slots);
  Call& start_call();
  // RankCall::equal_parts of a group.
  [[nodiscard]] int64_t equal_parts(const std::vector<int32_t>& group) const;
  // The transfers from every slot, by receiving slot.
  void invert();

  Status make_phases();
  Status make_local();
  Status make_all_gather();    // sends one chunk, receives one a member
  Status make_all_to_all();    // one a member both ways
  Status make_one_result();    // receives one chunk: all_reduce, reduce_scatter
  Status make_send_receive();  // chunks for any ranks

  // All slots (also of other processes) in groups of more than one member; the others only copy.
  template <class Visitor>
  Status for_each_member(Visitor&& visit) {
    for (size_t s = 0; s < after_.ranks.size(); ++s) {
      const SlotTransfers& slot = transfers_.slots[s];
      if (slot.group && slot.group->size() > 1) {
        const std::vector<int32_t>* group = group_of(*slot.group);
        if (!local_after(s)) continue;
        if (auto done = visit(s, slot, group); !done) return done;
      } else if (local_after(s)) {
        copy_own_transfers(s);
      }
    }
    return Done{};
  }

  struct Unpack {
    int32_t rank = 0;
    Box part;
    const std::byte* from = nullptr;
    Box from_box;
    std::byte* to = nullptr;
    Box to_box;
  };
  // A part transferred between two slots, with its address at the local end.
  struct PairTransfer {
    Box box;
    const std::byte* from = nullptr;  // sender: the source buffer
    Box from_box;
    std::byte* to = nullptr;  // receiver: the target buffer
    Box to_box;
  };
  using Pair = std::pair<int32_t, int32_t>;  // local replay rank, peer
  // The buffers of fetched parts, by the member's slot after and lower corner.
  using Fetched = std::map<std::pair<int32_t, std::vector<int64_t>>, std::byte*>;

  // The transfers between one member of a collective and another.
  struct PeerBox {
    int32_t peer = 0;  // replay rank
    const Box* box = nullptr;
  };

  void unpack_all(const std::vector<Unpack>& list);
  // What pairs of ranks send each other in one call, and what then goes to its place.
  struct PairCall {
    std::map<Pair, std::vector<PairTransfer>> sends;
    std::map<Pair, std::vector<PairTransfer>> receives;
  };
  Result<Fetched> add_first_phase(std::vector<PairCall>& calls);
  // By slot after: a buffer for each contribution.
  using Contributions = std::vector<std::vector<std::byte*>>;
  Result<Contributions> stage_contributions();
  void combine_contributions(const Contributions& contributions);
  struct SlotTransfer {
    size_t slot = 0;  // after
    const Transfer* transfer = nullptr;
  };
  void add_to_call(size_t slot, const Transfer& transfer, const Fetched& fetched,
                   const Contributions& assembled, PairCall& call);
  // One chunk per part of the box at `data`: in place if all parts are contiguous there, else
  // consecutively in staging; `staged` receives the staging addresses.
  Result<std::vector<Chunk>> chunks_of(int32_t rank, const std::vector<PeerBox>& parts,
                                       const Box& box, std::byte* data, bool in_place,
                                       const std::function<void(const Box&, std::byte*)>& staged);
  // Makes one chunk per direction from the transfers of each pair, with packing before and
  // unpacking after the call.
  Status make_pairs(const std::map<Pair, std::vector<PairTransfer>>& sends,
                    const std::map<Pair, std::vector<PairTransfer>>& receives,
                    std::vector<Unpack>& unpacks);
  // A contiguous buffer for the transfers of a pair: in place if they are contiguous (`alone`: the
  // address), else staging, of which each transfer gets its part.
  Result<Chunk> chunk_of(const Pair& pair, const std::vector<PairTransfer>& transfers,
                         std::byte* alone,
                         const std::function<void(const PairTransfer&, std::byte*)>& staged);

  const PrepareQuestion& q_;
  const HeldBoxes& before_;
  const HeldBoxes& after_;
  const StepTransfers& transfers_;
  bool casts_;
  DType wire_dtype_;
  int64_t wire_size_;
  PreparedStep out_;
  std::vector<std::byte*> source_;  // by slot before: the box, cast to the dtype of the reduction
  std::vector<std::byte*> result_;  // by slot after: the result of the step, before it is cast back
  std::vector<std::vector<Outgoing>> outgoing_;
  std::map<int32_t, const std::vector<int32_t>*> group_index_;
};

}  // namespace meshplan
