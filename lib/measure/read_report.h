// Measured steps out of report files, for calibration.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "cost/calibrate.h"

namespace meshplan {

struct ReportPoints {
  // the topology that the report was measured against; uniform where the file names none
  Topology base;
  std::vector<CalibrationPoint> points;
};

// Reads a meshplan report (schema meshplan/report/1) or the JSON of an nccl-tests program (-J).
// Errors (bad_input) start with `file` and the place in it.
[[nodiscard]] Result<ReportPoints> read_report_points(std::string_view text,
                                                      const std::string& file);

// `meshplan calibrate REPORT...`: all points together, on the topology of the first report that has
// one, or `base` where given.
[[nodiscard]] Result<Topology> calibrate_reports(const std::vector<ReportPoints>& reports,
                                                 const std::optional<Topology>& base);

}  // namespace meshplan
