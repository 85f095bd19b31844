#include "replay/program.h"

#include <algorithm>
#include <map>
#include <utility>

#include "replay/join_copies.h"

namespace meshplan {
namespace {

// A step whose new boxes are larger than this, over the local ranks, leaves nothing in a core's caches that the next phase would find.
constexpr int64_t cached_bytes = int64_t{16} << 20;

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

  Result<PreparedStep> make() {
    out_.after.assign(after_.ranks.size(), nullptr);
    source_ = *q_.held;
    for (size_t s = 0; s < after_.ranks.size(); ++s) {
      if (!local_after(s)) continue;
      const int64_t bytes = volume(after_box(s)) * element_bytes(q_.dtype);
      auto data = q_.device->allocate(after_.ranks[s], bytes);
      if (!data) return located(data.error());
      out_.after[s] = *data;
      out_.local_bytes += bytes;
    }
    result_ = out_.after;
    add_phase();
    if (casts_) {
      if (auto done = cast_sources(); !done) return done.error();
    }
    Status done = Done{};
    switch (flow_.form) {
      case FlowForm::local:
        done = make_local();
        break;
      case FlowForm::all_gather:
        done = make_all_gather();
        break;
      case FlowForm::all_to_all:
        done = make_all_to_all();
        break;
      case FlowForm::reduce_scatter:
      case FlowForm::all_reduce:
        done = make_reduction();
        break;
      case FlowForm::send_receive:
        done = make_send_receive();
        break;
    }
    if (!done) return done.error();
    finish_reduction();
    for (Phase& phase : out_.phases) {
      for (auto& ops : phase.work) {
        for (LocalOp& op : ops) {
          if (op.past_cache && op.joined > 1) read_in_order(op);
        }
      }
    }
    return std::move(out_);
  }

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

  void copy(int32_t rank, const Box& part, const std::byte* from, const Box& from_box, std::byte* to, const Box& to_box) {
    LocalOp op;
    op.kind = LocalOp::Kind::copy;
    op.dtype = wire_dtype_;
    op.from = from;
    op.to = to;
    op.region = make_region(part, from_box, to_box);
    op.past_cache = out_.local_bytes > cached_bytes;
    if (op.region.run == 0) return;
    std::vector<LocalOp>& list = work_of(rank);
    if (list.empty() || !join_copies(list.back(), op)) list.push_back(std::move(op));
  }

  Result<std::byte*> stage(int32_t rank, int64_t count) {
    auto data = q_.device->allocate(rank, count * wire_size_);
    if (!data) return located(data.error());
    return data;
  }

  // The reduction's dtype: what is sent and received is cast first, and what comes out is cast back.
  Status cast_sources() {
    for (size_t s = 0; s < before_.ranks.size(); ++s) {
      if (!local_before(s)) continue;
      const int64_t count = volume(before_box(s));
      auto data = stage(before_.ranks[s], count);
      if (!data) return data.error();
      LocalOp op;
      op.kind = LocalOp::Kind::cast;
      op.from_dtype = q_.dtype;
      op.dtype = wire_dtype_;
      op.from = source_[s];
      op.to = *data;
      op.count = count;
      work_of(before_.ranks[s]).push_back(op);
      source_[s] = *data;
    }
    for (size_t s = 0; s < after_.ranks.size(); ++s) {
      if (!local_after(s)) continue;
      auto data = stage(after_.ranks[s], volume(after_box(s)));
      if (!data) return data.error();
      result_[s] = *data;
    }
    return Done{};
  }

  // Dividing and casting back, in a last phase without a call.
  void finish_reduction() {
    if (flow_.form == FlowForm::local || (!casts_ && flow_.divisor == 1)) return;
    if (out_.phases.back().call) add_phase();
    for (size_t s = 0; s < after_.ranks.size(); ++s) {
      if (!local_after(s)) continue;
      const int64_t count = volume(after_box(s));
      if (count == 0) continue;
      if (flow_.divisor != 1) {
        LocalOp op;
        op.kind = LocalOp::Kind::divide;
        op.dtype = wire_dtype_;
        op.to = result_[s];
        op.count = count;
        op.divisor = flow_.divisor;
        work_of(after_.ranks[s]).push_back(op);
      }
      if (casts_) {
        LocalOp op;
        op.kind = LocalOp::Kind::cast;
        op.from_dtype = wire_dtype_;
        op.dtype = q_.dtype;
        op.from = result_[s];
        op.to = out_.after[s];
        op.count = count;
        work_of(after_.ranks[s]).push_back(op);
      }
    }
  }

