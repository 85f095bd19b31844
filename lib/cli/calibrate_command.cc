// meshplan calibrate REPORT...
#include "cli/commands.h"
#include "cli/planning.h"
#include "measure/read_report.h"

namespace meshplan {

int calibrate_command(Context& context, const Arguments& arguments) {
  std::vector<ReportPoints> reports;
  for (const std::string& path : arguments.inputs) {
    const auto text = context.read_input(path);
    if (!text) return context.fail(path, text.error());
    auto points = read_report_points(*text, path);
    if (!points) return context.fail(path, points.error());
    reports.push_back(std::move(points).value());
  }
  std::optional<Topology> base;
  if (!arguments.planning.topology.empty()) {
    int code = 0;
    base = settle_topology(context, "", {}, arguments.planning, code);
    if (!base) return code;
  }
  const auto topology = calibrate_reports(reports, base);
  if (!topology) return context.fail(arguments.inputs[0], topology.error());
  if (const auto written = context.write_output(arguments.output, write_topology(*topology));
      !written) {
    return context.fail("", written.error());
  }
  return 0;
}

}  // namespace meshplan
