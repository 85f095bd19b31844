// meshplan calibrate REPORT...
#include "base/text.h"
#include "cli/commands.h"
#include "cli/planning.h"
#include "cost/topology.h"
#include "measure/measured_file.h"

namespace meshplan {
namespace {

// All files, or none and the exit code.
std::optional<std::vector<MeasuredFile>> read_files(Context& context,
                                                    const std::vector<std::string>& paths,
                                                    int& code) {
  std::vector<MeasuredFile> files;
  for (const std::string& path : paths) {
    const auto text = context.read_input(path, code);
    if (!text) return std::nullopt;
    auto file = read_measured(*text, path);
    if (!file) {
      code = context.fail("", file.error());
      return std::nullopt;
    }
    for (const UnusedRows& rows : file->unused) {
      context.say(rows.place + ": not used: " + rows.why +
                  (rows.count > 1 ? ", and " + with_commas(rows.count - 1) + " more" : ""));
    }
    files.push_back(std::move(file).value());
  }
  return files;
}

Result<Calibration> calibrate_files(const std::vector<MeasuredFile>& files,
                                    const std::optional<Topology>& base) {
  auto settled = settle_rows(files, base);
  if (!settled) return settled.error();
  return calibrate(settled->base, std::move(settled->rows));
}

// --against: the log beside the topology given or calibrated; nothing else is written.
int compare(Context& context, const Arguments& arguments, const Topology& topology) {
  int code = 0;
  const auto files = read_files(context, {arguments.against}, code);
  if (!files) return code;
  auto settled = settle_rows(*files, topology);
  if (!settled) return context.fail(arguments.against, settled.error());
  const auto compared = compare_rows(topology, std::move(settled->rows));
  if (!compared) return context.fail("", compared.error());
  return context.finish(arguments.output, to_text(*compared));
}

}  // namespace

int calibrate_command(Context& context, const Arguments& arguments) {
  int code = 0;
  std::optional<Topology> base;
  if (!arguments.planning.topology.empty()) {
    Spec none;
    base = settle_topology(context, "", none, arguments.planning, code);
    for (const Diagnostic& warning : none.warnings) context.diagnostics.add(warning);
    if (!base) return code;
  }
  if (arguments.inputs.empty() && arguments.against.empty())
    return context.fail("", bad_input("meshplan calibrate needs a file and got none; usage: "
                                      "meshplan calibrate REPORT..."));
  if (arguments.inputs.empty()) {
    if (!base)
      return context.fail("", bad_input("--against compares a topology with a log: give it with "
                                        "--topology, or the reports to calibrate it from"));
    return compare(context, arguments, *base);
  }
  const auto files = read_files(context, arguments.inputs, code);
  if (!files) return code;
  const auto calibration = calibrate_files(*files, base);
  if (!calibration) return context.fail(arguments.inputs[0], calibration.error());
  if (!arguments.against.empty()) return compare(context, arguments, calibration->topology);
  const std::string text = write_topology(calibration->topology);
  if (const auto written = context.write_output(arguments.output, text); !written)
    return context.fail("", written.error());
  // The table goes where the topology does not.
  const std::string table = to_text(*calibration);
  if (arguments.output.empty() || arguments.output == "-") {
    for (size_t at = 0; at < table.size();) {
      const size_t end = table.find('\n', at);
      context.say(std::string_view(table).substr(at, end - at));
      at = end + 1;
    }
    return 0;
  }
  return context.finish("-", table);
}

}  // namespace meshplan
