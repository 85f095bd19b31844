// Faults, the comparison of every element of a bundle, and what its rounds took.
#include <algorithm>
#include <sstream>

#include "base/utf8.h"
#include "replay/agreement.h"
#include "replay/bundle_inside.h"
#include "replay/gather_reports.h"
#include "replay/strike.h"

namespace meshplan {
namespace {

bool has_index(const Box& box, const std::vector<int64_t>& index) {
  for (size_t d = 0; d < box.size(); ++d) {
    if (index[d] < box[d].lo || index[d] >= box[d].hi) return false;
  }
  return true;
}

// Where a box lies in the whole one, in elements.
std::vector<int64_t> offsets_in(const Box& box, const Box& whole) {
  std::vector<int64_t> offsets;
  const Region region = make_region(box, whole, box);
  for_each_run(region, [&](int64_t from, int64_t) {
    for (int64_t i = 0; i < region.run; ++i) offsets.push_back(from + i);
  });
  return offsets;
}

}  // namespace

// Into what the fault's rank got in the fault's round.
Status BundleRun::Inside::inject(size_t wave) const {
  const InjectedFault* fault = q.fault;
  if (fault == nullptr || !is_ours(*fault, *q.ranks, *q.communicator)) return Done{};
  const auto round = static_cast<size_t>(fault->step);
  const std::vector<size_t>& list = wave_rounds[wave];
  if (std::find(list.begin(), list.end(), round) == list.end()) return Done{};
  if (needs_process(fault->kind) || fault->kind == FaultKind::memory) return Done{};
  for (const RoundPart& part : b->rounds[round].parts) {
    const auto step = static_cast<size_t>(part.step);
    const std::vector<size_t> some = tensors_of(part);
    if (some.empty()) continue;
    const auto made = transfers->of_part(part, place_of_round(round));
    if (!made) return made.error();
    for (const size_t t : some) {
      const RedistributionRun::Inside& run = *tensors[t].run;
      const HeldBoxes& after = run.held_boxes[step + 1];
      for (const size_t s : run.local_slots[step + 1]) {
        if (global_id(after.ranks[s]) != fault->rank) continue;
        const Box& whole = box_of_slot(after, static_cast<int64_t>(s));
        for (const Transfer& got : (*made)->slots[s].transfers) {
          if (volume(got.box) == 0) continue;
          const auto struck =
              strike_box({after.ranks[s], run.held(step + 1)[s], volume(whole), run.dtype},
                         fault->kind, offsets_in(got.box, whole), *q.device);
          if (!struck) return struck.error();
          return *struck ? Status(Done{}) : changes_nothing(*fault, place_of_round(round));
        }
      }
    }
  }
  return bad_input("--inject " + to_text(*fault) + ": rank " + std::to_string(fault->rank) +
                   " gets nothing in " + place_of_round(round) + "; choose another rank");
}

// Of messages and of boxes between steps, before their memory is given back.
Status BundleRun::Inside::check_guards(size_t wave, BundleReport& report) const {
  for (const WaveBuffer& buffer : waves[wave].ends) {
    auto whole = q.device->guards_whole(buffer.rank, buffer.data, buffer.bytes);
    if (!whole) return whole.error();
    if (*whole) continue;
    PlaceInBundle where{"messages", 0, static_cast<int64_t>(buffer.round)};
    if (buffer.tensor >= 0) {
      const BundleTensor& t = tensors[buffer.tensor];
      where = {t.run->r->request.id, t.which.number, -1};
      where.round = round_of({global_id(buffer.rank), buffer.step, {}, "", ""},
                             static_cast<size_t>(buffer.tensor));
    }
    report.overruns.push_back({global_id(buffer.rank), buffer.step, where});
  }
  return Done{};
}

// The round that brought the element; of a local step, or where the difference names no element,
// the last that ran the step, or the one before it.
int64_t BundleRun::Inside::round_of(const Difference& difference, size_t tensor) const {
  const BundleTensor& t = tensors[tensor];
  auto step = difference.step;
  while (step > 0 && is_in_no_round(t.run->r->steps[step])) --step;
  int64_t last = -1;
  for (size_t round = 0; round < b->rounds.size(); ++round) {
    for (const RoundPart& part : b->rounds[round].parts) {
      if (part.member != t.which.member || part.step != step || t.which.number < part.from ||
          t.which.number >= part.to)
        continue;
      last = static_cast<int64_t>(round);
      const auto made = transfers->of_part(part, place_of_round(round));
      if (!made || difference.step != step) continue;
      const HeldBoxes& after = t.run->held_boxes[static_cast<size_t>(step) + 1];
      for (size_t s = 0; s < after.ranks.size(); ++s) {
        if (global_id(after.ranks[s]) != difference.rank) continue;
        const auto& got = (*made)->slots[s].transfers;
        if (difference.index.size() == t.run->shape.size() && !difference.index.empty() &&
            std::any_of(got.begin(), got.end(),
                        [&](const Transfer& x) { return has_index(x.box, difference.index); }))
          return last;
      }
    }
  }
  return last;
}

void BundleRun::Inside::add(const RedistributionReport& found, size_t tensor,
                            BundleReport& report) const {
  const BundleTensor& t = tensors[tensor];
  report.checked += found.checked;
  report.wrong += found.wrong;
  report.largest_ulp = std::max(report.largest_ulp, found.largest_ulp);
  report.largest_relative = std::max(report.largest_relative, found.largest_relative);
  const auto place_in = [&](const Difference& at) {
    return PlaceInBundle{t.run->r->request.id, t.which.number, round_of(at, tensor)};
  };
  for (Difference d : found.differences) {
    if (report.differences.size() >= q.options->keep_differences) break;
    d.bundle = place_in(d);
    report.differences.push_back(std::move(d));
  }
  for (Overrun o : found.overruns) {
    o.bundle = place_in({o.rank, o.step, {}, "", ""});
    report.overruns.push_back(std::move(o));
  }
}

Status BundleRun::Inside::check_ends(BundleReport& report) const {
  for (size_t t = 0; t < tensors.size(); ++t) {
    const RedistributionRun::Inside& run = *tensors[t].run;
    const size_t last = run.r->steps.size();
    RedistributionReport found;
    if (auto done = run.check_guards(0, found); !done) return done;
    if (last > 0) {
      if (auto done = run.check_guards(last, found); !done) return done;
    }
    const size_t checked = run.held_boxes.size() - 1;
    if (auto done = run.check_state(checked, static_cast<int64_t>(last) - 1, found); !done)
      return done;
    add(found, t, report);
  }
  return Done{};
}

// What is whole after the wave; whether any rank has something wrong.
Result<bool> BundleRun::Inside::check_wave(size_t wave, BundleReport& report) const {
  for (const WholeState& now : waves[wave].whole) {
    RedistributionReport found;
    bool known = true;
    if (auto done = tensors[now.tensor].run->check_middle(now.state, found, known); !done)
      return done.error();
    add(found, now.tensor, report);
  }
  auto wrong = tensors.front().run->everyones_sum(report.wrong);
  if (!wrong) return wrong.error();
  return *wrong > 0;
}

BundleReport BundleRun::Inside::empty_report() const {
  BundleReport report;
  report.id = b->request.id;
  report.members = std::ssize(b->request.members);
  report.tensors = b->tensors;
  report.replayed = std::ssize(tensors);
  report.rounds = std::ssize(b->rounds);
  report.waves = std::ssize(wave_rounds);
  std::vector<int32_t> ranks;
  for (const BundleTensor& t : tensors) {
    report.shrunk = report.shrunk || t.run->shrunk;
    report.weak = report.weak ||
                  (t.run->table->question().kind == DataKind::exact && t.run->table->all_zero());
    for (const HeldBoxes& at : t.run->held_boxes)
      ranks.insert(ranks.end(), at.ranks.begin(), at.ranks.end());
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  }
  report.ranks = std::ssize(ranks);
  report.planned_staging_bytes = b->totals.staging_bytes;
  report.planned_peak_bytes = b->totals.peak_bytes;
  report.max_staging_bytes = b->request.max_staging_bytes;
  report.max_messages = b->request.max_messages;
  for (const BundleRound& round : b->rounds) report.planned_messages.push_back(round.messages);
  return report;
}

// Of the ranks of this process.
void BundleRun::Inside::measure_limits(BundleReport& report) const {
  std::map<int32_t, int64_t> ends;
  for (const BundleTensor& t : tensors) {
    for (const size_t state : {size_t{0}, t.run->r->steps.size()}) {
      const HeldBoxes& at = t.run->held_boxes[state];
      for (const size_t s : t.run->local_slots[state]) {
        ends[at.ranks[s]] += volume(box_of_slot(at, static_cast<int64_t>(s))) * t.run->size;
      }
    }
  }
  for (const int32_t rank : locals) {
    report.staging_bytes = std::max(report.staging_bytes, pool.most(rank));
    report.peak_bytes = std::max(report.peak_bytes, pool.most(rank) + ends[rank]);
  }
  for (const RoundFacts& round : rounds) {
    int64_t most = 0;
    for (const auto& [rank, messages] : round.messages) most = std::max(most, messages);
    report.messages.push_back(most);
  }
}

namespace {

std::string encode_bundle(const BundleReport& report) {
  std::ostringstream out;
  out << report.checked << ' ' << report.wrong << ' ' << report.largest_ulp << ' '
      << report.largest_relative << ' ' << report.staging_bytes << ' ' << report.peak_bytes;
  for (const int64_t messages : report.messages) out << ' ' << messages;
  out << '\n';
  const auto place = [&](const std::optional<PlaceInBundle>& at) {
    out << ' ' << at->tensor << ' ' << at->round;
  };
  for (const Difference& d : report.differences) {
    out << "d " << d.rank << ' ' << d.step << ' ' << d.expected << ' ' << d.found;
    place(d.bundle);
    for (const int64_t i : d.index) out << ' ' << i;
    out << '\n' << one_line(d.bundle->id) << '\n';
  }
  for (const Overrun& o : report.overruns) {
    out << "o " << o.rank << ' ' << o.step;
    place(o.bundle);
    out << '\n' << one_line(o.bundle->id) << '\n';
  }
  return out.str();
}

// Adds the results of another process.
void add_encoded_bundle(const std::string& text, BundleReport& report) {
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  std::istringstream head(line);
  BundleReport theirs;
  head >> theirs.checked >> theirs.wrong >> theirs.largest_ulp >> theirs.largest_relative >>
      theirs.staging_bytes >> theirs.peak_bytes;
  report.checked += theirs.checked;
  report.wrong += theirs.wrong;
  report.largest_ulp = std::max(report.largest_ulp, theirs.largest_ulp);
  report.largest_relative = std::max(report.largest_relative, theirs.largest_relative);
  report.staging_bytes = std::max(report.staging_bytes, theirs.staging_bytes);
  report.peak_bytes = std::max(report.peak_bytes, theirs.peak_bytes);
  for (int64_t& most : report.messages) {
    int64_t messages = 0;
    head >> messages;
    most = std::max(most, messages);
  }
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string kind;
    PlaceInBundle place;
    words >> kind;
    if (kind == "o") {
      Overrun o;
      words >> o.rank >> o.step >> place.tensor >> place.round;
      std::getline(lines, place.id);
      o.bundle = place;
      report.overruns.push_back(std::move(o));
      continue;
    }
    Difference d;
    words >> d.rank >> d.step >> d.expected >> d.found >> place.tensor >> place.round;
    for (int64_t i = 0; words >> i;) d.index.push_back(i);
    std::getline(lines, place.id);
    d.bundle = place;
    report.differences.push_back(std::move(d));
  }
}

}  // namespace

// The findings of all processes.
Status BundleRun::Inside::gather(BundleReport& report) const {
  return gather_reports(*q.communicator, deadline(), q.options->keep_differences, report,
                        encode_bundle, add_encoded_bundle);
}

}  // namespace meshplan
