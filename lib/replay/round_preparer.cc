#include "replay/round_preparer.h"

#include <algorithm>

#include "replay/agreement.h"
#include "replay/join_copies.h"

namespace meshplan {

WavePhase& RoundPreparer::phase(size_t at) {
  while (wave_.phases.size() <= at) {
    wave_.phases.emplace_back();
    wave_.phases.back().work.resize(in_.locals.size());
  }
  return wave_.phases[at];
}

Status RoundPreparer::prepare() {
  const InjectedFault* fault = in_.q.fault;
  if (fault != nullptr && fault->kind == FaultKind::memory &&
      fault->step == static_cast<int64_t>(round_) &&
      is_ours(*fault, *in_.q.ranks, *in_.q.communicator)) {
    return environment(in_.place_of_round(round_) + ": rank " + std::to_string(fault->rank) +
                       " cannot allocate its buffers (injected)");
  }
  return in_.b->rounds[round_].op == Op::exchange ? prepare_exchange() : prepare_collective();
}

Result<std::byte*> RoundPreparer::stage(int32_t rank, int64_t bytes, StagingUse use) {
  auto data = in_.pool.take(rank, bytes, use == StagingUse::packed);
  if (!data) return at_place(in_.place_of_round(round_), data.error());
  wave_.begins.push_back({rank, *data, bytes, round_, -1, -1});
  return data;
}

Status RoundPreparer::prepare_exchange() {
  const BundleRound& round = in_.b->rounds[round_];
  std::vector<Target> targets;
  std::vector<std::shared_ptr<const StepTransfers>> kept;
  for (const size_t at : packing_order(*in_.q.plan, round)) {
    const RoundPart& part = round.parts[at];
    const auto step = static_cast<size_t>(part.step);
    const std::vector<size_t> tensors = in_.tensors_of(part);
    if (tensors.empty()) continue;
    const std::string place = in_.place_of_round(round_) + ", part " + std::to_string(at);
    const auto made = in_.transfers->of_part(part, place);
    if (!made) return made.error();
    if ((*made)->op != Op::exchange)
      return wrong_data(place + ": " + to_text((*made)->op) + " is in a round of exchanges");
    kept.push_back(*made);
    count_pairs(part, **made, std::ssize(tensors));
    for (const size_t t : tensors) {
      auto target = target_of(t, step, **made);
      if (!target) return target.error();
      targets.push_back(std::move(*target));
    }
  }
  for (const Target& target : targets) add_boxes(target);
  for (const auto& [pair, bytes] : bytes_) facts_.pairs.push_back({pair.first, pair.second, bytes});
  if (auto done = make_messages(); !done) return done;
  unpack_all();
  for (const Target& target : targets) finish(target);
  return Done{};
}

void RoundPreparer::count_pairs(const RoundPart& part, const StepTransfers& transfers,
                                int64_t tensors) {
  const std::vector<HeldBoxes>& held = in_.transfers->held(part.member);
  const auto step = static_cast<size_t>(part.step);
  const int64_t size = wire_element_bytes(in_.q.plan->redistributions[part.member], step);
  for (size_t slot = 0; slot < transfers.slots.size(); ++slot) {
    for (const Transfer& t : transfers.slots[slot].transfers) {
      const int32_t from = sender_rank(t, held[step], held[step + 1]);
      const int32_t to = held[step + 1].ranks[slot];
      const int64_t bytes = volume(t.box) * size * tensors;
      if (from != to && bytes > 0) bytes_[{from, to}] += bytes;
    }
  }
}

// The buffers of a tensor in the dtype of the wire: its own, or casts around the round.
Result<RoundPreparer::Target> RoundPreparer::target_of(size_t tensor, size_t step,
                                                       const StepTransfers& transfers) {
  const BundleTensor& t = in_.tensors[tensor];
  const RedistributionRun::Inside& run = *t.run;
  Target target{&t, step, &transfers, run.dtype, run.held(step), run.held(step + 1)};
  if (!transfers.reduce_op || !run.r->request.reduce_dtype) return target;
  target.dtype = *run.r->request.reduce_dtype;
  if (target.dtype == run.dtype) return target;
  const int64_t size = element_bytes(target.dtype);
  for (const size_t state : {step, step + 1}) {
    const HeldBoxes& at = run.held_boxes[state];
    for (const size_t s : run.local_slots[state]) {
      const int64_t count = volume(box_of_slot(at, static_cast<int64_t>(s)));
      auto data = stage(at.ranks[s], count * size, StagingUse::cast);
      if (!data) return data.error();
      if (state == step) {
        phase(0).work[number(at.ranks[s])].push_back(
            cast_op(run.dtype, target.from[s], target.dtype, *data, count));
      }
      (state == step ? target.from : target.to)[s] = *data;
    }
  }
  return target;
}

// What its ranks send, receive and keep of a tensor, into the messages of their pairs.
void RoundPreparer::add_boxes(const Target& target) {
  const HeldBoxes& before = target.tensor->run->held_boxes[target.step];
  const HeldBoxes& after = target.tensor->run->held_boxes[target.step + 1];
  const StepTransfers& transfers = *target.transfers;
  for (size_t slot = 0; slot < transfers.slots.size(); ++slot) {
    const int32_t to = after.ranks[slot];
    for (const Transfer* t : in_message_order(transfers.slots[slot], before, after)) {
      const auto source = static_cast<size_t>(t->from);
      const int32_t from = sender_rank(*t, before, after);
      if (number(from) < 0 && number(to) < 0) continue;
      Boxed boxed{&t->box,
                  target.dtype,
                  target.to[slot],
                  &box_of_slot(after, static_cast<int64_t>(slot)),
                  t->contribution > 0,
                  transfers.reduce_op.value_or(ReduceOp::sum),
                  t->contribution};
      // What was fetched is in the sender's box after the step.
      const Box& held = box_of_slot(t->fetched ? after : before, t->from);
      std::byte* const data = t->fetched ? target.to[source] : target.from[source];
      if (from != to) {
        if (number(to) >= 0) receives_[{to, from}].push_back(boxed);
        boxed.data = data;
        boxed.whole = &held;
        if (number(from) >= 0) sends_[{from, to}].push_back(boxed);
      } else if (boxed.combines) {
        unpacks_.push_back({to, boxed, data, &held});
      } else {
        copy(0, to, boxed, data, held, boxed.data, *boxed.whole);
      }
    }
  }
}

void RoundPreparer::copy(size_t at, int32_t rank, const Boxed& boxed, const std::byte* from,
                         const Box& from_box, std::byte* to, const Box& to_box) {
  LocalOp op;
  op.kind = LocalOp::Kind::copy;
  op.dtype = boxed.dtype;
  op.from = from;
  op.to = to;
  op.region = make_region(*boxed.box, from_box, to_box);
  if (op.region.run == 0) return;
  std::vector<LocalOp>& list = phase(at).work[number(rank)];
  if (list.empty() || !join_copies(list.back(), op)) list.push_back(std::move(op));
}

void RoundPreparer::combine(int32_t rank, const Boxed& boxed, const std::byte* from,
                            const Box& from_box) {
  const Region region = make_region(*boxed.box, from_box, *boxed.whole);
  const int64_t size = element_bytes(boxed.dtype);
  for_each_run(region, [&](int64_t f, int64_t t) {
    LocalOp op;
    op.kind = LocalOp::Kind::combine;
    op.dtype = boxed.dtype;
    op.op = boxed.op;
    op.from = from + f * size;
    op.to = boxed.data + t * size;
    op.count = region.run;
    phase(1).work[number(rank)].push_back(op);
  });
}

// One message for each pair and direction, its boxes one behind the other.
Status RoundPreparer::make_messages() {
  std::map<int32_t, RankCall> calls;
  const auto bytes_of = [](const std::vector<Boxed>& boxes) {
    int64_t bytes = 0;
    for (const Boxed& b : boxes) bytes += volume(*b.box) * element_bytes(b.dtype);
    return bytes;
  };
  for (const auto& [pair, boxes] : sends_) {
    auto data = stage(pair.first, bytes_of(boxes), StagingUse::packed);
    if (!data) return data.error();
    std::byte* at = *data;
    for (const Boxed& b : boxes) {
      copy(0, pair.first, b, b.data, *b.whole, at, *b.box);
      at += volume(*b.box) * element_bytes(b.dtype);
    }
    calls[pair.first].sends.push_back({pair.second, *data, at - *data});
  }
  for (const auto& [pair, boxes] : receives_) {
    auto data = stage(pair.first, bytes_of(boxes), StagingUse::packed);
    if (!data) return data.error();
    std::byte* at = *data;
    for (const Boxed& b : boxes) {
      unpacks_.push_back({pair.first, b, at, b.box});
      at += volume(*b.box) * element_bytes(b.dtype);
    }
    calls[pair.first].receives.push_back({pair.second, *data, at - *data});
  }
  Call call;
  call.op = Op::exchange;
  call.dtype = DType::uint8;
  call.stream = facts_.stream;
  call.place = in_.place_of_round(round_);
  for (auto& [rank, rank_call] : calls) {
    rank_call.rank = rank;
    facts_.messages[rank] = std::ssize(rank_call.sends) + std::ssize(rank_call.receives);
    call.ranks.push_back(std::move(rank_call));
  }
  phase(0).calls.push_back(std::move(call));
  return Done{};
}

// First what goes to its place, then what is combined with it, by contribution.
void RoundPreparer::unpack_all() {
  std::stable_sort(unpacks_.begin(), unpacks_.end(), [](const Unpack& a, const Unpack& b) {
    return a.boxed.contribution < b.boxed.contribution;
  });
  for (const Unpack& u : unpacks_) {
    if (u.boxed.combines) {
      combine(u.rank, u.boxed, u.from, *u.from_box);
    } else {
      copy(1, u.rank, u.boxed, u.from, *u.from_box, u.boxed.data, *u.boxed.whole);
    }
  }
}

// Divides and casts back.
void RoundPreparer::finish(const Target& target) {
  const RedistributionRun::Inside& run = *target.tensor->run;
  const HeldBoxes& after = run.held_boxes[target.step + 1];
  const bool casts = target.dtype != run.dtype;
  if (!casts && target.transfers->divisor == 1) return;
  for (const size_t slot : run.local_slots[target.step + 1]) {
    const int64_t count = volume(box_of_slot(after, static_cast<int64_t>(slot)));
    if (count == 0) continue;
    auto& work = phase(1).work[number(after.ranks[slot])];
    if (target.transfers->divisor != 1) {
      LocalOp op;
      op.kind = LocalOp::Kind::divide;
      op.dtype = target.dtype;
      op.to = target.to[slot];
      op.count = count;
      op.divisor = target.transfers->divisor;
      work.push_back(op);
    }
    if (casts) {
      work.push_back(cast_op(target.dtype, target.to[slot], run.dtype,
                             run.held(target.step + 1)[slot], count));
    }
  }
}

// The collectives of all tensors side by side: they pack together, are called together.
Status RoundPreparer::prepare_collective() {
  const BundleRound& round = in_.b->rounds[round_];
  for (size_t at = 0; at < round.parts.size(); ++at) {
    const RoundPart& part = round.parts[at];
    const auto step = static_cast<size_t>(part.step);
    const std::vector<size_t> tensors = in_.tensors_of(part);
    if (tensors.empty()) continue;
    const std::string place = in_.place_of_round(round_);
    const auto made = in_.transfers->of_part(part, place + ", part " + std::to_string(at));
    if (!made) return made.error();
    if ((*made)->op != round.op)
      return wrong_data(place + ": " + to_text((*made)->op) + " is in a round of " +
                        to_text(round.op));
    for (const size_t t : tensors) {
      const RedistributionRun::Inside& run = *in_.tensors[t].run;
      PrepareQuestion question;
      question.before = &run.held_boxes[step];
      question.after = &run.held_boxes[step + 1];
      question.transfers = made->get();
      question.dtype = run.dtype;
      question.reduce_dtype = run.r->request.reduce_dtype;
      question.held = &run.held(step);
      question.local_number = &in_.local_number;
      question.locals = std::ssize(in_.locals);
      question.device = in_.q.device;
      question.place = place;
      question.into = &run.held(step + 1);
      question.stage = [this](int32_t rank, int64_t bytes, StagingUse use) {
        return stage(rank, bytes, use);
      };
      auto prepared = prepare_step(question);
      if (!prepared) return prepared.error();
      add_prepared(std::move(*prepared));
    }
  }
  return Done{};
}

void RoundPreparer::add_prepared(PreparedStep&& step) {
  for (size_t i = 0; i < step.phases.size(); ++i) {
    WavePhase& to = phase(i);
    Phase& from = step.phases[i];
    for (size_t local = 0; local < from.work.size(); ++local) {
      std::vector<LocalOp>& list = to.work[local];
      list.insert(list.end(), std::make_move_iterator(from.work[local].begin()),
                  std::make_move_iterator(from.work[local].end()));
    }
    if (!from.call) continue;
    for (const RankCall& rank : from.call->ranks) facts_.messages[rank.rank] += 2;
    from.call->stream = facts_.stream;
    to.calls.push_back(std::move(*from.call));
  }
  wave_.groups.push_back({facts_.stream, std::move(step.groups)});
}

}  // namespace meshplan