  Status make_local() {
    for (size_t s = 0; s < after_.ranks.size(); ++s) {
      if (!local_after(s)) continue;
      const SlotFlow& slot = flow_.slots[s];
      if (slot.identity) {
        LocalOp op;
        op.kind = LocalOp::Kind::identity;
        op.dtype = q_.dtype;
        op.op = flow_.reduce_op.value_or(ReduceOp::sum);
        op.to = result_[s];
        op.count = volume(after_box(s));
        work_of(after_.ranks[s]).push_back(op);
      }
      copy_own_takes(s);
    }
    return Done{};
  }

  // Parts that the rank itself held.
  void copy_own_takes(size_t s) {
    const SlotFlow& slot = flow_.slots[s];
    for (const Take& take : slot.takes) {
      if (take.from != slot.self || take.fetched) continue;
      const auto from = static_cast<size_t>(take.from);
      copy(after_.ranks[s], take.box, source_[from], before_box(from), result_[s], after_box(s));
    }
  }

  // Replay ranks of a group of slots; the same list for the same first slot.
  const std::vector<int32_t>* group_of(const std::vector<int32_t>& slots) {
    auto known = group_index_.find(slots.front());
    if (known != group_index_.end()) return known->second;
    std::vector<int32_t> ranks;
    for (int32_t s : slots) ranks.push_back(before_.ranks[static_cast<size_t>(s)]);
    out_.groups.push_back(std::make_unique<const std::vector<int32_t>>(std::move(ranks)));
    return group_index_.emplace(slots.front(), out_.groups.back().get()).first->second;
  }

  Call& start_call(CallKind kind) {
    Call call;
    call.kind = kind;
    call.dtype = wire_dtype_;
    call.op = flow_.reduce_op.value_or(ReduceOp::sum);
    call.place = q_.place;
    out_.phases.back().call = std::move(call);
    return *out_.phases.back().call;
  }

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

  Status make_all_gather() {
    std::vector<RankCall> calls;
    std::vector<std::pair<size_t, std::vector<std::byte*>>> staged;  // slot, where each member's box arrives
    auto status = for_each_member([&](size_t s, const SlotFlow& slot, const std::vector<int32_t>* group) -> Status {
      RankCall call;
      call.rank = after_.ranks[s];
      call.group = group;
      const auto self = static_cast<size_t>(slot.self);
      call.sends.push_back({call.rank, source_[self], volume(before_box(self))});
      // Straight into the new box where every member's box is one piece of it.
      int64_t total = 0;
      bool direct = true;
      for (int32_t m : slot.group) {
        const Box& box = before_box(static_cast<size_t>(m));
        const int64_t n = volume(box);
        total += n;
        if (n > 0) direct = direct && volume(intersect(box, after_box(s))) == n && contiguous_offset(box, after_box(s)).has_value();
      }
      direct = direct && total == volume(after_box(s));
      std::byte* arrival = nullptr;
      if (!direct) {
        auto data = stage(call.rank, total);
        if (!data) return data.error();
        arrival = *data;
      }
      std::vector<std::byte*> places;
      for (int32_t m : slot.group) {
        const Box& box = before_box(static_cast<size_t>(m));
        const int64_t n = volume(box);
        std::byte* to = arrival;
        if (direct) to = n == 0 ? result_[s] : result_[s] + *contiguous_offset(box, after_box(s)) * wire_size_;
        call.receives.push_back({before_.ranks[static_cast<size_t>(m)], to, n});
        places.push_back(to);
        if (!direct) arrival += n * wire_size_;
      }
      if (!direct) staged.emplace_back(s, std::move(places));
      calls.push_back(std::move(call));
      return Done{};
    });
    if (!status) return status;
    if (out_.groups.empty()) return Done{};
    start_call(CallKind::all_gather).ranks = std::move(calls);
    if (staged.empty()) return Done{};
    add_phase();
    for (const auto& [s, places] : staged) {
      const SlotFlow& slot = flow_.slots[s];
      for (const Take& take : slot.takes) {
        const auto member = std::find(slot.group.begin(), slot.group.end(), take.from) - slot.group.begin();
        copy(after_.ranks[s], take.box, places[static_cast<size_t>(member)], before_box(static_cast<size_t>(take.from)), result_[s],
             after_box(s));
      }
    }
    return Done{};
  }

