#include "replay/report.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "base/utf8.h"

namespace meshplan {
namespace {

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return out + "]";
}

std::string short_number(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.3g", value);
  return text;
}

// "1 bundle", "2 bundles"
std::string numbered(size_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}
std::string numbered(int64_t n, const std::string& what) {
  return numbered(static_cast<size_t>(n), what);
}

std::string line_of(const RedistributionReport& r) {
  std::string line = r.wrong == 0 && r.overruns.empty() ? "right  " : "WRONG  ";
  if (!r.same_as.empty()) return line + one_line(r.id + ": the same as " + r.same_as) + "\n";
  line += one_line(r.id) + ": " + numbered(r.steps, "step") + ", " + numbered(r.ranks, "rank") +
          ", " + counted(r.checked, "element");
  if (r.wrong > 0) line += ", " + with_commas(r.wrong) + " wrong";
  if (!r.overruns.empty())
    line += ", " + std::to_string(r.overruns.size()) +
            (r.overruns.size() == 1 ? " buffer" : " buffers") + " overrun";
  if (r.shrunk)
    line += ", shrunk from " + shape_text(r.shape) + " to " + shape_text(r.replay_shape);
  if (r.largest_ulp > 0)
    line += ", off by at most " + short_number(r.largest_ulp) + " ulp, " +
            short_number(r.largest_relative) + " of the largest value";
  if (r.weak)
    line += ", only zeros: the dtype is too narrow for exact averages over this many ranks";
  return line + "\n";
}

// "round 2: w1, tensor 4"
std::string place_text(const PlaceInBundle& place) {
  return (place.round < 0 ? "no round: " : "round " + std::to_string(place.round) + ": ") +
         one_line(place.id) + ", tensor " + std::to_string(place.tensor);
}

int64_t most_of(const std::vector<int64_t>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

// Whether staging or messages exceed their limits.
bool stages_too_much(const BundleReport& b) {
  return b.max_staging_bytes > 0 && b.staging_bytes > b.max_staging_bytes;
}
bool sends_too_often(const BundleReport& b) { return most_of(b.messages) > b.max_messages; }
bool over_limits(const BundleReport& b) { return stages_too_much(b) || sends_too_often(b); }

std::string line_of(const BundleReport& b) {
  const bool right = b.wrong == 0 && b.overruns.empty() && !over_limits(b);
  std::string line = (right ? "right  " : "WRONG  ") + one_line(b.id) + ": bundle of " +
                     numbered(b.tensors, "tensor") + " (" + numbered(b.members, "member") + "), " +
                     numbered(b.rounds, "round") + " in " + numbered(b.waves, "wave") + ", " +
                     numbered(b.ranks, "rank") + ", " + counted(b.checked, "element");
  if (b.wrong > 0) line += ", " + with_commas(b.wrong) + " wrong";
  if (!b.overruns.empty()) line += ", " + numbered(b.overruns.size(), "buffer") + " overrun";
  if (b.replayed < b.tensors)
    line += ", " + std::to_string(b.replayed) +
            " of its tensors, the first and last of those that move alike";
  if (b.shrunk) line += ", at smaller shapes";
  if (b.largest_ulp > 0)
    line += ", off by at most " + short_number(b.largest_ulp) + " ulp, " +
            short_number(b.largest_relative) + " of the largest value";
  if (b.weak) line += ", only zeros where the dtype is too narrow for exact averages";
  return line + "\n";
}

// What the rounds took of staging and messages, beside the plan's and the limits.
std::string limits_of(const BundleReport& b) {
  return std::string("         ") + (stages_too_much(b) ? "ABOVE ITS LIMIT: " : "") + "staging " +
         with_commas(b.staging_bytes) + " B measured, " + with_commas(b.planned_staging_bytes) +
         " B planned, " +
         (b.max_staging_bytes > 0 ? "limit " + with_commas(b.max_staging_bytes) + " B"
                                  : std::string("no limit")) +
         "; peak " + with_commas(b.peak_bytes) + " B, " + with_commas(b.planned_peak_bytes) +
         " B planned\n         " + (sends_too_often(b) ? "ABOVE THEIR LIMIT: " : "") + "messages " +
         std::to_string(most_of(b.messages)) + " in a round at most, " +
         std::to_string(most_of(b.planned_messages)) + " planned, limit " +
         std::to_string(b.max_messages) + "\n";
}

std::string bundle_text(const BundleReport& b) {
  std::string out = line_of(b) + limits_of(b);
  for (const Difference& d : b.differences) out += "         " + to_text(d) + "\n";
  for (const Overrun& o : b.overruns) {
    out += "         rank " + std::to_string(o.rank) + ", " +
           (o.bundle ? place_text(*o.bundle) : std::string()) +
           (o.step < 0 ? "" : ", step " + std::to_string(o.step)) +
           ": written past the end of its buffer\n";
  }
  return out;
}

// "; 2 repeat others, replayed with them": nothing where none do.
std::string repeats_text(const ReplayReport& report) {
  const auto repeats =
      std::count_if(report.redistributions.begin(), report.redistributions.end(),
                    [](const RedistributionReport& r) { return !r.same_as.empty(); });
  if (repeats == 0) return {};
  return "; " + with_commas(repeats) +
         (repeats == 1 ? " repeats another, replayed with it"
                       : " repeat others, replayed with them");
}

// "processes 0-7 on host-a": one line for consecutive processes on the same host.
std::string places_text(const std::vector<std::pair<std::string, std::string>>& environment) {
  std::string out;
  std::vector<std::string> places;
  for (const auto& [key, value] : environment) {
    if (key.rfind("process ", 0) == 0) places.push_back(value);
  }
  for (size_t first = 0; first < places.size();) {
    size_t end = first + 1;
    while (end < places.size() && places[end] == places[first]) ++end;
    const bool one = end == first + 1;
    out += (one ? "process " : "processes ") + std::to_string(first) +
           (one ? "" : "-" + std::to_string(end - 1)) + " on " + one_line(places[first]) + "\n";
    first = end;
  }
  return out;
}

}  // namespace

int64_t checked_elements(const ReplayReport& report) {
  int64_t n = 0;
  for (const RedistributionReport& r : report.redistributions)
    n += r.same_as.empty() ? r.checked : 0;
  for (const BundleReport& b : report.bundles) n += b.checked;
  return n;
}

int64_t wrong_elements(const ReplayReport& report) {
  int64_t n = 0;
  for (const RedistributionReport& r : report.redistributions) n += r.same_as.empty() ? r.wrong : 0;
  for (const BundleReport& b : report.bundles) n += b.wrong;
  return n;
}

bool all_right(const ReplayReport& report) {
  const auto right = [](const auto& r) { return r.wrong == 0 && r.overruns.empty(); };
  return std::all_of(report.redistributions.begin(), report.redistributions.end(), right) &&
         std::all_of(report.bundles.begin(), report.bundles.end(),
                     [&](const BundleReport& b) { return right(b) && !over_limits(b); });
}

std::string what_is_wrong(const ReplayReport& report) {
  std::vector<std::string> problems;
  if (const int64_t wrong = wrong_elements(report); wrong > 0) {
    problems.push_back(with_commas(wrong) + " of " + with_commas(checked_elements(report)) +
                       " elements are wrong");
  }
  size_t overruns = 0;
  for (const RedistributionReport& r : report.redistributions)
    overruns += r.same_as.empty() ? r.overruns.size() : 0;
  for (const BundleReport& b : report.bundles) overruns += b.overruns.size();
  if (overruns > 0) {
    problems.push_back(numbered(overruns, "buffer") + (overruns == 1
                                                           ? " is written past its end"
                                                           : " are written past their end"));
  }
  for (const BundleReport& b : report.bundles) {
    const std::string bundle = "bundle '" + one_line(b.id) + "' ";
    if (stages_too_much(b)) {
      problems.push_back(bundle + "staged " + with_commas(b.staging_bytes) +
                         " B, above its limit of " + with_commas(b.max_staging_bytes) + " B");
    }
    if (sends_too_often(b)) {
      problems.push_back(bundle + "took " + std::to_string(most_of(b.messages)) +
                         " messages in a round, above its limit of " +
                         std::to_string(b.max_messages));
    }
  }
  return join(problems, "; ");
}

std::string to_text(const Difference& d) {
  std::string where = d.step < 0 ? "before the first step" : "step " + std::to_string(d.step);
  if (d.bundle) where = place_text(*d.bundle) + ", " + where;
  return "rank " + std::to_string(d.rank) + ", " + where + ", index " + shape_text(d.index) +
         ": expected " + d.expected + ", found " + d.found;
}

std::string to_text(const ReplayReport& report) {
  std::string out;
  for (const RedistributionReport& r : report.redistributions) {
    out += line_of(r);
    if (!r.same_as.empty()) continue;
    for (const Difference& d : r.differences) out += "         " + to_text(d) + "\n";
    for (const Overrun& o : r.overruns) {
      out += "         rank " + std::to_string(o.rank) + ", step " + std::to_string(o.step) +
             ": written past the end of its buffer\n";
    }
  }
  for (const BundleReport& b : report.bundles) out += bundle_text(b);
  out += places_text(report.environment);
  out += report.backend + ": ";
  if (!report.bundles.empty()) out += numbered(report.bundles.size(), "bundle");
  if (!report.bundles.empty() && !report.redistributions.empty()) out += " and ";
  if (report.bundles.empty() || !report.redistributions.empty())
    out += numbered(report.redistributions.size(), "redistribution");
  out += " on " + numbered(report.ranks, "rank") + ", " +
         counted(checked_elements(report), "element") + " checked, " +
         with_commas(wrong_elements(report)) + " wrong" + repeats_text(report) + "\n";
  return out;
}

}  // namespace meshplan
