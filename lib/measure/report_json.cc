// Reports as JSON: meshplan's own, nccl-tests' shape, and a timeline for Perfetto.
#include <nlohmann/json.hpp>

#include "cost/topology.h"
#include "measure/measure.h"
#include "measure/nccl_words.h"

namespace meshplan {
namespace {

using Json = nlohmann::json;

Json timing_json(const std::vector<int64_t>& samples) {
  const Summary s = summarise(samples);
  Json out{{"samples_ns", samples}, {"min_ns", s.min},
           {"median_ns", s.median}, {"median_interval_ns", {s.median_low, s.median_high}},
           {"p95_ns", s.p95},       {"variation", s.variation}};
  if (s.p99) out["p99_ns"] = *s.p99;
  return out;
}

Json step_json(const StepTimes& s) {
  Json out{{"op", to_text(s.op)},
           {"mesh_dims", s.mesh_dims},
           {"group", s.group},
           {"ranks", s.group_size},
           {"level", s.level},
           {"size_bytes", s.size_bytes},
           {"count", s.count},
           {"type", to_text(s.type)},
           {"redop", s.redop ? Json(to_text(*s.redop)) : Json(nullptr)},
           {"predicted_ns", s.predicted_ns}};
  if (s.peers > 0) out["peers"] = s.peers;
  if (!s.samples_ns.empty()) {
    out["time"] = timing_json(s.samples_ns);
    out["algbw_gb_per_s"] = algorithm_bandwidth(s);
    out["busbw_gb_per_s"] = bus_bandwidth(s);
  }
  return out;
}

Json redistribution_json(const RedistributionTimes& r) {
  Json out{{"id", r.replay.id},
           {"count", r.count},
           {"dtype", to_text(r.dtype)},
           {"shape", r.replay.shape},
           {"replay_shape", r.replay.replay_shape},
           {"shrunk", r.replay.shrunk},
           {"ranks", r.replay.ranks},
           {"checked", r.replay.checked},
           {"wrong", r.replay.wrong},
           {"differences", Json::array()},
           {"overruns", Json::array()},
           {"predicted_ns", r.predicted_ns},
           {"steps", Json::array()}};
  for (const Difference& d : r.replay.differences) {
    out["differences"].push_back({{"rank", d.rank}, {"step", d.step}, {"index", d.index}, {"expected", d.expected}, {"found", d.found}});
  }
  for (const Overrun& o : r.replay.overruns) out["overruns"].push_back({{"rank", o.rank}, {"step", o.step}});
  if (r.replay.largest_ulp > 0) {
    out["largest_error"] = {{"ulp", r.replay.largest_ulp}, {"relative", r.replay.largest_relative}};
  }
  for (const StepTimes& s : r.steps) out["steps"].push_back(step_json(s));
  if (!r.samples_ns.empty()) out["time"] = timing_json(r.samples_ns);
  return out;
}

Json report_json(const MeasureReport& report) {
  Json out{{"schema", "meshplan/report/1"},
           {"backend", report.backend},
           {"ranks", report.ranks},
           {"plan_digest", report.plan_digest},
           {"spec_digest", report.spec_digest},
           {"topology", Json::parse(write_topology(report.topology))},
           {"options",
            {{"data", report.options.data == DataKind::exact ? "exact" : "random"},
             {"seed", report.options.seed},
             {"shrink", report.options.shrink},
             {"warmup", report.warmup},
             {"repetitions", report.repetitions}}},
           {"environment", Json::array()},
           {"redistributions", Json::array()}};
  for (const auto& [key, value] : report.environment) out["environment"].push_back({{"name", key}, {"value", value}});
  if (report.repetitions > 0) {
    out["definitions"] = {
        {"time", "a step from a barrier to its end on the slowest rank; a redistribution from barrier to barrier"},
        {"size_bytes",
         "all_gather, reduce_scatter and all_to_all: ranks x the largest part; all_reduce: the largest box; exchange: what the rank that "
         "receives most gets"},
        {"algbw", "size_bytes / median time"},
        {"busbw", "algbw x 2(n-1)/n for all_reduce, x (n-1)/n for all_gather, reduce_scatter and all_to_all, x 1 for exchange"}};
  }
  for (const RedistributionTimes& r : report.redistributions) out["redistributions"].push_back(redistribution_json(r));
  return out;
}

std::string dumped(const Json& json) { return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

std::string write_report(const MeasureReport& report) { return dumped(report_json(report)); }

std::string write_report(const AgainstReport& report) {
  Json out = report_json(report.first);
  out["against"] = {{"plan_digest", report.second.plan_digest}, {"redistributions", Json::array()}, {"comparison", Json::array()}};
  for (const RedistributionTimes& r : report.second.redistributions) out["against"]["redistributions"].push_back(redistribution_json(r));
  for (const AgainstEntry& e : report.entries) {
    out["against"]["comparison"].push_back({{"id", e.id},
                                            {"first_median_ns", e.first.median},
                                            {"second_median_ns", e.second.median},
                                            {"difference_ns", e.difference.median},
                                            {"difference_interval_ns", {e.difference.low, e.difference.high}},
                                            {"significant", e.difference.significant},
                                            {"predicted_first_ns", e.predicted_first_ns},
                                            {"predicted_second_ns", e.predicted_second_ns}});
  }
  out["against"]["only_first"] = report.only_first;
  out["against"]["only_second"] = report.only_second;
  return dumped(out);
}

std::string write_nccl_tests_json(const MeasureReport& report) {
  Json results = Json::array();
  for (const RedistributionTimes& r : report.redistributions) {
    for (const StepTimes& s : r.steps) {
      if (s.samples_ns.empty() || is_local(s.op)) continue;
      const Json body{{"time", static_cast<double>(summarise(s.samples_ns).median) / 1000},
                      {"alg_bw", algorithm_bandwidth(s)},
                      {"bus_bw", bus_bandwidth(s)},
                      {"nwrong", static_cast<double>(r.replay.wrong)}};
      results.push_back({{"size", s.size_bytes},
                         {"count", s.count},
                         {"type", nccl_type_word(s.type)},
                         {"redop", nccl_op_word(s.redop)},
                         {"root", "-1"},
                         {"out_of_place", body},
                         {"in_place", nullptr},
                         {"actual_iterations", s.samples_ns.size()},
                         {"experiment_name", to_text(s.op)},
                         {"ranks", s.group_size}});
    }
  }
  return dumped({{"results", results}});
}

std::string write_timeline(const MeasureReport& report) {
  Json events = Json::array();
  auto name_track = [&](int track, const std::string& name) {
    events.push_back({{"ph", "M"}, {"pid", 1}, {"tid", track}, {"name", "thread_name"}, {"args", {{"name", name}}}});
  };
  events.push_back({{"ph", "M"}, {"pid", 1}, {"name", "process_name"}, {"args", {{"name", "meshplan " + report.backend}}}});
  name_track(1, "predicted");
  name_track(2, "measured (median of the slowest rank)");
  // Each redistribution starts where the slower of the two tracks has ended, so that they can be read side by side.
  double start = 0;
  auto add = [&](int track, const std::string& name, double from, int64_t ns, const StepTimes* step) {
    Json event{{"ph", "X"}, {"pid", 1}, {"tid", track}, {"name", name}, {"ts", from}, {"dur", static_cast<double>(ns) / 1000}};
    if (step != nullptr) event["args"] = {{"group", step->group}, {"ranks", step->group_size}, {"size_bytes", step->size_bytes}};
    events.push_back(std::move(event));
    return from + static_cast<double>(ns) / 1000;
  };
  for (const RedistributionTimes& r : report.redistributions) {
    double predicted = start;
    double measured = start;
    for (const StepTimes& s : r.steps) {
      const std::string name = r.replay.id + ": " + to_text(s.op);
      predicted = add(1, name, predicted, s.predicted_ns, &s);
      measured = add(2, name, measured, summarise(s.samples_ns).median, &s);
    }
    start = std::max(predicted, measured);
  }
  return dumped({{"displayTimeUnit", "ns"}, {"traceEvents", events}});
}

}  // namespace meshplan
