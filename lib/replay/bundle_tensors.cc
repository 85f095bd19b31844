// Which tensors of a bundle are replayed, when their steps run, and how long their boxes live.
#include <algorithm>

#include "base/utf8.h"
#include "plan/firsts.h"
#include "replay/alike_tensors.h"
#include "replay/bundle_inside.h"
#include "transfer/listed_transfers.h"

namespace meshplan {
namespace {

// More tensors than this are replayed by some that stand for the others, unless full size is asked
// for: like tensors of a member first, then members that repeat one another.
constexpr int64_t most_tensors = 4096;

}  // namespace

BundleRun::Inside::Inside(const Question& question)
    : q(question), b(question.bundle), options(*question.options), pool(*question.device) {
  locals = q.communicator->local_ranks();
  local_number.assign(q.ranks->global_ids.size(), -1);
  for (size_t i = 0; i < locals.size(); ++i) {
    const auto rank = static_cast<size_t>(locals[i]);
    if (rank < local_number.size()) local_number[rank] = static_cast<int32_t>(i);
  }
  const std::vector<int64_t> wave_of = waves_of(b->rounds);
  for (size_t r = 0; r < wave_of.size(); ++r) {
    const auto wave = static_cast<size_t>(wave_of[r]);
    if (wave_rounds.size() <= wave) wave_rounds.resize(wave + 1);
    wave_rounds[wave].push_back(r);
  }
  rounds.resize(b->rounds.size());
  // A stream has one round in a wave at most.
  for (const std::vector<size_t>& list : wave_rounds) {
    for (const size_t r : list) {
      rounds[r].stream = std::count_if(list.begin(), list.end(), [&](size_t other) {
        return b->rounds[other].stream < b->rounds[r].stream;
      });
    }
  }
}

std::string BundleRun::Inside::place() const { return "bundle '" + one_line(b->request.id) + "'"; }

std::string BundleRun::Inside::place_of_round(size_t round) const {
  return place() + ", round " + std::to_string(round);
}

std::string BundleRun::Inside::place_of_wave(size_t wave) const {
  const std::vector<size_t>& list = wave_rounds[wave];
  if (list.empty()) return place() + ", after the last round";
  std::string text = place() + (list.size() == 1 ? ", round" : ", rounds");
  for (const size_t round : list) text += " " + std::to_string(round);
  return text;
}

double BundleRun::Inside::bytes_in_all() const {
  const std::vector<size_t>& members = b->request.members;
  const std::vector<size_t> firsts = firsts_of(q.plan->redistributions, members);
  std::vector<double> of_one(members.size());  // bytes of a like tensor
  double bytes = 0;
  for (size_t m = 0; m < members.size(); ++m) {
    const PlannedRedistribution& r = q.plan->redistributions[members[m]];
    of_one[m] = firsts[m] == m ? bytes_of_tensor(r) : of_one[firsts[m]];
    bytes += of_one[m] * static_cast<double>(r.request.count);
  }
  return bytes;
}

double BundleRun::Inside::bytes_of_tensor(const PlannedRedistribution& r) const {
  double elements = 0;
  for (const HeldBoxes& at : held_boxes_of(*q.plan, r, *q.ranks)) {
    for (const Box& box : at.boxes)
      elements += static_cast<double>(volume(box)) * static_cast<double>(at.copies);
  }
  return elements * static_cast<double>(element_bytes(r.request.tensor.dtype));
}

void BundleRun::Inside::choose_tensors(bool fewer) {
  const std::vector<AlikeRun> runs = alike_runs(*b, q.plan->redistributions);
  std::vector<TensorRange> kept;
  for (const AlikeRun& run : runs) kept.push_back(run.range);
  if (fewer) {
    // The first and the last stand for a run, and where that leaves too many, for all like it.
    kept = ends_of(kept);
    if (std::ssize(kept) > most_tensors) kept = ends_of_classes(runs, *b, q.plan->redistributions);
  }
  for (const TensorRange& range : kept) {
    for (int64_t n = range.from; n < range.to; ++n) chosen.push_back({range.member, n});
  }
}

Status BundleRun::Inside::make_tensors() {
  const double bytes = bytes_in_all();
  const bool large =
      !options.full_size &&
      (bytes > static_cast<double>(options.shrink_bundle_above_bytes) || b->tensors > most_tensors);
  const bool fewer = options.shrink || large;
  choose_tensors(fewer);
  smaller = std::ssize(chosen) < b->tensors;
  options.shrink_above_bytes =
      large ? options.shrink_bundle_above_bytes / std::max<int64_t>(1, std::ssize(chosen))
            : INT64_MAX;
  for (const Tensor& which : chosen) {
    const RedistributionRun::Question question{
        q.plan,         &q.plan->redistributions[which.member],
        &options,       q.ranks,
        q.communicator, q.device,
        nullptr,        which.number};
    auto run = RedistributionRun::Inside::begin(question);
    if (auto done = run->make_all_held_boxes(); !done) return done;
    smaller = smaller || run->shrunk;
    run->prepared.resize(run->held_boxes.size() - 1);
    for (size_t i = 0; i < run->prepared.size(); ++i)
      run->prepared[i].after.assign(run->held_boxes[i + 1].ranks.size(), nullptr);
    of_member[which.member].push_back(tensors.size());
    tensors.push_back({which, std::move(run), {}, {}, false});
  }
  transfers = std::make_unique<MemberTransfers>(*q.plan, *q.ranks, [this](size_t member) {
    return tensors[of_member.at(member).front()].run->held_boxes;
  });
  return Done{};
}

std::vector<size_t> BundleRun::Inside::tensors_of(const RoundPart& part) const {
  const auto all = of_member.find(part.member);
  if (all == of_member.end()) return {};
  const auto first_from = [&](int64_t number) {
    return std::partition_point(all->second.begin(), all->second.end(),
                                [&](size_t t) { return tensors[t].which.number < number; });
  };
  return {first_from(part.from), first_from(part.to)};
}

namespace {

// Local steps run in the wave of the next other step, behind the last one in its wave.
void place_local_steps(const PlannedRedistribution& r, size_t last, BundleTensor& tensor) {
  size_t wave = last;
  for (size_t s = 0; s < r.steps.size(); ++s) {
    if (!is_in_no_round(r.steps[s])) wave = tensor.last_wave[s];
  }
  for (size_t s = r.steps.size(); s-- > 0;) {
    if (is_in_no_round(r.steps[s])) {
      tensor.first_wave[s] = tensor.last_wave[s] = wave;
    } else {
      wave = tensor.first_wave[s];
    }
  }
}

}  // namespace

Status BundleRun::Inside::find_waves_of_steps() {
  constexpr size_t never = SIZE_MAX;
  for (BundleTensor& t : tensors) {
    t.first_wave.assign(t.run->r->steps.size(), never);
    t.last_wave.assign(t.run->r->steps.size(), 0);
  }
  for (size_t wave = 0; wave < wave_rounds.size(); ++wave) {
    for (const size_t round : wave_rounds[wave]) {
      for (const RoundPart& part : b->rounds[round].parts) {
        for (const size_t t : tensors_of(part)) {
          const auto step = static_cast<size_t>(part.step);
          tensors[t].first_wave[step] = std::min(tensors[t].first_wave[step], wave);
          tensors[t].last_wave[step] = std::max(tensors[t].last_wave[step], wave);
        }
      }
    }
  }
  const size_t last = wave_rounds.size();
  bool behind = false;
  for (BundleTensor& t : tensors) {
    const PlannedRedistribution& r = *t.run->r;
    size_t before = never;
    for (size_t s = 0; s < r.steps.size(); ++s) {
      if (is_in_no_round(r.steps[s])) continue;
      if (t.first_wave[s] == never) {
        return wrong_data(place() + ": no round runs tensor " + std::to_string(t.which.number) +
                          " of " + place_of(r, s));
      }
      if (before != never && t.first_wave[s] <= before) {
        return wrong_data(place_of_wave(t.first_wave[s]) + ": " + place_of(r, s) +
                          " runs before the step that it needs");
      }
      before = t.first_wave[s];
    }
    t.only_local = before == never && !r.steps.empty();
    behind = behind || t.only_local;
    place_local_steps(r, last, t);
  }
  if (behind) wave_rounds.emplace_back();
  waves.resize(wave_rounds.size());
  return Done{};
}

Status BundleRun::Inside::allocate_ends() {
  for (BundleTensor& t : tensors) {
    RedistributionRun::Inside& run = *t.run;
    const size_t last = run.r->steps.size();
    run.source.assign(run.held_boxes[0].ranks.size(), nullptr);
    for (const size_t state : {size_t{0}, last}) {
      std::vector<std::byte*>& buffers = state == 0 ? run.source : run.prepared[state - 1].after;
      for (const size_t s : run.local_slots[state]) {
        const HeldBoxes& at = run.held_boxes[state];
        auto data = q.device->allocate(at.ranks[s],
                                       volume(box_of_slot(at, static_cast<int64_t>(s))) * run.size);
        if (!data) {
          const char* const end = state == 0 ? ", source" : ", target";
          return at_place(place() + ", " + place_of(*run.r) + end, data.error());
        }
        buffers[s] = *data;
      }
      if (last == 0) break;
    }
    for (size_t s = 0; s < last; ++s) {
      run.prepared[s].local_bytes = 0;
      for (const size_t slot : run.local_slots[s + 1]) {
        run.prepared[s].local_bytes +=
            volume(box_of_slot(run.held_boxes[s + 1], static_cast<int64_t>(slot))) * run.size;
      }
    }
  }
  return Done{};
}

}  // namespace meshplan
