#include "measure/measure_bundle.h"

#include "base/utf8.h"
#include "cost/round_time.h"
#include "measure/samples.h"
#include "replay/executor.h"

namespace meshplan {
namespace {

// What the plan says, of the shapes that were planned.
BundleTimes frame_of(const PlannedBundle& bundle) {
  BundleTimes times;
  times.count = bundle.request.count;
  const std::vector<int64_t> waves = waves_of(bundle.rounds);
  for (size_t i = 0; i < bundle.rounds.size(); ++i) {
    const BundleRound& round = bundle.rounds[i];
    times.rounds.push_back({round.op, round.group, round.stream, waves[i], std::ssize(round.parts),
                            round.wire_bytes, ns_of_ps(round.predicted_ps)});
    const auto wave = static_cast<size_t>(waves[i]);
    if (times.waves.size() <= wave) times.waves.resize(wave + 1);
    times.waves[wave].rounds.push_back(i);
  }
  times.predicted_ns = ns_of_ps(bundle.totals.predicted_ps);
  times.predicted_alone_ns = ns_of_ps(bundle.alone_ps);
  return times;
}

void add(const Plan& plan, const RankTable& ranks, const BundleRound& round,
         WaveCollectives& collectives) {
  for (const RoundPart& part : round.parts) {
    const PlannedRedistribution& planned = plan.redistributions[part.member];
    const auto step = static_cast<size_t>(part.step);
    // What it takes counts once.
    const int64_t ps = &part == &round.parts.front() ? round.predicted_ps : 0;
    collectives.add(ps, ranks_of_collective(plan, ranks, planned, step),
                    levels_of_collective(plan, planned, step), ranks.global_ids.size());
  }
}

// Predictions of waves of several rounds; of smaller shapes and fewer tensors those of rounds, too.
void price(const BundleRun::Question& q, const BundleRun& run, BundleTimes& times) {
  const Topology& topology = q.plan->topology;
  RoundCounter counter(*q.ranks, topology);
  times.smaller = run.is_smaller();
  int64_t sum_ps = 0;
  for (WaveTimes& wave : times.waves) {
    RoundLoad all(counter.ranks(), counter.levels());
    WaveCollectives collectives;
    for (const size_t r : wave.rounds) {
      if (times.rounds[r].op != Op::exchange) {
        add(*q.plan, *q.ranks, q.bundle->rounds[r], collectives);
        // Of collectives of smaller shapes nothing is said.
        if (times.smaller) times.rounds[r].wire_bytes = times.rounds[r].predicted_ns = 0;
        continue;
      }
      std::vector<PairElements> pairs;
      for (const PairBytes& pair : run.pairs(r)) pairs.push_back({pair.from, pair.to, pair.bytes});
      counter.add(pairs, 1, 1);
      const RoundLoad load = counter.take();
      if (times.smaller) {
        times.rounds[r].wire_bytes = load.wire_bytes();
        times.rounds[r].predicted_ns = ns_of_ps(load.predicted_ps(topology));
      }
      all.add(load);
    }
    if (collectives.ranks.empty() || !times.smaller) {
      const int64_t ps = wave_ps(topology, all, collectives);
      wave.predicted_ns = ns_of_ps(ps);
      sum_ps += ps;
    } else {
      times.complete = false;
    }
  }
  if (!times.smaller) return;
  times.predicted_ns = times.complete ? ns_of_ps(sum_ps) : 0;
  times.predicted_alone_ns = 0;
}

// The members one by one: every tensor by the steps of its own plan, prepared beside the bundle.
Result<std::vector<RedistributionRun>> prepare_alone(const BundleRun::Question& q,
                                                     const BundleRun& bundle) {
  std::vector<RedistributionRun> runs;
  for (const BundleRun::Tensor& tensor : bundle.tensors()) {
    auto checked = checked_run<RedistributionRun>({q.plan, &q.plan->redistributions[tensor.member],
                                                   &bundle.options(), q.ranks, q.communicator,
                                                   q.device, nullptr, tensor.number});
    if (!checked) return checked.error();
    const RedistributionReport& report = checked->report;
    if (report.wrong > 0 || !report.overruns.empty()) {
      return wrong_data("redistribution '" + report.id +
                        "', by itself: " + std::to_string(report.wrong) + " elements are wrong");
    }
    runs.push_back(std::move(checked->run));
  }
  return runs;
}

class BundleTimer {
 public:
  BundleTimer(const BundleRun::Question& q, BundleRun& run, std::vector<RedistributionRun>& alone,
              BundleTimes& times)
      : q_(q), run_(run), alone_(alone), times_(times) {}

