// Reports as JSON: meshplan's own, nccl-tests' shape, and a timeline for Perfetto. Keys ascend.
#include <algorithm>

#include "cost/topology.h"
#include "json/write.h"
#include "measure/measure.h"
#include "measure/nccl_words.h"

namespace meshplan {
namespace {

using Integers = std::vector<int64_t>;

void write_timing(JsonWriter& w, const Integers& samples) {
  const Summary s = summarise(samples);
  w.key("time");
  w.open('{');
  w.fields({{"median_interval_ns", Integers{s.median_low, s.median_high}},
            {"median_ns", s.median},
            {"min_ns", s.min},
            {"p95_ns", s.p95}});
  if (s.p99) w.field("p99_ns", *s.p99);
  w.fields({{"samples_ns", samples}, {"variation", s.variation}});
  w.close();
}

void write_step(JsonWriter& w, const StepTimes& s) {
  w.open('{');
  if (!s.samples_ns.empty()) {
    w.fields({{"algbw_gb_per_s", algorithm_bandwidth(s)}, {"busbw_gb_per_s", bus_bandwidth(s)}});
  }
  w.fields({{"count", s.count}, {"group", s.group}, {"level", s.level}});
  if (s.load && s.op == Op::exchange) {
    w.fields({{"level_bytes", s.load->level_bytes}, {"level_peers", s.load->level_peers}});
  }
  if (s.load) w.field("members", s.load->members);
  w.fields({{"mesh_dims", s.mesh_dims}, {"op", to_text(s.op)}});
  if (s.peers > 0) w.field("peers", s.peers);
  w.fields({{"predicted_ns", s.predicted_ns}, {"ranks", s.group_size}});
  w.fields({{"redop", s.redop ? JsonItem(to_text(*s.redop)) : std::nullopt},
            {"size_bytes", s.size_bytes}});
  if (!s.samples_ns.empty()) write_timing(w, s.samples_ns);
  w.field("type", to_text(s.type));
  w.close();
}

void write_redistribution(JsonWriter& w, const RedistributionTimes& r) {
  w.open('{');
  w.fields({{"checked", r.replay.checked}, {"count", r.count}});
  w.list("differences", r.replay.differences, [&](const Difference& d) {
    w.object({{"expected", d.expected},
              {"found", d.found},
              {"index", d.index},
              {"rank", d.rank},
              {"step", d.step}});
  });
  w.fields({{"dtype", to_text(r.dtype)}, {"id", r.replay.id}});
  if (r.replay.largest_ulp > 0) {
    w.key("largest_error");
    w.object({{"relative", r.replay.largest_relative}, {"ulp", r.replay.largest_ulp}});
  }
  w.list("overruns", r.replay.overruns, [&](const Overrun& o) {
    w.object({{"rank", o.rank}, {"step", o.step}});
  });
  w.fields({{"predicted_ns", r.predicted_ns},
            {"ranks", r.replay.ranks},
            {"replay_shape", r.replay.replay_shape}});
  if (!r.replay.same_as.empty()) w.field("same_as", r.replay.same_as);
  w.fields({{"shape", r.replay.shape}, {"shrunk", r.replay.shrunk}});
  w.list("steps", r.steps, [&](const StepTimes& s) { write_step(w, s); });
  if (!r.samples_ns.empty()) write_timing(w, r.samples_ns);
  w.field("wrong", r.replay.wrong);
  w.close();
}

void write_findings(JsonWriter& w, const BundleReport& b) {
  const auto place = [&](const std::optional<PlaceInBundle>& at) {
    return at.value_or(PlaceInBundle{});
  };
  w.list("differences", b.differences, [&](const Difference& d) {
    const PlaceInBundle at = place(d.bundle);
    w.object({{"expected", d.expected},
              {"found", d.found},
              {"id", at.id},
              {"index", d.index},
              {"rank", d.rank},
              {"round", at.round},
              {"step", d.step},
              {"tensor", at.tensor}});
  });
  w.fields({{"id", b.id}, {"max_messages", b.max_messages}});
  w.fields({{"max_staging_bytes", b.max_staging_bytes}, {"members", b.members}});
  w.list("overruns", b.overruns, [&](const Overrun& o) {
    const PlaceInBundle at = place(o.bundle);
    w.object({{"id", at.id},
              {"rank", o.rank},
              {"round", at.round},
              {"step", o.step},
              {"tensor", at.tensor}});
  });
}

void write_bundle(JsonWriter& w, const BundleTimes& b) {
  const BundleReport& r = b.replay;
  w.open('{');
  if (!b.alone_samples_ns.empty()) {
    w.key("alone");
    w.open('{');
    w.field("predicted_ns", b.predicted_alone_ns);
    write_timing(w, b.alone_samples_ns);
    w.close();
  }
  w.fields({{"checked", r.checked}, {"count", b.count}});
  write_findings(w, r);
  w.fields({{"peak_bytes", r.peak_bytes},
            {"planned_peak_bytes", r.planned_peak_bytes},
            {"planned_staging_bytes", r.planned_staging_bytes},
            {"predicted_ns", b.predicted_ns},
            {"ranks", r.ranks},
            {"replayed", r.replayed}});
  w.key("rounds");
  w.open('[');
  for (size_t i = 0; i < b.rounds.size(); ++i) {
    const RoundFrame& round = b.rounds[i];
    w.object({{"group", round.group},
              {"messages", r.messages[i]},
              {"op", to_text(round.op)},
              {"parts", round.parts},
              {"planned_messages", r.planned_messages[i]},
              {"predicted_ns", round.predicted_ns},
              {"stream", round.stream},
              {"wave", round.wave},
              {"wire_bytes", round.wire_bytes}});
  }
  w.close();
  w.fields({{"smaller", b.smaller}, {"staging_bytes", r.staging_bytes}, {"tensors", r.tensors}});
  if (!b.samples_ns.empty()) write_timing(w, b.samples_ns);
  w.list("waves", b.waves, [&](const WaveTimes& wave) {
    w.open('{');
    w.field("predicted_ns", wave.predicted_ns);
    w.field("rounds", std::vector<int64_t>(wave.rounds.begin(), wave.rounds.end()));
    if (!wave.samples_ns.empty()) write_timing(w, wave.samples_ns);
    w.close();
  });
  w.field("wrong", r.wrong);
  w.close();
}

void write_redistributions(JsonWriter& w, const MeasureReport& report) {
  w.list("redistributions", report.redistributions,
         [&](const RedistributionTimes& r) { write_redistribution(w, r); });
}

void write_against(JsonWriter& w, const AgainstReport& report) {
  w.key("against");
  w.open('{');
  w.list("comparison", report.entries, [&](const AgainstEntry& e) {
    w.object({{"difference_interval_ns", Integers{e.difference.low, e.difference.high}},
              {"difference_ns", e.difference.median},
              {"first_median_ns", e.first.median},
              {"id", e.id},
              {"predicted_first_ns", e.predicted_first_ns},
              {"predicted_second_ns", e.predicted_second_ns},
              {"second_median_ns", e.second.median},
              {"significant", e.difference.significant}});
  });
  w.fields({{"only_first", report.only_first},
            {"only_second", report.only_second},
            {"plan_digest", report.second.plan_digest}});
  write_redistributions(w, report.second);
  w.close();
}

std::string write(const MeasureReport& report, const AgainstReport* against) {
  JsonWriter w(1);
  w.open('{');
  if (against != nullptr) write_against(w, *against);
  w.field("backend", report.backend);
  if (!report.bundles.empty()) {
    w.list("bundles", report.bundles, [&](const BundleTimes& b) { write_bundle(w, b); });
  }
  if (report.repetitions > 0) {
    w.key("definitions");
    w.object({{"algbw", "size_bytes / median time"},
              {"busbw",
               "algbw x 2(n-1)/n for all_reduce, x (n-1)/n for all_gather, reduce_scatter and "
               "all_to_all, x 1 for exchange"},
              {"size_bytes",
               "all_gather, reduce_scatter and all_to_all: ranks x the largest part; all_reduce: "
               "the largest box; exchange: what the rank that "
               "receives most gets"},
              {"time",
               "a step from a barrier to its end on the slowest rank; a redistribution from "
               "barrier to barrier"}});
  }
  w.list("environment", report.environment, [&](const auto& entry) {
    w.object({{"name", entry.first}, {"value", entry.second}});
  });
  w.key("options");
  w.object({{"data", report.options.data == DataKind::exact ? "exact" : "random"},
            {"repetitions", report.repetitions},
            {"seed", report.options.seed},
            {"shrink", report.options.shrink},
            {"warmup", report.warmup}});
  w.fields({{"plan_digest", report.plan_digest}, {"ranks", report.ranks}});
  write_redistributions(w, report);
  w.fields({{"schema", "meshplan/report/1"}, {"spec_digest", report.spec_digest}});
  w.key("topology");
  write_topology(w, report.topology, false);
  w.close();
  return w.take();
}

}  // namespace

std::string write_report(const MeasureReport& report) { return write(report, nullptr); }

std::string write_report(const AgainstReport& report) { return write(report.first, &report); }

std::string write_nccl_tests_json(const MeasureReport& report) {
  JsonWriter w(1);
  w.open('{');
  w.key("results");
  w.open('[');
  for (const RedistributionTimes& r : report.redistributions) {
    for (const StepTimes& s : r.steps) {
      if (s.samples_ns.empty() || is_local(s.op)) continue;
      w.open('{');
      w.fields({{"actual_iterations", s.samples_ns.size()},
                {"count", s.count},
                {"experiment_name", to_text(s.op)},
                {"in_place", std::nullopt}});
      w.key("out_of_place");
      w.object({{"alg_bw", algorithm_bandwidth(s)},
                {"bus_bw", bus_bandwidth(s)},
                {"nwrong", static_cast<double>(r.replay.wrong)},
                {"time", static_cast<double>(summarise(s.samples_ns).median) / 1000}});
      w.fields({{"ranks", s.group_size},
                {"redop", nccl_op_word(s.redop)},
                {"root", "-1"},
                {"size", s.size_bytes},
                {"type", nccl_type_word(s.type)}});
      w.close();
    }
  }
  w.close();
  w.close();
  return w.take();
}

namespace {

StepTimes wave_as_step(const BundleTimes& b, size_t wave) {
  StepTimes step;
  step.group_size = b.replay.ranks;
  for (const size_t round : b.waves[wave].rounds) step.size_bytes += b.rounds[round].wire_bytes;
  return step;
}

}  // namespace

std::string write_timeline(const MeasureReport& report) {
  JsonWriter w(1);
  w.open('{');
  w.field("displayTimeUnit", "ns");
  w.key("traceEvents");
  w.open('[');
  const auto name_track = [&](std::optional<int> track, const char* what, const std::string& name) {
    w.open('{');
    w.key("args");
    w.object({{"name", name}});
    w.fields({{"name", what}, {"ph", "M"}, {"pid", 1}});
    if (track) w.field("tid", *track);
    w.close();
  };
  name_track(std::nullopt, "process_name", "meshplan " + report.backend);
  name_track(1, "thread_name", "predicted");
  name_track(2, "thread_name", "measured (median of the slowest rank)");
  // Each redistribution starts where the slower of the two tracks has ended, so that they can be
  // read side by side.
  double start = 0;
  const auto add = [&](int track, const std::string& name, double from, int64_t ns,
                       const StepTimes& step) {
    const double microseconds = static_cast<double>(ns) / 1000;
    w.open('{');
    w.key("args");
    w.object({{"group", step.group}, {"ranks", step.group_size}, {"size_bytes", step.size_bytes}});
    w.fields({{"dur", microseconds},
              {"name", name},
              {"ph", "X"},
              {"pid", 1},
              {"tid", track},
              {"ts", from}});
    w.close();
    return from + microseconds;
  };
  for (const RedistributionTimes& r : report.redistributions) {
    double predicted = start;
    double measured = start;
    for (const StepTimes& s : r.steps) {
      const std::string name = r.replay.id + ": " + to_text(s.op);
      predicted = add(1, name, predicted, s.predicted_ns, s);
      measured = add(2, name, measured, summarise(s.samples_ns).median, s);
    }
    start = std::max(predicted, measured);
  }
  for (const BundleTimes& b : report.bundles) {
    double predicted = start;
    double measured = start;
    for (size_t i = 0; i < b.waves.size(); ++i) {
      const std::string name = b.replay.id + ": wave " + std::to_string(i);
      const StepTimes wave = wave_as_step(b, i);
      predicted = add(1, name, predicted, b.waves[i].predicted_ns, wave);
      measured = add(2, name, measured, summarise(b.waves[i].samples_ns).median, wave);
    }
    start = std::max(predicted, measured);
  }
  w.close();
  w.close();
  return w.take();
}

}  // namespace meshplan
