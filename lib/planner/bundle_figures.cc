#include "planner/bundle_figures.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/int_math.h"
#include "transfer/listed_transfers.h"
#include "transfer/round_transfers.h"

namespace meshplan {
namespace {

// Boxes between two steps, wave by wave: those of a tensor from the wave that writes the first
// piece to that of the last use.
class BetweenSteps {
 public:
  explicit BetweenSteps(size_t waves) : changes_(waves + 1) {}

  // A part of the way's step `s` of those that communicate, in this wave. Only tensors that are cut
  // appear in several parts of a step.
  void add(const KindPart& part, const Way& way, int64_t wave) {
    if (way.between.empty()) return;
    const WayStep& step = way.steps[part.step];
    size_t first = part.step;  // of those of the step of the plan
    while (first > 0 && way.steps[first - 1].index == step.index) --first;
    const size_t begin = first == 0 ? 0 : way.steps[first - 1].index + 1;
    const bool last = way.steps.back().index == step.index;
    const size_t end = last ? way.between.size() : step.index + 1;
    // It reads the box before it, makes those of the local steps since the last one, and its own.
    for (size_t i = begin > 0 ? begin - 1 : 0; i < end; ++i)
      use({part.kind, i, part.from, part.to}, wave);
  }

  // Adds what each rank has in every wave; calls `visit` wave by wave.
  template <class Visit>
  void each_wave(const std::vector<Kind>& kinds, const std::vector<size_t>& chosen, size_t ranks,
                 const Visit& visit) {
    split_ranges();
    for (const auto& [key, span] : spans_) {
      changes_[static_cast<size_t>(span.lo)].push_back({key, 1});
      changes_[static_cast<size_t>(span.hi)].push_back({key, -1});
    }
    std::vector<int64_t> live(ranks, 0);
    for (size_t wave = 0; wave + 1 < changes_.size(); ++wave) {
      for (const auto& [key, sign] : changes_[wave]) {
        const auto& [kind, step, from, to] = key;
        const std::vector<int64_t>& bytes = kinds[kind].ways[chosen[kind]].between[step];
        for (size_t r = 0; r < ranks; ++r) {
          const int64_t all = saturating_mul(bytes[r], to - from);
          live[r] = saturating_add(live[r], sign * all);
        }
      }
      visit(wave, live);
    }
  }

 private:
  using Key = std::tuple<size_t, size_t, int64_t, int64_t>;  // kind, step, tensors

  void use(const Key& key, int64_t wave) {
    const auto [span, fresh] = spans_.try_emplace(key, Interval{wave, wave + 1});
    if (fresh) return;
    span->second.lo = std::min(span->second.lo, wave);
    span->second.hi = std::max(span->second.hi, wave + 1);
  }

  // Ranges of tensors that were put together in one step and apart in another, cut where either is.
  void split_ranges() {
    std::map<std::pair<size_t, size_t>, std::vector<int64_t>> ends;
    for (const auto& [key, span] : spans_) {
      auto& list = ends[{std::get<0>(key), std::get<1>(key)}];
      list.push_back(std::get<2>(key));
      list.push_back(std::get<3>(key));
    }
    for (auto& [of, list] : ends) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    std::map<Key, Interval> whole;
    whole.swap(spans_);
    for (const auto& [key, span] : whole) {
      const auto& [kind, step, from, to] = key;
      const auto& list = ends.at({kind, step});
      auto at = std::lower_bound(list.begin(), list.end(), from);
      for (; *at < to; ++at) {
        use({kind, step, *at, *(at + 1)}, span.lo);
        use({kind, step, *at, *(at + 1)}, span.hi - 1);
      }
    }
  }

