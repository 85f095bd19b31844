// The measured tables for people.
#include <cstdio>

#include "base/text.h"
#include "base/utf8.h"
#include "measure/measure.h"
#include "measure/nccl_words.h"

namespace meshplan {
namespace {

std::string padded(const std::string& text, int width) {
  const auto missing = static_cast<size_t>(std::abs(width)) > text.size()
                           ? static_cast<size_t>(std::abs(width)) - text.size()
                           : 0;
  return width < 0 ? text + std::string(missing, ' ') : std::string(missing, ' ') + text;
}

std::string decimal(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

std::string micros_text(int64_t ns) { return decimal(static_cast<double>(ns) / 1000, 2); }

std::string ratio(int64_t measured, int64_t predicted) {
  return predicted == 0
             ? "-"
             : decimal(static_cast<double>(measured) / static_cast<double>(predicted), 2);
}

std::string bundle_row(const std::string& name, const std::string& what, int64_t bytes,
                       const std::vector<int64_t>& samples, int64_t predicted) {
  const int64_t median = summarise(samples).median;
  return "  " + padded(name, -15) + padded(bytes > 0 ? std::to_string(bytes) : "", 12) + "  " +
         padded(what, -28) + padded(samples.empty() ? "" : micros_text(median), 12) +
         padded("", 26) + padded(predicted > 0 ? micros_text(predicted) : "-", 12) +
         padded(samples.empty() ? "" : ratio(median, predicted), 11) + "\n";
}

// Waves as measured, their rounds as predicted, the whole and its members one by one.
std::string text_of(const BundleTimes& b) {
  const BundleReport& r = b.replay;
  std::string out = one_line(r.id) + (b.smaller ? " (smaller)" : "") + ": bundle of " +
                    counted(r.replayed, "tensor") + ", staging " + std::to_string(r.staging_bytes) +
                    " B of " + std::to_string(r.planned_staging_bytes) + " B planned\n";
  for (size_t w = 0; w < b.waves.size(); ++w) {
    const WaveTimes& wave = b.waves[w];
    out +=
        bundle_row("wave " + std::to_string(w), std::to_string(wave.rounds.size()) + " in flight",
                   0, wave.samples_ns, wave.predicted_ns);
    for (const size_t i : wave.rounds) {
      const RoundFrame& round = b.rounds[i];
      out += bundle_row("  round " + std::to_string(i),
                        std::string(to_text(round.op)) + ", stream " +
                            std::to_string(round.stream) + ", " + std::to_string(round.parts) +
                            (round.parts == 1 ? " part" : " parts"),
                        round.wire_bytes, {}, round.predicted_ns);
    }
  }
  out += bundle_row("whole", std::to_string(r.wrong) + " wrong", 0, b.samples_ns, b.predicted_ns);
  if (!b.alone_samples_ns.empty()) {
    out +=
        bundle_row("one by one", "the same members", 0, b.alone_samples_ns, b.predicted_alone_ns);
    out += "  the bundle is " +
           ratio(summarise(b.alone_samples_ns).median, summarise(b.samples_ns).median) +
           " times as fast\n";
  }
  for (const Difference& d : r.differences) out += "  " + to_text(d) + "\n";
  return out;
}

}  // namespace

std::string to_text(const MeasureReport& report) {
  std::string out = "# backend " + report.backend + ", " + counted(report.ranks, "rank") +
                    ", warmup " + std::to_string(report.warmup) + ", repetitions " +
                    std::to_string(report.repetitions) + ", medians of the slowest rank\n";
  for (const auto& [key, value] : report.environment)
    out += "# " + one_line(key + ": " + value) + "\n";
  out += "# " + padded("op", -15) + padded("size", 12) + padded("count", 12) + padded("type", 10) +
         padded("redop", 8) + padded("time", 12) + padded("algbw", 9) + padded("busbw", 9) +
         padded("#wrong", 8) + padded("predicted", 12) + padded("measured/", 11) + "\n";
  out += "# " + padded("", -15) + padded("(B)", 12) + padded("(elements)", 12) + padded("", 10) +
         padded("", 8) + padded("(us)", 12) + padded("(GB/s)", 9) + padded("(GB/s)", 9) +
         padded("", 8) + padded("(us)", 12) + padded("predicted", 11) + "\n";
  for (const RedistributionTimes& r : report.redistributions) {
    out += one_line(r.replay.id) + (r.replay.shrunk ? " (shrunk)" : "") + "\n";
    for (const StepTimes& s : r.steps) {
      const int64_t median = summarise(s.samples_ns).median;
      out += "  " + padded(to_text(s.op), -15) + padded(std::to_string(s.size_bytes), 12) +
             padded(std::to_string(s.count), 12) + padded(nccl_type_word(s.type), 10) +
             padded(nccl_op_word(s.redop), 8) + padded(micros_text(median), 12) +
             padded(decimal(algorithm_bandwidth(s), 2), 9) +
             padded(decimal(bus_bandwidth(s), 2), 9) + padded("", 8) +
             padded(micros_text(s.predicted_ns), 12) + padded(ratio(median, s.predicted_ns), 11) +
             "\n";
    }
    const Summary whole = summarise(r.samples_ns);
    out += "  " + padded("whole", -15) + padded("", 42) + padded(micros_text(whole.median), 12) +
           padded("", 18) + padded(std::to_string(r.replay.wrong), 8) +
           padded(micros_text(r.predicted_ns), 12) +
           padded(ratio(whole.median, r.predicted_ns), 11) + "\n";
    for (const Difference& d : r.replay.differences) out += "  " + to_text(d) + "\n";
  }
  for (const BundleTimes& b : report.bundles) out += text_of(b);
  return out;
}

std::string to_text(const AgainstReport& report) {
  std::string out = "# backend " + report.first.backend + ", " +
                    counted(report.first.ranks, "rank") + ", " +
                    std::to_string(report.first.repetitions) +
                    " repetitions each, medians in us with 95 % intervals, second against first\n";
  for (const AgainstEntry& e : report.entries) {
    out += one_line(e.id) + ": " + micros_text(e.first.median) + " [" +
           micros_text(e.first.median_low) + ", " + micros_text(e.first.median_high) + "] -> " +
           micros_text(e.second.median) + " [" + micros_text(e.second.median_low) + ", " +
           micros_text(e.second.median_high) + "]  ";
    if (e.difference.significant) {
      out += e.difference.median > 0 ? "+" : "";
      out +=
          micros_text(e.difference.median) + " us, " + ratio(e.second.median, e.first.median) + "x";
    } else {
      out += "~";
    }
    out += "  (promised " + micros_text(e.predicted_first_ns) + " -> " +
           micros_text(e.predicted_second_ns) + ")";
    if (e.first_ulp > 0 || e.second_ulp > 0)
      out +=
          "  largest error " + decimal(e.first_ulp, 2) + " -> " + decimal(e.second_ulp, 2) + " ulp";
    out += "\n";
  }
  for (const std::string& id : report.bundles) {
    out += "bundle " + one_line(id) +
           ": its members are timed one by one, its rounds are not; run each plan with --measure\n";
  }
  for (const std::string& id : report.only_first)
    out += one_line(id) + ": only in the first plan\n";
  for (const std::string& id : report.only_second)
    out += one_line(id) + ": only in the second plan\n";
  return out;
}

}  // namespace meshplan