  // What every slot gives, by receiving slot.
  void invert() {
    gives_.resize(before_.ranks.size());
    for (size_t t = 0; t < flow_.slots.size(); ++t) {
      for (const Take& take : flow_.slots[t].takes) {
        if (local_before(static_cast<size_t>(take.from)))
          gives_[static_cast<size_t>(take.from)].push_back({static_cast<int32_t>(t), &take});
      }
    }
  }

  struct Unpack {
    int32_t rank = 0;
    Box part;
    const std::byte* from = nullptr;
    Box from_box;
    std::byte* to = nullptr;
    Box to_box;
  };
  void unpack_all(const std::vector<Unpack>& list) {
    if (list.empty()) return;
    add_phase();
    for (const Unpack& u : list) copy(u.rank, u.part, u.from, u.from_box, u.to, u.to_box);
  }

  // RankCall::equal_parts of a group.
  [[nodiscard]] int64_t equal_parts(const std::vector<int32_t>& group) const {
    int64_t part = -1;
    for (int32_t member : group) {
      const std::vector<Take>& takes = flow_.slots[static_cast<size_t>(member)].takes;
      if (takes.size() != group.size()) return -1;
      for (const Take& take : takes) {
        const int64_t n = volume(take.box);
        if (n == 0 || (part >= 0 && n != part)) return -1;
        part = n;
      }
    }
    return part;
  }

  Status make_all_to_all() {
    invert();
    std::map<const std::vector<int32_t>*, int64_t> parts;  // by group
    std::vector<RankCall> calls;
    std::vector<Unpack> unpacks;
    auto status = for_each_member([&](size_t s, const SlotFlow& slot, const std::vector<int32_t>* group) -> Status {
      RankCall call;
      call.rank = after_.ranks[s];
      call.group = group;
      auto [known, fresh] = parts.try_emplace(group, -1);
      if (fresh) known->second = equal_parts(slot.group);
      call.equal_parts = known->second;
      // Sends: one part for each member; straight from the box if every part is one piece of it.
      const auto self = static_cast<size_t>(slot.self);
      std::map<int32_t, const Take*> given;
      int64_t total = 0;
      bool direct = true;
      for (const Give& give : gives_[self]) {
        given[give.to] = give.take;
        total += volume(give.take->box);
        direct = direct && contiguous_offset(give.take->box, before_box(self)).has_value();
      }
      std::byte* staging = nullptr;
      if (!direct) {
        auto data = stage(call.rank, total);
        if (!data) return data.error();
        staging = *data;
      }
      for (int32_t m : slot.group) {
        auto it = given.find(m);
        const int64_t n = it == given.end() ? 0 : volume(it->second->box);
        std::byte* from = direct ? source_[self] : staging;
        if (n > 0 && direct) from += offset_in(it->second->box, before_box(self)) * wire_size_;
        if (n > 0 && !direct) copy(call.rank, it->second->box, source_[self], before_box(self), staging, it->second->box);
        call.sends.push_back({before_.ranks[static_cast<size_t>(m)], from, n});
        if (!direct) staging += n * wire_size_;
      }
      // Receives, likewise.
      std::map<int32_t, const Take*> taken;
      direct = true;
      total = 0;
      for (const Take& take : slot.takes) {
        taken[take.from] = &take;
        total += volume(take.box);
        direct = direct && contiguous_offset(take.box, after_box(s)).has_value();
      }
      std::byte* arrival = nullptr;
      if (!direct) {
        auto data = stage(call.rank, total);
        if (!data) return data.error();
        arrival = *data;
      }
      for (int32_t m : slot.group) {
        auto it = taken.find(m);
        const int64_t n = it == taken.end() ? 0 : volume(it->second->box);
        std::byte* to = direct ? result_[s] : arrival;
        if (n > 0 && direct) to += offset_in(it->second->box, after_box(s)) * wire_size_;
        if (n > 0 && !direct) unpacks.push_back({call.rank, it->second->box, arrival, it->second->box, result_[s], after_box(s)});
        call.receives.push_back({before_.ranks[static_cast<size_t>(m)], to, n});
        if (!direct) arrival += n * wire_size_;
      }
      calls.push_back(std::move(call));
      return Done{};
    });
    if (!status) return status;
    if (out_.groups.empty()) return Done{};
    start_call(CallKind::all_to_all).ranks = std::move(calls);
    unpack_all(unpacks);
    return Done{};
  }