  std::map<Key, Interval> spans_;  // waves
  std::vector<std::vector<std::pair<Key, int64_t>>> changes_;
};

// To ranks that ascend, each once.
void add_ranks(const std::vector<int32_t>& more, std::vector<int32_t>& ranks) {
  ranks.insert(ranks.end(), more.begin(), more.end());
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
}

}  // namespace

int64_t BundleFigures::most_messages() const {
  int64_t most = 0;
  for (const BundleRound& round : rounds) most = std::max(most, round.messages);
  return most;
}

FigureCounter::FigureCounter(const Plan& plan, const RankTable& ranks,
                             const std::vector<std::unique_ptr<LevelMap>>& levels)
    : plan_(plan),
      ranks_(ranks),
      levels_(levels),
      counter_(ranks, plan.topology),
      part_loads_(counter_) {}

std::optional<FigureCounter::WayLoads> FigureCounter::loads_of(const Way& way, int64_t tensors) {
  const WayQuestion asked{&plan_, &ranks_, &levels_};
  const std::vector<HeldBoxes> held = held_boxes_of(plan_, way.planned, ranks_);
  WayLoads loads;
  const std::vector<Step>& steps = way.planned.steps;
  const bool lone = std::count_if(steps.begin(), steps.end(),
                                  [](const Step& step) { return !is_in_no_round(step); }) == 1;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (step.op != Op::exchange) continue;
    const TransferQuestion question = transfer_question(asked, way.planned, i, held);
    const int64_t width = wire_element_bytes(way.planned, i);
    // Whether it may be so: something was added, or all are there already.
    const auto keep = [&](int64_t pairs, int64_t looked_at) {
      const RoundLoad load = counter_.take();
      loads.messages = std::max(loads.messages, load.messages());
      loads.of_exchanges.emplace_back(load);
      loads.pairs = saturating_add(loads.pairs, pairs);
      weighed_ += looked_at;
      return pairs > 0 || lone;
    };
    if (step.phases == 1) {
      int64_t pairs = 0;
      int64_t looked_at = 0;
      const Status listed = for_each_received(question, [&](const ReceivedAlike& received) {
        counter_.add_once(received, width, tensors);
        pairs += std::ssize(received.parts) * std::ssize(received.to);
        looked_at += std::ssize(received.parts) + std::ssize(received.to);
      });
      MESHPLAN_CHECK(listed.ok(), "a planned step moves what it says: " + listed.error().message);
      if (!keep(pairs, looked_at)) return std::nullopt;
      continue;
    }
    auto phases = pairs_in_two_phases(question);
    MESHPLAN_CHECK(phases.ok(), "a planned step moves what it says: " + phases.error().message);
    // Behind steps in pieces what comes from inside of units is sent while the rest is fetched.
    const bool in_pieces = phases_go_in_pieces(way.planned, i);
    for (const auto* other : {&phases->fetched, &phases->passed_on}) {
      int64_t pairs = 0;
      const auto add = [&](const std::vector<PairElements>& list) {
        counter_.add(list, width, tensors);
        pairs += std::ssize(list);
      };
      add(*other);
      if (in_pieces == (other == &phases->fetched)) add(phases->from_sources);
      if (!keep(pairs, pairs)) return std::nullopt;
    }
  }
  return loads;
}

void FigureCounter::count_collective(const std::vector<Kind>& kinds,
                                     const std::vector<size_t>& chosen, const KindRound& round,
                                     BundleRound& out, Counted& counted) {
  CollectiveBytes bytes;
  bytes.op = out.op;
  const std::vector<SubAxis>* dims = nullptr;
  size_t mesh = 0;
  // Views of the same ranks have a group in common, and count once; the first copy of a mesh and
  // all of its copies have, too.
  std::set<std::pair<size_t, bool>> seen;
  for (const KindPart& part : round.parts) {
    const Way& way = kinds[part.kind].ways[chosen[part.kind]];
    const WayStep& step = way.steps[part.step];
    const Request& request = way.planned.request;
    mesh = mesh_of_collective(plan_, way.planned, step.index);
    dims = &step.mesh_dims;
    if (seen.insert({mesh, request.src_mesh != request.dst_mesh}).second)
      add_ranks(step.ranks, counted.packing);
    const int64_t times = part.to - part.from;
    const auto add = [&](int64_t& sum, int64_t each) {
      sum = saturating_add(sum, saturating_mul(each, times));
    };
    add(bytes.whole, step.figures.bytes.whole);
    add(bytes.piece, step.figures.bytes.piece);
    add(bytes.copied, step.figures.bytes.copied);
    add(out.wire_bytes, step.figures.wire);
    add(out.staging_bytes, step.figures.staging);
    add(out.messages, 2);
  }
  std::string tier;
  const std::vector<GroupShape>& shapes = levels_[mesh]->shapes(*dims);
  out.predicted_ps = finer_ps(plan_.topology, shapes, bytes, tier);
  counted.levels = levels_met(shapes);
  counted.packed = out.staging_bytes;
}