  Status turns(const MeasureOptions& options) {
    for (int64_t number = -options.warmup; number < options.repetitions; ++number) {
      if (auto done = turn(number, number >= 0); !done) return done;
    }
    std::vector<std::vector<int64_t>*> lists{&times_.samples_ns, &times_.alone_samples_ns};
    for (WaveTimes& wave : times_.waves) lists.push_back(&wave.samples_ns);
    return slowest_of_all(lists, *q_.communicator, deadline());
  }

 private:
  // One turn; `kept`: its samples count. What runs first may find colder caches: they alternate.
  Status turn(int64_t number, bool kept) {
    if (auto done = time_waves(kept); !done) return done;
    for (int k = 0; k < 2; ++k) {
      const bool bundle = (k == 0) == ((number & 1) == 0);
      if (!bundle && alone_.empty()) continue;
      const std::string place = "bundle '" + one_line(q_.bundle->request.id) + "', timed ";
      auto ns = bundle ? timed(place + "as a whole", [&] { return all_waves(); })
                       : timed(place + "one by one", [&] { return one_by_one(); });
      if (!ns) return ns.error();
      if (kept) (bundle ? times_.samples_ns : times_.alone_samples_ns).push_back(*ns);
    }
    return Done{};
  }
  [[nodiscard]] Deadline deadline() const { return Clock::now() + q_.options->step_deadline; }

  Status time_waves(bool kept) {
    for (size_t wave = 0; wave < times_.waves.size(); ++wave) {
      const std::string place = run_.place(wave) + ", timed";
      if (auto done = q_.communicator->barrier(place, deadline()); !done) return done;
      const auto start = Clock::now();
      if (auto done = run_.run_wave(wave); !done) return done;
      if (auto done = q_.device->synchronise(); !done) return done;
      if (kept) times_.waves[wave].samples_ns.push_back(ns_since(start));
    }
    return Done{};
  }
  Status all_waves() {
    for (size_t wave = 0; wave < run_.waves().size(); ++wave) {
      if (auto done = run_.run_wave(wave); !done) return done;
    }
    return q_.device->synchronise();
  }
  Status one_by_one() {
    for (RedistributionRun& run : alone_) {
      for (size_t step = 0; step < run.steps(); ++step) {
        if (auto done = run.run_step(step); !done) return done;
      }
    }
    return q_.device->synchronise();
  }
  template <class Work>
  Result<int64_t> timed(const std::string& place, Work&& work) {
    if (auto done = q_.communicator->barrier(place, deadline()); !done) return done.error();
    const auto start = Clock::now();
    if (auto done = work(); !done) return done.error();
    if (auto done = q_.communicator->barrier(place, deadline()); !done) return done.error();
    return ns_since(start);
  }

  const BundleRun::Question& q_;
  BundleRun& run_;
  std::vector<RedistributionRun>& alone_;
  BundleTimes& times_;
};

}  // namespace

Result<BundleTimes> measure_bundle(const BundleRun::Question& q, const MeasureOptions& options) {
  auto checked = checked_run<BundleRun>(q);
  if (!checked) return checked.error();
  BundleRun& run = checked->run;
  BundleTimes times = frame_of(*q.bundle);
  times.replay = std::move(checked->report);
  times.waves.resize(run.waves().size());
  price(q, run, times);
  std::vector<RedistributionRun> alone;
  if (options.alone) {
    auto prepared = prepare_alone(q, run);
    if (!prepared) return prepared.error();
    alone = std::move(*prepared);
  }
  BundleTimer timer(q, run, alone, times);
  if (auto done = or_abort(*q.communicator, timer.turns(options)); !done) return done.error();
  return times;
}

BundleTimes untimed_bundle(const PlannedBundle& bundle, const BundleReport& report) {
  BundleTimes times = frame_of(bundle);
  times.replay = report;
  times.smaller = report.shrunk || report.replayed < report.tensors;
  return times;
}

}  // namespace meshplan
