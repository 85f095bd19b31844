#include "measure/read_report.h"

#include "cost/topology.h"
#include "json/parse.h"
#include "json/value.h"
#include "measure/statistics.h"
#include "spec/spec.h"

namespace meshplan {
namespace {

std::optional<int64_t> whole(const Value& object, std::string_view key) {
  const auto member = object.find(key);
  return member ? member->whole() : std::nullopt;
}

std::optional<Value> find(const Value& object, std::string_view key, JsonKind kind) {
  const auto member = object.find(key);
  return member && member->kind() == kind ? member : std::nullopt;
}

Topology read_topology_of(const Value& root, const std::string& file) {
  const auto given = root.find("topology");
  if (!given) return uniform_topology();
  Diagnostics problems;
  auto topology = read_topology_file(given->as_written(), file, problems);
  if (!topology) {
    const Diagnostic first = problems.sorted().front();
    throw Unreadable{first.message, "/topology" + first.place.pointer};
  }
  return std::move(*topology);
}

// None: the step was checked, not timed.
std::optional<CalibrationPoint> own_point(const Value& step) {
  const auto name = find(step, "op", JsonKind::string);
  if (!name) throw Unreadable{"expected an op's name", step.pointer() + "/op"};
  const auto op = parse_op(name->text());
  if (!op) name->fail("'" + name->text().substr(0, 40) + "' is no op");
  const auto time = step.find("time");
  if (!time) return std::nullopt;
  const auto level = whole(step, "level");
  const auto ranks = whole(step, "ranks");
  const auto bytes = whole(step, "size_bytes");
  if (!level || !ranks || !bytes || time->kind() != JsonKind::object) {
    step.fail("expected level, ranks, size_bytes and time");
  }
  const auto median = whole(*time, "median_ns");
  const auto samples = find(*time, "samples_ns", JsonKind::array);
  if (!median || !samples) time->fail("expected median_ns and samples_ns");
  return CalibrationPoint{
      *op, *level, *ranks, *bytes, *median, samples->count(), whole(step, "peers").value_or(-1)};
}

ReportPoints own_points(const Value& root, const std::string& file) {
  ReportPoints out;
  out.base = read_topology_of(root, file);
  const auto elements = [](const Value& object, const std::string& key, const auto& read) {
    const auto list = find(object, key, JsonKind::array);
    if (!list) throw Unreadable{"expected a list", object.pointer() + "/" + key};
    list->each(read);
  };
  elements(root, "redistributions", [&](const Value& entry) {
    if (!find(entry, "steps", JsonKind::array))
      throw Unreadable{"expected a list", entry.pointer() + "/steps"};
    if (whole(entry, "wrong").value_or(0) > 0)
      entry.fail("wrong data was measured; times of wrong steps mean nothing");
    elements(entry, "steps", [&](const Value& step) {
      if (const auto point = own_point(step)) out.points.push_back(*point);
    });
  });
  return out;
}

// The collective that an nccl-tests program measures, by the program's name.
std::optional<Op> program_op(const std::string& text) {
  for (size_t i = 0; i < op_table.size(); ++i) {
    const OpRow& row = op_table[i];
    if (row.nccl_tests == nullptr) continue;
    for (const char* word : {row.name, row.nccl_tests}) {
      if (text.find(word) != std::string::npos) return static_cast<Op>(i);
    }
  }
  return std::nullopt;
}

// The body with the time: out_of_place, or in_place where that has none.
std::optional<double> micros_of(const Value& result) {
  for (const char* key : {"out_of_place", "in_place"}) {
    const auto body = find(result, key, JsonKind::object);
    if (body && body->has("time")) return body->at("time").number();
  }
  return std::nullopt;
}

ReportPoints nccl_tests_points(const Value& root) {
  ReportPoints out;
  out.base = uniform_topology();
  std::string program;
  if (const auto args = find(root, "args", JsonKind::array); args && args->count() > 0) {
    if (const Value first = args->first(); first.is_text()) program = first.text();
  }
  std::optional<int64_t> ranks;
  if (const auto config = root.find("config")) {
    if (const auto devices = find(*config, "devices", JsonKind::array)) ranks = devices->count();
  }
  root.at("results").each([&](const Value& result) {
    if (result.kind() != JsonKind::object) result.fail("expected an object");
    auto op = program_op(program);
    if (const auto given = find(result, "experiment_name", JsonKind::string)) {
      if (const auto named = program_op(given->text())) op = named;
    }
    if (!op)
      result.fail(
          "cannot tell which collective was measured; expected the program's name in args or "
          "experiment_name");
    const auto size = whole(result, "size");
    const auto own_ranks = whole(result, "ranks");
    const auto group = own_ranks ? own_ranks : ranks;
    if (!size || !group) result.fail("expected size, and devices in config");
    const auto micros = micros_of(result);
    if (!micros) result.fail("expected out_of_place or in_place with a time");
    if (!(*micros >= 0) || *micros > 1e12) result.fail("the time is no number of microseconds");
    out.points.push_back({*op, 0, *group, *size, static_cast<int64_t>(*micros * 1000),
                          whole(result, "actual_iterations").value_or(1)});
  });
  return out;
}

ReportPoints points_of(const Value& root, const std::string& file) {
  if (const auto schema = root.find("schema")) {
    if (!schema->is_text() || schema->text() != "meshplan/report/1")
      schema->fail("expected \"meshplan/report/1\"");
    return own_points(root, file);
  }
  if (find(root, "results", JsonKind::array)) return nccl_tests_points(root);
  root.fail("expected a meshplan report or the JSON of an nccl-tests program");
}

}  // namespace

Result<ReportPoints> read_report_points(std::string_view text, const std::string& file) {
  const auto parsed = parse_json(text, {});
  const auto* document = std::get_if<JsonDocument>(&parsed);
  if (document == nullptr || document->nodes[0].kind != JsonKind::object) {
    return bad_input(file + ": expected a JSON object");
  }
  try {
    return points_of(Value(*document, 0), file);
  } catch (const Unreadable& problem) {
    return bad_input(file + ": " + (problem.pointer.empty() ? "" : problem.pointer + ": ") +
                     problem.message);
  }
}

Result<Topology> calibrate_reports(const std::vector<ReportPoints>& reports,
                                   const std::optional<Topology>& base) {
  std::vector<CalibrationPoint> points;
  for (const ReportPoints& r : reports)
    points.insert(points.end(), r.points.begin(), r.points.end());
  Topology start = uniform_topology();
  if (!reports.empty()) start = reports.front().base;
  if (base) start = *base;
  return calibrate(start, points);
}

}  // namespace meshplan
