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

std::string line_of(const RedistributionReport& r) {
  std::string line = r.wrong == 0 && r.overruns.empty() ? "right  " : "WRONG  ";
  line += one_line(r.id) + ": " + std::to_string(r.steps) + (r.steps == 1 ? " step" : " steps") +
          ", " + std::to_string(r.ranks) + " ranks, " + with_commas(r.checked) + " elements";
  if (r.wrong > 0) line += ", " + with_commas(r.wrong) + " wrong";
  if (!r.overruns.empty())
    line += ", " + std::to_string(r.overruns.size()) +
            (r.overruns.size() == 1 ? " buffer" : " buffers") + " overrun";
  if (r.shrunk)
    line += ", shrunk from " + shape_text(r.shape) + " to " + shape_text(r.replay_shape);
  if (r.largest_ulp > 0)
    line += ", off by at most " + short_number(r.largest_ulp) + " ulp, " +
            short_number(r.largest_relative) + " relative";
  if (r.weak)
    line += ", only zeros: the dtype is too narrow for exact averages over this many ranks";
  return line + "\n";
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
  for (const RedistributionReport& r : report.redistributions) n += r.checked;
  return n;
}

int64_t wrong_elements(const ReplayReport& report) {
  int64_t n = 0;
  for (const RedistributionReport& r : report.redistributions) n += r.wrong;
  return n;
}

bool all_right(const ReplayReport& report) {
  return std::all_of(
      report.redistributions.begin(), report.redistributions.end(),
      [](const RedistributionReport& r) { return r.wrong == 0 && r.overruns.empty(); });
}

std::string to_text(const Difference& d) {
  std::string where = d.step < 0 ? "before the first step" : "step " + std::to_string(d.step);
  return "rank " + std::to_string(d.rank) + ", " + where + ", index " + shape_text(d.index) +
         ": expected " + d.expected + ", found " + d.found;
}

std::string to_text(const ReplayReport& report) {
  std::string out;
  for (const RedistributionReport& r : report.redistributions) {
    out += line_of(r);
    for (const Difference& d : r.differences) out += "         " + to_text(d) + "\n";
    for (const Overrun& o : r.overruns) {
      out += "         rank " + std::to_string(o.rank) + ", step " + std::to_string(o.step) +
             ": written past the end of its buffer\n";
    }
  }
  const auto n = report.redistributions.size();
  out += places_text(report.environment);
  out += report.backend + ": " + std::to_string(n) +
         (n == 1 ? " redistribution on " : " redistributions on ") + std::to_string(report.ranks) +
         " ranks, " + with_commas(checked_elements(report)) + " elements checked, " +
         with_commas(wrong_elements(report)) + " wrong\n";
  return out;
}

}  // namespace meshplan