  Status make_reduction() {
    const bool scatters = flow_.form == FlowForm::reduce_scatter;
    std::vector<RankCall> calls;
    auto status = for_each_member([&](size_t s, const SlotFlow& slot, const std::vector<int32_t>* group) -> Status {
      RankCall call;
      call.rank = after_.ranks[s];
      call.group = group;
      const auto self = static_cast<size_t>(slot.self);
      call.receives.push_back({call.rank, result_[s], volume(after_box(s))});
      if (!scatters) {
        call.sends.push_back({call.rank, source_[self], volume(before_box(self))});
        calls.push_back(std::move(call));
        return Done{};
      }
      // One chunk a member, in member order, one behind the other: the box itself, or staging.
      int64_t total = 0;
      bool direct = true;
      for (int32_t m : slot.group) {
        const Box& chunk = after_box(static_cast<size_t>(m));
        const int64_t n = volume(chunk);
        if (n > 0) direct = direct && contiguous_offset(chunk, before_box(self)) == total;
        total += n;
      }
      std::byte* at = source_[self];
      if (!direct) {
        auto data = stage(call.rank, total);
        if (!data) return data.error();
        at = *data;
      }
      for (int32_t m : slot.group) {
        const Box& chunk = after_box(static_cast<size_t>(m));
        if (!direct) copy(call.rank, chunk, source_[self], before_box(self), at, chunk);
        call.sends.push_back({before_.ranks[static_cast<size_t>(m)], at, volume(chunk)});
        at += volume(chunk) * wire_size_;
      }
      calls.push_back(std::move(call));
      return Done{};
    });
    if (!status) return status;
    if (!out_.groups.empty()) start_call(scatters ? CallKind::reduce_scatter : CallKind::all_reduce).ranks = std::move(calls);
    return Done{};
  }

  // A part on its way between two slots, and where it lies at the end that is local.
  struct Parcel {
    Box box;
    const std::byte* from = nullptr;  // sender: the buffer that holds it
    Box from_box;
    std::byte* to = nullptr;  // receiver: where it goes
    Box to_box;
  };
  using Pair = std::pair<int32_t, int32_t>;  // local replay rank, peer

  // Turns the parcels of each pair into one chunk each way; packs now, unpacks later.
  Status make_pairs(std::map<Pair, std::vector<Parcel>>& sends, std::map<Pair, std::vector<Parcel>>& receives,
                    std::vector<Unpack>& unpacks) {
    std::map<int32_t, RankCall> calls;
    for (auto& [pair, parcels] : sends) {
      int64_t total = 0;
      for (const Parcel& p : parcels) total += volume(p.box);
      Chunk chunk{pair.second, nullptr, total};
      std::optional<int64_t> alone;
      if (parcels.size() == 1) alone = contiguous_offset(parcels[0].box, parcels[0].from_box);
      if (alone) {
        chunk.data = const_cast<std::byte*>(parcels[0].from) + *alone * wire_size_;
      } else {
        auto data = stage(pair.first, total);
        if (!data) return data.error();
        chunk.data = *data;
        std::byte* at = *data;
        for (const Parcel& p : parcels) {
          copy(pair.first, p.box, p.from, p.from_box, at, p.box);
          at += volume(p.box) * wire_size_;
        }
      }
      calls[pair.first].sends.push_back(chunk);
    }
    for (auto& [pair, parcels] : receives) {
      int64_t total = 0;
      for (const Parcel& p : parcels) total += volume(p.box);
      Chunk chunk{pair.second, nullptr, total};
      std::optional<int64_t> alone;
      if (parcels.size() == 1) alone = contiguous_offset(parcels[0].box, parcels[0].to_box);
      if (alone) {
        chunk.data = parcels[0].to + *alone * wire_size_;
      } else {
        auto data = stage(pair.first, total);
        if (!data) return data.error();
        chunk.data = *data;
        std::byte* at = *data;
        for (const Parcel& p : parcels) {
          unpacks.push_back({pair.first, p.box, at, p.box, p.to, p.to_box});
          at += volume(p.box) * wire_size_;
        }
      }
      calls[pair.first].receives.push_back(chunk);
    }
    Call& call = start_call(CallKind::send_receive);
    for (auto& [rank, rank_call] : calls) {
      rank_call.rank = rank;
      call.ranks.push_back(std::move(rank_call));
    }
    return Done{};
  }

