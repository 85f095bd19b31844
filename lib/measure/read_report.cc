#include "measure/read_report.h"

#include <nlohmann/json.hpp>

#include "cost/topology.h"
#include "measure/statistics.h"
#include "spec/spec.h"

namespace meshplan {
namespace {

using Json = nlohmann::json;

std::optional<int64_t> whole(const Json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_number_integer()) return std::nullopt;
  return at->get<int64_t>();
}

Result<ReportPoints> own_points(const Json& root, const std::string& file) {
  ReportPoints out;
  out.base = uniform_topology();
  if (auto topology = root.find("topology"); topology != root.end()) {
    Diagnostics problems;
    auto parsed = read_topology_file(topology->dump(), file, problems);
    if (!parsed) {
      const Diagnostic first = problems.sorted().front();
      return bad_input(file + ": /topology" + first.place.pointer + ": " + first.message);
    }
    out.base = std::move(*parsed);
  }
  const auto list = root.find("redistributions");
  if (list == root.end() || !list->is_array()) return bad_input(file + ": /redistributions: expected a list");
  for (size_t i = 0; i < list->size(); ++i) {
    const Json& entry = (*list)[i];
    const std::string where = file + ": /redistributions/" + std::to_string(i);
    if (!entry.is_object() || !entry.contains("steps") || !entry["steps"].is_array()) return bad_input(where + "/steps: expected a list");
    if (whole(entry, "wrong").value_or(0) > 0) return bad_input(where + ": wrong data was measured; times of wrong steps mean nothing");
    for (size_t s = 0; s < entry["steps"].size(); ++s) {
      const Json& step = entry["steps"][s];
      const std::string place = where + "/steps/" + std::to_string(s);
      if (!step.is_object() || !step.contains("op") || !step["op"].is_string()) return bad_input(place + "/op: expected an op's name");
      const auto op = parse_op(step["op"].get<std::string>());
      if (!op) return bad_input(place + "/op: '" + step["op"].get<std::string>().substr(0, 40) + "' is no op");
      const auto time = step.find("time");
      if (time == step.end()) continue;  // checked, not timed
      const auto level = whole(step, "level");
      const auto ranks = whole(step, "ranks");
      const auto bytes = whole(step, "size_bytes");
      if (!level || !ranks || !bytes || !time->is_object()) return bad_input(place + ": expected level, ranks, size_bytes and time");
      const auto median = whole(*time, "median_ns");
      const auto samples = time->find("samples_ns");
      if (!median || samples == time->end() || !samples->is_array()) return bad_input(place + "/time: expected median_ns and samples_ns");
      out.points.push_back(
          {*op, *level, *ranks, *bytes, *median, static_cast<int64_t>(samples->size()), whole(step, "peers").value_or(-1)});
    }
  }
  return out;
}

// The collective that an nccl-tests program measures, by the program's name.
std::optional<Op> program_op(const std::string& text) {
  for (const auto& [word, op] : std::vector<std::pair<const char*, Op>>{{"all_gather", Op::all_gather},
                                                                        {"reduce_scatter", Op::reduce_scatter},
                                                                        {"all_reduce", Op::all_reduce},
                                                                        {"all_to_all", Op::all_to_all},
                                                                        {"alltoall", Op::all_to_all},
                                                                        {"exchange", Op::exchange},
                                                                        {"sendrecv", Op::exchange}}) {
    if (text.find(word) != std::string::npos) return op;
  }
  return std::nullopt;
}

Result<ReportPoints> nccl_tests_points(const Json& root, const std::string& file) {
  ReportPoints out;
  out.base = uniform_topology();
  std::string program;
  if (auto args = root.find("args"); args != root.end() && args->is_array() && !args->empty() && (*args)[0].is_string()) {
    program = (*args)[0].get<std::string>();
  }
  std::optional<int64_t> ranks;
  if (root.contains("config") && root["config"].is_object() && root["config"].contains("devices") && root["config"]["devices"].is_array()) {
    ranks = static_cast<int64_t>(root["config"]["devices"].size());
  }
  for (size_t i = 0; i < root["results"].size(); ++i) {
    const Json& result = root["results"][i];
    const std::string place = file + ": /results/" + std::to_string(i);
    if (!result.is_object()) return bad_input(place + ": expected an object");
    std::string name = program;
    if (auto given = result.find("experiment_name"); given != result.end() && given->is_string() && program_op(given->get<std::string>())) {
      name = given->get<std::string>();
    }
    const auto op = program_op(name);
    if (!op)
      return bad_input(place + ": cannot tell which collective was measured; expected the program's name in args or experiment_name");
    const auto size = whole(result, "size");
    const auto group = whole(result, "ranks") ? whole(result, "ranks") : ranks;
    if (!size || !group) return bad_input(place + ": expected size, and devices in config");
    const Json* body = nullptr;
    for (const char* key : {"out_of_place", "in_place"}) {
      if (body == nullptr && result.contains(key) && result[key].is_object() && result[key].contains("time")) body = &result[key];
    }
    if (body == nullptr || !(*body)["time"].is_number()) return bad_input(place + ": expected out_of_place or in_place with a time");
    const double micros = (*body)["time"].get<double>();
    if (!(micros >= 0) || micros > 1e12) return bad_input(place + ": the time is no number of microseconds");
    out.points.push_back({*op, 0, *group, *size, static_cast<int64_t>(micros * 1000), whole(result, "actual_iterations").value_or(1)});
  }
  return out;
}

}  // namespace

Result<ReportPoints> read_report_points(std::string_view text, const std::string& file) {
  const Json root = Json::parse(text, nullptr, false);
  if (root.is_discarded() || !root.is_object()) return bad_input(file + ": expected a JSON object");
  if (auto schema = root.find("schema"); schema != root.end()) {
    if (!schema->is_string() || schema->get<std::string>() != "meshplan/report/1") {
      return bad_input(file + ": /schema: expected \"meshplan/report/1\"");
    }
    return own_points(root, file);
  }
  if (root.contains("results") && root["results"].is_array()) return nccl_tests_points(root, file);
  return bad_input(file + ": expected a meshplan report or the JSON of an nccl-tests program");
}

Result<Topology> calibrate_reports(const std::vector<ReportPoints>& reports, const std::optional<Topology>& base) {
  std::vector<CalibrationPoint> points;
  for (const ReportPoints& r : reports) points.insert(points.end(), r.points.begin(), r.points.end());
  Topology start = uniform_topology();
  if (!reports.empty()) start = reports.front().base;
  if (base) start = *base;
  return calibrate(start, points);
}

}  // namespace meshplan
