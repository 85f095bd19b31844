// Prepares the waves of a bundle: what runs in each, in which memory.
#include <algorithm>
#include <set>

#include "replay/agreement.h"
#include "replay/bundle_inside.h"
#include "replay/join_copies.h"
#include "replay/local_chain.h"
#include "replay/round_preparer.h"

namespace meshplan {
namespace {

PrepareQuestion question_of(const BundleRun::Inside& in, const BundleTensor& t, size_t step,
                            const StepTransfers& transfers, const std::string& place) {
  const RedistributionRun::Inside& run = *t.run;
  PrepareQuestion question;
  question.before = &run.held_boxes[step];
  question.after = &run.held_boxes[step + 1];
  question.transfers = &transfers;
  question.dtype = run.dtype;
  question.reduce_dtype = run.r->request.reduce_dtype;
  question.held = &run.held(step);
  question.local_number = &in.local_number;
  question.locals = std::ssize(in.locals);
  question.device = in.q.device;
  question.place = place;
  return question;
}

}  // namespace

// Boxes between two steps that the wave is the first to write.
Status BundleRun::Inside::begin_boxes(size_t wave) {
  for (size_t t = 0; t < tensors.size(); ++t) {
    RedistributionRun::Inside& run = *tensors[t].run;
    if (tensors[t].only_local) continue;
    for (size_t state = 1; state < run.r->steps.size(); ++state) {
      if (tensors[t].first_wave[state - 1] != wave) continue;
      const HeldBoxes& at = run.held_boxes[state];
      for (const size_t s : run.local_slots[state]) {
        const int64_t bytes = volume(box_of_slot(at, static_cast<int64_t>(s))) * run.size;
        auto data = pool.take(at.ranks[s], bytes, true);
        if (!data) return data.error();
        run.prepared[state - 1].after[s] = *data;
        waves[wave].begins.push_back({at.ranks[s], *data, bytes, 0, static_cast<int64_t>(t),
                                      static_cast<int64_t>(state) - 1});
      }
    }
  }
  return Done{};
}

// Gives back the messages of the wave and the boxes that it is the last to use.
void BundleRun::Inside::end_boxes(size_t wave) {
  PreparedWave& now = waves[wave];
  for (const WaveBuffer& buffer : now.begins) {
    if (buffer.tensor < 0) now.ends.push_back(buffer);
  }
  for (size_t t = 0; t < tensors.size(); ++t) {
    const RedistributionRun::Inside& run = *tensors[t].run;
    if (tensors[t].only_local) {
      if (tensors[t].last_wave.back() == wave) now.whole.push_back({t, run.r->steps.size()});
      continue;
    }
    for (size_t state = 1; state < run.r->steps.size(); ++state) {
      if (tensors[t].last_wave[state] != wave) continue;
      const HeldBoxes& at = run.held_boxes[state];
      for (const size_t s : run.local_slots[state]) {
        const int64_t bytes = volume(box_of_slot(at, static_cast<int64_t>(s))) * run.size;
        now.ends.push_back({at.ranks[s], run.held(state)[s], bytes, 0, static_cast<int64_t>(t),
                            static_cast<int64_t>(state) - 1});
      }
    }
    for (size_t step = 0; step < run.r->steps.size(); ++step) {
      if (tensors[t].last_wave[step] == wave) now.whole.push_back({t, step + 1});
    }
  }
  for (const WaveBuffer& buffer : now.ends) pool.give(buffer.rank, buffer.data);
}

Status BundleRun::Inside::add_local_step(size_t tensor, size_t step, WavePhase& phase) {
  const BundleTensor& t = tensors[tensor];
  const std::string where = place() + ", " + place_of(*t.run->r, step);
  const auto made = transfers->of_step(t.which.member, step, where);
  if (!made) return made.error();
  PrepareQuestion question = question_of(*this, t, step, **made, where);
  question.into = &t.run->prepared[step].after;
  auto prepared = prepare_step(question);
  if (!prepared) return prepared.error();
  for (const Phase& part : prepared->phases) {
    for (size_t i = 0; i < part.work.size(); ++i) {
      phase.work[i].insert(phase.work[i].end(), part.work[i].begin(), part.work[i].end());
    }
  }
  return Done{};
}

namespace {

// The box at `to` from the one that the rank has at `from`.
void add_chained(const ChainedBox& box, const Box& had, const std::byte* from, const Box& whole,
                 std::byte* to, DType dtype, std::vector<LocalOp>& work) {
  if (box.identity) {
    LocalOp op;
    op.kind = LocalOp::Kind::identity;
    op.dtype = dtype;
    op.op = *box.identity;
    op.to = to;
    op.count = volume(whole);
    work.push_back(op);
  }
  for (const Box& kept : box.kept) {
    LocalOp op;
    op.dtype = dtype;
    op.from = from;
    op.to = to;
    op.region = make_region(kept, had, whole);
    if (op.region.run == 0) continue;
    if (work.empty() || !join_copies(work.back(), op)) work.push_back(std::move(op));
  }
}

}  // namespace

// All steps of a tensor whose steps are local, from its source to its target.
Status BundleRun::Inside::add_local_chain(size_t tensor, WavePhase& phase) {
  const BundleTensor& t = tensors[tensor];
  const RedistributionRun::Inside& run = *t.run;
  std::vector<std::shared_ptr<const StepTransfers>> steps;
  for (size_t step = 0; step < run.r->steps.size(); ++step) {
    const auto made =
        transfers->of_step(t.which.member, step, place() + ", " + place_of(*run.r, step));
    if (!made) return made.error();
    steps.push_back(*made);
  }
  const HeldBoxes& before = run.held_boxes.front();
  const HeldBoxes& after = run.held_boxes[steps.size()];
  const std::vector<ChainedBox> chain = chain_of(steps, before);
  for (const size_t slot : run.local_slots[steps.size()]) {
    const ChainedBox& box = chain[slot];
    if (box.from < 0) continue;
    const auto rank = static_cast<size_t>(after.ranks[slot]);
    add_chained(box, box_of_slot(before, box.from), run.held(0)[static_cast<size_t>(box.from)],
                box_of_slot(after, static_cast<int64_t>(slot)), run.held(steps.size())[slot],
                run.dtype, phase.work[static_cast<size_t>(local_number[rank])]);
  }
  return Done{};
}

// The local steps of the wave, in front of its rounds or behind them.
Status BundleRun::Inside::add_local_steps(size_t wave, bool behind) {
  WavePhase phase;
  phase.work.resize(locals.size());
  for (size_t t = 0; t < tensors.size(); ++t) {
    const PlannedRedistribution& r = *tensors[t].run->r;
    if (tensors[t].only_local) {
      if (!behind || tensors[t].first_wave.back() != wave) continue;
      if (auto done = add_local_chain(t, phase); !done) return done;
      continue;
    }
    const size_t end = first_local_at_end(r);
    for (size_t step = 0; step < r.steps.size(); ++step) {
      if (!is_in_no_round(r.steps[step]) || tensors[t].first_wave[step] != wave) continue;
      if ((step >= end) != behind) continue;
      if (auto done = add_local_step(t, step, phase); !done) return done;
    }
  }
  const bool works = std::any_of(phase.work.begin(), phase.work.end(),
                                 [](const auto& ops) { return !ops.empty(); });
  if (works || !behind) waves[wave].phases.push_back(std::move(phase));
  return Done{};
}

void BundleRun::Inside::finish_wave(size_t wave) {
  PreparedWave& now = waves[wave];
  for (const WaveBuffer& buffer : now.begins) now.bytes += buffer.bytes;
  for (WavePhase& phase : now.phases) {
    for (auto& ops : phase.work) {
      for (LocalOp& op : ops) {
        if (op.kind != LocalOp::Kind::copy) continue;
        op.past_cache = now.bytes > cached_bytes;
        if (op.past_cache && op.joined > 1) read_in_order(op);
      }
    }
  }
}

Status BundleRun::Inside::prepare_waves() {
  for (size_t wave = 0; wave < waves.size(); ++wave) {
    if (auto done = begin_boxes(wave); !done) return done;
    if (auto done = add_local_steps(wave, false); !done) return done;
    for (const size_t round : wave_rounds[wave]) {
      if (auto done = RoundPreparer(*this, round, waves[wave]).prepare(); !done) return done;
      digest_text += place_of_round(round) + " wave " + std::to_string(wave);
      for (const PairBytes& pair : rounds[round].pairs) {
        digest_text += " " + std::to_string(pair.from) + ">" + std::to_string(pair.to) + ":" +
                       std::to_string(pair.bytes);
      }
      digest_text += "\n";
    }
    if (auto done = add_local_steps(wave, true); !done) return done;
    end_boxes(wave);
    finish_wave(wave);
  }
  return prepare_completing();
}

// Of targets with pending reductions: a step that completes them, to check what they reduce to.
Status BundleRun::Inside::prepare_completing() {
  for (BundleTensor& t : tensors) {
    RedistributionRun::Inside& run = *t.run;
    if (!run.completing) continue;
    const size_t step = run.r->steps.size();
    const std::string where = place() + ", " + place_of(*run.r) + ", completing its reductions";
    const auto made = make_transfers({&run.held_boxes[step], &run.held_boxes[step + 1],
                                      &*run.completing, q.ranks, &q.plan->topology, where});
    if (!made) return made.error();
    auto prepared = prepare_step(question_of(*this, t, step, *made, where));
    if (!prepared) return prepared.error();
    run.prepared[step].after = prepared->after;
    completing.push_back(std::move(*prepared));
  }
  return Done{};
}

Result<BundleRun> BundleRun::prepare(const Question& question) {
  auto inside = std::make_unique<Inside>(question);
  inside->digest_text = question.plan->digest + "\n";
  if (auto done = inside->make_tensors(); !done) return done.error();
  if (auto done = inside->find_waves_of_steps(); !done) return done.error();
  if (auto done = inside->allocate_ends(); !done) return done.error();
  if (auto done = inside->prepare_waves(); !done) return done.error();
  return BundleRun(std::move(inside));
}

// One for every partition, and of those that several rounds of a wave use one for each.
Status BundleRun::Inside::create_communicators() const {
  using Partition = std::vector<std::vector<int32_t>>;
  const auto create = [&](const auto& owned) -> Result<Partition> {
    Partition groups;
    for (const auto& group : owned) groups.push_back(*group);
    if (groups.empty()) return groups;
    if (auto done = q.communicator->prepare(groups, deadline()); !done) return done.error();
    return groups;
  };
  for (size_t wave = 0; wave < waves.size(); ++wave) {
    std::map<Partition, std::set<int64_t>> streams;
    for (const size_t round : wave_rounds[wave]) {
      if (b->rounds[round].op == Op::exchange) streams[{}].insert(rounds[round].stream);
    }
    for (const WaveGroups& groups : waves[wave].groups) {
      auto created = create(groups.owned);
      if (!created) return created.error();
      if (!created->empty()) streams[*created].insert(groups.stream);
    }
    for (const auto& [groups, used] : streams) {
      if (used.size() < 2) continue;
      if (auto done = q.communicator->prepare_copies(groups, std::ssize(used), deadline()); !done)
        return done;
    }
  }
  for (const PreparedStep& step : completing) {
    if (auto created = create(step.groups); !created) return created.error();
  }
  return Done{};
}

Status BundleRun::agree(Result<BundleRun>& prepared, const Question& q) {
  const AgreementQuestion agreement{"bundle '" + q.bundle->request.id + "'", q.options, q.ranks,
                                    q.communicator, q.fault};
  const Error problem = prepared ? Error{} : prepared.error();
  auto same = agree_on(agreement, prepared ? nullptr : &problem,
                       prepared ? prepared->inside_->digest_text : "");
  if (!same) return same;
  Inside& in = *prepared->inside_;
  if (auto done = in.create_communicators(); !done) return ended_alone(agreement, done.error());
  for (BundleTensor& t : in.tensors) {
    if (auto done = t.run->fill_source(); !done) return ended_alone(agreement, done.error());
  }
  return Done{};
}

}  // namespace meshplan