// Pieces that follow one another are counted as one.
RoundLoad FigureCounter::load_of(const std::vector<Kind>& kinds, const std::vector<size_t>& chosen,
                                 const KindRound& round) {
  std::vector<PartLoads::Part> parts;
  for (size_t i = 0, end = 0; i < round.parts.size(); i = end) {
    const KindPart& part = round.parts[i];
    const auto follows = [&](const KindPart& next) {
      return next.kind == part.kind && next.step == part.step && next.from == part.from &&
             next.to == part.to && next.pieces == part.pieces &&
             next.piece == part.piece + static_cast<int64_t>(end - i);
    };
    for (end = i + 1; end < round.parts.size() && follows(round.parts[end]);) ++end;
    const size_t way = chosen[part.kind];
    parts.push_back(
        {{part.kind, way, part.step, part.piece, part.pieces, static_cast<int64_t>(end - i)},
         &kinds[part.kind].ways[way].steps[part.step],
         part.to - part.from});
  }
  return part_loads_.load_of(parts);
}

FigureCounter::Counted FigureCounter::count_round(const std::vector<Kind>& kinds,
                                                  const std::vector<size_t>& chosen,
                                                  const KindRound& round, BundleRound& out) {
  Counted counted;
  out.stream = round.stream;
  out.after = round.after;
  bool first = true;
  for (const KindPart& part : round.parts) {
    const Way& way = kinds[part.kind].ways[chosen[part.kind]];
    const WayStep& moved = way.steps[part.step];
    const std::string& group = way.planned.steps[moved.index].group;
    out.op = moved.op;
    out.group = first || out.group == group ? group : "";
    first = false;
    const auto parts = parts_of(part, kinds[part.kind], way, plan_);
    out.parts.insert(out.parts.end(), parts.begin(), parts.end());
  }
  if (out.op != Op::exchange) {
    count_collective(kinds, chosen, round, out, counted);
    return counted;
  }
  counted.load = load_of(kinds, chosen, round);
  out.wire_bytes = counted.load->wire_bytes();
  out.staging_bytes = counted.load->staging_bytes();
  out.messages = counted.load->messages();
  out.predicted_ps = counted.load->predicted_ps(plan_.topology);
  return counted;
}

std::vector<int64_t> FigureCounter::held_by_ranks(const std::vector<Kind>& kinds,
                                                  const std::vector<size_t>& chosen) const {
  std::vector<int64_t> bytes(counter_.ranks(), 0);
  for (size_t k = 0; k < kinds.size(); ++k) {
    const PlannedRedistribution& planned = kinds[k].ways[chosen[k]].planned;
    const int64_t weight =
        saturating_mul(kinds[k].tensors, element_bytes(planned.request.tensor.dtype));
    const std::vector<HeldBoxes> held = held_boxes_of(plan_, planned, ranks_);
    for (const HeldBoxes* side : {&held.front(), &held.back()}) {
      for (size_t slot = 0; slot < side->ranks.size(); ++slot) {
        int64_t& sum = bytes[static_cast<size_t>(side->ranks[slot])];
        sum = saturating_add(
            sum, saturating_mul(weight, volume(box_of_slot(*side, static_cast<int64_t>(slot)))));
      }
    }
  }
  return bytes;
}