  Status make_send_receive() {
    std::map<Pair, std::vector<Parcel>> sends;
    std::map<Pair, std::vector<Parcel>> receives;
    std::vector<Unpack> unpacks;
    // The first of two phases: parts fetched for the host, each into a buffer of its own.
    std::map<std::pair<int32_t, std::vector<int64_t>>, std::byte*> fetched;  // by member and corner
    auto corner = [](const Box& box) {
      std::vector<int64_t> at;
      for (const Interval& i : box) at.push_back(i.lo);
      return at;
    };
    if (!flow_.fetches.empty()) {
      for (const Fetch& f : flow_.fetches) {
        const auto from = static_cast<size_t>(f.from);
        const auto member = static_cast<size_t>(f.member);
        if (local_before(member)) {
          auto data = stage(before_.ranks[member], volume(f.box));
          if (!data) return data.error();
          fetched[{f.member, corner(f.box)}] = *data;
          receives[{before_.ranks[member], before_.ranks[from]}].push_back({f.box, nullptr, {}, *data, f.box});
        }
        if (local_before(from)) {
          sends[{before_.ranks[from], before_.ranks[member]}].push_back({f.box, source_[from], before_box(from), nullptr, {}});
        }
      }
      if (auto done = make_pairs(sends, receives, unpacks); !done) return done;
      unpack_all(unpacks);
      if (out_.phases.back().call) add_phase();
      sends.clear();
      receives.clear();
      unpacks.clear();
    }
    // Where each contribution is assembled: the first in the result, later ones in a buffer of their own and then combined.
    std::vector<std::vector<std::byte*>> assembled(after_.ranks.size());
    for (size_t t = 0; t < after_.ranks.size(); ++t) {
      if (!local_after(t)) continue;
      assembled[t].push_back(result_[t]);
      for (int64_t k = 1; k < flow_.contributions; ++k) {
        auto data = stage(after_.ranks[t], volume(after_box(t)));
        if (!data) return data.error();
        assembled[t].push_back(*data);
      }
    }
    for (size_t t = 0; t < after_.ranks.size(); ++t) {
      for (const Take& take : flow_.slots[t].takes) {
        const auto from = static_cast<size_t>(take.from);
        const int32_t giver = before_.ranks[from];
        const int32_t taker = after_.ranks[t];
        const std::byte* held = nullptr;
        Box held_box;
        if (local_before(from)) {
          held = take.fetched ? fetched.at({take.from, corner(take.box)}) : source_[from];
          held_box = take.fetched ? take.box : before_box(from);
        }
        std::byte* to = local_after(t) ? assembled[t][static_cast<size_t>(take.contribution)] : nullptr;
        if (giver == taker) {
          if (local_after(t)) copy(taker, take.box, held, held_box, to, after_box(t));
          continue;
        }
        if (local_before(from)) sends[{giver, taker}].push_back({take.box, held, held_box, nullptr, {}});
        if (local_after(t)) receives[{taker, giver}].push_back({take.box, nullptr, {}, to, after_box(t)});
      }
    }
    if (auto done = make_pairs(sends, receives, unpacks); !done) return done;
    unpack_all(unpacks);
    if (flow_.contributions > 1) {
      if (out_.phases.back().call) add_phase();
      for (size_t t = 0; t < after_.ranks.size(); ++t) {
        if (!local_after(t)) continue;
        for (size_t k = 1; k < assembled[t].size(); ++k) {
          LocalOp op;
          op.kind = LocalOp::Kind::combine;
          op.dtype = wire_dtype_;
          op.op = *flow_.reduce_op;
          op.from = assembled[t][k];
          op.to = assembled[t][0];
          op.count = volume(after_box(t));
          work_of(after_.ranks[t]).push_back(op);
        }
      }
    }
    return Done{};
  }

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

}  // namespace

Result<PreparedStep> prepare_step(const ProgramQuestion& question) { return ProgramMaker(question).make(); }

}  // namespace meshplan
