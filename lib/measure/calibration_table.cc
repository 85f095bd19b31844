// Measured beside predicted, a line a row.
#include <cstdio>

#include "measure/measured_file.h"

namespace meshplan {
namespace {

template <class... Values>
std::string text_of(const char* form, Values... values) {
  char line[200];
  std::snprintf(line, sizeof(line), form, values...);
  return line;
}

double micros(int64_t ns) { return static_cast<double>(ns) / 1000; }

// "8": in one unit of the innermost level; "8/80": 80 in all.
std::string group_text(const std::vector<int64_t>& members) {
  std::string text;
  for (size_t l = 0; l < members.size(); ++l) {
    if (l > 0 && members[l] == members[l - 1]) continue;
    text += (text.empty() ? "" : "/") + std::to_string(members[l]);
  }
  return text;
}

std::string quality_text(const char* what, const FitQuality& quality) {
  return text_of(
      "# %-9s %5lld rows: factor %.3f in the median, %.3f in the geometric mean, %.2f at most\n",
      what, static_cast<long long>(quality.rows), quality.median, quality.mean, quality.largest);
}

}  // namespace

std::string to_text(const Calibration& calibration) {
  const bool held_out = calibration.held_out.rows > 0;
  std::string out = text_of("# %-14s %12s %13s %14s %14s %7s", "op", "ranks", "size (B)",
                            "measured (us)", "predicted (us)", "factor");
  if (held_out) out += text_of(" %15s %7s", "held out (us)", "factor");
  out += "\n";
  for (const CalibratedRow& row : calibration.rows) {
    out +=
        text_of("  %-14s %12s %13lld %14.2f %14.2f %7.2f", to_text(row.row.op),
                group_text(row.row.members).c_str(), static_cast<long long>(row.row.size_bytes),
                micros(row.row.ns), micros(row.predicted_ns), factor_of(row.predicted_ns, row.row));
    if (row.held_out_ns)
      out +=
          text_of(" %15.2f %7.2f", micros(*row.held_out_ns), factor_of(*row.held_out_ns, row.row));
    out += "\n";
  }
  out += quality_text("all", calibration.all);
  if (held_out) out += quality_text("held out", calibration.held_out);
  return out;
}

}  // namespace meshplan