void FigureCounter::count_waves(const std::vector<Kind>& kinds, const std::vector<size_t>& chosen,
                                const std::vector<KindRound>& rounds,
                                const std::vector<Counted>& counted, BundleFigures& figures) {
  const std::vector<int64_t> wave_of = waves_of(figures.rounds);
  size_t waves = 0;
  for (const int64_t wave : wave_of) waves = std::max(waves, static_cast<size_t>(wave) + 1);
  std::vector<std::vector<size_t>> in_wave(waves);
  BetweenSteps between(waves);
  for (size_t r = 0; r < rounds.size(); ++r) {
    in_wave[static_cast<size_t>(wave_of[r])].push_back(r);
    for (const KindPart& part : rounds[r].parts)
      between.add(part, kinds[part.kind].ways[chosen[part.kind]], wave_of[r]);
  }
  std::vector<int64_t> most(counter_.ranks(), 0);  // staging of every rank
  between.each_wave(
      kinds, chosen, counter_.ranks(), [&](size_t wave, const std::vector<int64_t>& boxes) {
        RoundLoad load(counter_.ranks(), counter_.levels());
        std::vector<int64_t> staged = boxes;
        WaveCollectives collectives;
        for (const size_t r : in_wave[wave]) {
          if (counted[r].load) {
            load.add(*counted[r].load);
            continue;
          }
          collectives.add(figures.rounds[r].predicted_ps, counted[r].packing, counted[r].levels,
                          counter_.ranks());
          for (const int32_t rank : counted[r].packing) {
            int64_t& sum = staged[static_cast<size_t>(rank)];
            sum = saturating_add(sum, counted[r].packed);
          }
        }
        figures.totals.predicted_ps =
            saturating_add(figures.totals.predicted_ps, wave_ps(plan_.topology, load, collectives));
        for (size_t rank = 0; rank < staged.size(); ++rank) {
          const RankLoad own = load.of_rank(rank);
          most[rank] = std::max(
              most[rank], saturating_add(staged[rank], saturating_add(own.received, own.sent)));
        }
      });
  const std::vector<int64_t> held = held_by_ranks(kinds, chosen);
  for (size_t rank = 0; rank < most.size(); ++rank) {
    figures.totals.staging_bytes = std::max(figures.totals.staging_bytes, most[rank]);
    figures.totals.peak_bytes =
        std::max(figures.totals.peak_bytes, saturating_add(most[rank], held[rank]));
  }
}

int64_t FigureCounter::work_of(const std::vector<Kind>& kinds, const std::vector<size_t>& chosen,
                               const std::vector<KindRound>& rounds) const {
  int64_t work = 0;
  for (const KindRound& round : rounds) {
    work = saturating_add(work, static_cast<int64_t>(counter_.ranks()));
    for (const KindPart& part : round.parts)
      work = saturating_add(
          work, std::ssize(kinds[part.kind].ways[chosen[part.kind]].steps[part.step].cuts));
  }
  return work;
}

BundleFigures FigureCounter::count(const std::vector<Kind>& kinds,
                                   const std::vector<size_t>& chosen,
                                   const std::vector<KindRound>& rounds) {
  looked_at_ += std::ssize(rounds) * static_cast<int64_t>(counter_.ranks());
  BundleFigures figures;
  std::vector<Counted> counted;
  for (const KindRound& round : rounds) {
    BundleRound& out = figures.rounds.emplace_back();
    counted.push_back(count_round(kinds, chosen, round, out));
    figures.totals.wire_bytes = saturating_add(figures.totals.wire_bytes, out.wire_bytes);
    figures.totals.messages = saturating_add(figures.totals.messages, out.messages);
  }
  figures.totals.rounds = static_cast<int64_t>(rounds.size());
  count_waves(kinds, chosen, rounds, counted, figures);
  return figures;
}

}  // namespace meshplan
