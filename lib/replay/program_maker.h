// How a step is made ready, by files: program.cc (casts, local work), program_collectives.cc (all_gather, all_to_all, reductions) and
// program_pairs.cc (sends and receives).
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "replay/program.h"

namespace meshplan {

// A take, seen from the rank that gives.
struct Give {
  int32_t to = 0;  // slot after
  const Take* take = nullptr;
};

class ProgramMaker {
 public:
  explicit ProgramMaker(const ProgramQuestion& q)
      : q_(q),
        before_(*q.before),
        after_(*q.after),
        flow_(*q.flow),
        casts_(flow_.form != FlowForm::local && flow_.reduce_op && q.reduce_dtype && *q.reduce_dtype != q.dtype),
        wire_dtype_(casts_ ? *q.reduce_dtype : q.dtype),
        wire_size_(element_bytes(wire_dtype_)) {}

  Result<PreparedStep> make();

 private:
  [[nodiscard]] bool local_before(size_t slot) const { return number(before_.ranks[slot]) >= 0; }
  [[nodiscard]] bool local_after(size_t slot) const { return number(after_.ranks[slot]) >= 0; }
  [[nodiscard]] int32_t number(int32_t rank) const { return (*q_.local_number)[static_cast<size_t>(rank)]; }
  [[nodiscard]] const Box& before_box(size_t slot) const { return box_of_slot(before_, static_cast<int64_t>(slot)); }
  [[nodiscard]] const Box& after_box(size_t slot) const { return box_of_slot(after_, static_cast<int64_t>(slot)); }
  [[nodiscard]] Error located(const Error& error) const { return {error.fault, q_.place + ": " + error.message}; }

  Phase& add_phase() {
    out_.phases.emplace_back();
    out_.phases.back().work.resize(static_cast<size_t>(q_.locals));
    return out_.phases.back();
  }
  std::vector<LocalOp>& work_of(int32_t rank) { return out_.phases.back().work[static_cast<size_t>(number(rank))]; }

  void copy(int32_t rank, const Box& part, const std::byte* from, const Box& from_box, std::byte* to, const Box& to_box);
  Result<std::byte*> stage(int32_t rank, int64_t count);
  // The reduction's dtype: what is sent and received is cast first, and what comes out is cast back.
  Status cast_sources();
  // Dividing and casting back, in a last phase without a call.
  void finish_reduction();
  // Parts that the rank itself held.
  void copy_own_takes(size_t s);
  // Replay ranks of a group of slots; the same list for the same first slot.
  const std::vector<int32_t>* group_of(const std::vector<int32_t>& slots);
  Call& start_call(CallKind kind);
  // RankCall::equal_parts of a group.
  [[nodiscard]] int64_t equal_parts(const std::vector<int32_t>& group) const;
  // What every slot gives, by receiving slot.
  void invert();

  Status make_local();
  Status make_all_gather();
  Status make_all_to_all();
  Status make_reduction();
  Status make_send_receive();

  // Slots whose group has company, all of them (so that the groups of other processes are known too); those without just copy.
  template <class Visitor>
  Status for_each_member(Visitor&& visit) {
    for (size_t s = 0; s < after_.ranks.size(); ++s) {
      const SlotFlow& slot = flow_.slots[s];
      if (slot.group.size() > 1) {
        const std::vector<int32_t>* group = group_of(slot.group);
        if (!local_after(s)) continue;
        if (auto done = visit(s, slot, group); !done) return done;
      } else if (local_after(s)) {
        copy_own_takes(s);
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
  // A part on its way between two slots, and where it lies at the end that is local.
  struct Parcel {
    Box box;
    const std::byte* from = nullptr;  // sender: the buffer that holds it
    Box from_box;
    std::byte* to = nullptr;  // receiver: where it goes
    Box to_box;
  };
  using Pair = std::pair<int32_t, int32_t>;  // local replay rank, peer

  // What one member of a collective has to do with another.
  struct Part {
    int32_t peer = 0;  // replay rank
    const Box* box = nullptr;
  };

  void unpack_all(const std::vector<Unpack>& list);
  // A chunk for each part of `box`, which lies at `data`: where it lies (each is one piece there), or else in staging, one behind
  // the other; `staged` is told where.
  Result<std::vector<Chunk>> chunks_of(int32_t rank, const std::vector<Part>& parts, const Box& box, std::byte* data, bool in_place,
                                       const std::function<void(const Box&, std::byte*)>& staged);
  // Turns the parcels of each pair into one chunk each way; packs now, unpacks later.
  Status make_pairs(const std::map<Pair, std::vector<Parcel>>& sends, const std::map<Pair, std::vector<Parcel>>& receives,
                    std::vector<Unpack>& unpacks);
  // Where the parcels of a pair lie together: where they are, if that is one piece (`alone`: where it starts), else in staging, of which
  // each parcel gets its part.
  Result<Chunk> chunk_of(const Pair& pair, const std::vector<Parcel>& parcels, std::byte* alone,
                         const std::function<void(const Parcel&, std::byte*)>& staged);

  const ProgramQuestion& q_;
  const Stand& before_;
  const Stand& after_;
  const StepFlow& flow_;
  bool casts_;
  DType wire_dtype_;
  int64_t wire_size_;
  PreparedStep out_;
  std::vector<std::byte*> source_;  // by slot before: the box, cast where the reduction wants it
  std::vector<std::byte*> result_;  // by slot after: where the step's result arrives, before it is cast back
  std::vector<std::vector<Give>> gives_;
  std::map<int32_t, const std::vector<int32_t>*> group_index_;
};

}  // namespace meshplan
