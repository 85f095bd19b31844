// Our own reports and the JSON of nccl-tests.
#include <cmath>
#include <map>

#include "base/text.h"
#include "base/utf8.h"
#include "cost/topology.h"
#include "json/document_kind.h"
#include "json/parse.h"
#include "json/value.h"
#include "measure/measured_file.h"
#include "measure/read_inspector.h"
#include "measure/read_nccl_log.h"
#include "replay/communicator.h"
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

// One number of each level.
std::vector<int64_t> numbers_of_levels(const Value& step, const char* key, size_t levels,
                                       int64_t least) {
  std::vector<int64_t> numbers = step.at(key).integers(least);
  if (numbers.size() != levels)
    step.at(key).fail("expected a number for each of the " + std::to_string(levels) +
                      " levels of the topology");
  return numbers;
}

// What an exchange moves over each level; of reports before there was "level_bytes" all of it over
// the outermost level used.
Traffic traffic_of(const Value& step, int64_t level, int64_t bytes, int64_t ranks, size_t levels) {
  Traffic traffic;
  if (!step.has("level_bytes")) {
    const auto at = static_cast<size_t>(level);
    traffic.bytes[at] = bytes;
    traffic.peers[at] = whole(step, "peers").value_or(ranks - 1);
    return traffic;
  }
  const auto moved = numbers_of_levels(step, "level_bytes", levels, 0);
  const auto peers = numbers_of_levels(step, "level_peers", levels, 0);
  for (size_t l = 0; l < levels; ++l) {
    traffic.bytes[l] = moved[l];
    traffic.peers[l] = peers[l];
  }
  return traffic;
}

// Who takes part on each level; empty: not known.
std::vector<int64_t> members_of(const Value& step, int64_t level, int64_t ranks, size_t levels) {
  if (!step.has("members")) {
    if (level != 0) return {};
    return std::vector<int64_t>(levels, ranks);
  }
  std::vector<int64_t> members = numbers_of_levels(step, "members", levels, 1);
  for (size_t l = 0; l < levels; ++l) {
    if (members[l] % (l == 0 ? 1 : members[l - 1]) != 0)
      step.at("members").fail("each level holds a multiple of those in the level inside it");
  }
  return members;
}

void add_step(const Value& step, MeasuredFile& found, const std::string& file) {
  const auto name = find(step, "op", JsonKind::string);
  if (!name) throw Unreadable{"expected an op's name", step.pointer() + "/op"};
  const auto op = parse_op(name->text());
  if (!op) name->fail("unknown op '" + name->text().substr(0, 40) + "'");
  const auto time = step.find("time");
  if (!time || is_local(*op)) return;  // checked, not timed, or nothing to calibrate
  const auto level = whole(step, "level");
  const auto ranks = whole(step, "ranks");
  const auto bytes = whole(step, "size_bytes");
  if (!level || !ranks || !bytes || time->kind() != JsonKind::object)
    step.fail("expected level, ranks, size_bytes and time");
  const auto median = whole(*time, "median_ns");
  const auto samples = find(*time, "samples_ns", JsonKind::array);
  if (!median || !samples) time->fail("expected median_ns and samples_ns");
  const std::string place = file + ": " + step.pointer();
  const size_t levels = found.base->levels.size();
  if (*ranks < 2 || *bytes < 1 || *level < 0)
    return add_unused(found, place, "no bytes were moved");
  if (*median < 1)
    time->at("median_ns").fail(no_time_text(std::to_string(*median), "ns", *bytes, *ranks));
  if (static_cast<size_t>(*level) >= levels)
    step.at("level").fail("the topology has " + std::to_string(levels) + " levels");
  FoundRow row;
  row.row = {
      place, *op, members_of(step, *level, *ranks, levels), *bytes, *median, samples->count(), {}};
  if (row.row.members.empty())
    return add_unused(found, place,
                      "groups whose members lie differently in the units, or two phases");
  if (*op == Op::exchange) row.row.traffic = traffic_of(step, *level, *bytes, *ranks, levels);
  found.rows.push_back(std::move(row));
}

void add_redistributions(const Value& holder, MeasuredFile& found, const std::string& file) {
  const auto elements = [](const Value& object, const std::string& key) {
    const auto list = find(object, key, JsonKind::array);
    if (!list) throw Unreadable{"expected a list", object.pointer() + "/" + key};
    return *list;
  };
  elements(holder, "redistributions").each([&](const Value& entry) {
    const Value steps = elements(entry, "steps");
    if (whole(entry, "wrong").value_or(0) > 0)
      entry.fail("the measured data is wrong, so its times are not used");
    steps.each([&](const Value& step) { add_step(step, found, file); });
  });
}

// Why the times of a report say nothing of a real machine, if the run has found so.
std::optional<std::string> why_useless(const Value& root) {
  std::optional<std::string> why;
  const auto environment = find(root, "environment", JsonKind::array);
  if (!environment) return why;
  environment->each([&](const Value& entry) {
    const auto name = find(entry, "name", JsonKind::string);
    const auto value = find(entry, "value", JsonKind::string);
    if (name && value && name->text() == times_fact) why = value->text();
  });
  return why;
}

MeasuredFile read_own(const Value& root, const std::string& file) {
  MeasuredFile found;
  found.base = read_topology_of(root, file);
  add_redistributions(root, found, file);
  // --against: the other plan's, in turns with the first.
  if (const auto against = find(root, "against", JsonKind::object);
      against && against->has("redistributions"))
    add_redistributions(*against, found, file);
  if (const auto why = why_useless(root)) {
    for (const FoundRow& row : found.rows) add_unused(found, row.row.place, "times that " + *why);
    found.rows.clear();
  }
  return found;
}

// The time: of out_of_place, or in_place where that has none.
std::optional<Value> time_of(const Value& result) {
  for (const char* key : {"out_of_place", "in_place"}) {
    const auto body = find(result, key, JsonKind::object);
    if (body && body->has("time")) return body->at("time");
  }
  return std::nullopt;
}

// Ranks by host of the group of rank 0; our own write_nccl_tests_json names neither.
HostRanks hosts_of(const Value& root, MeasuredFile& found) {
  std::map<int64_t, HostRanks> groups;
  HostRanks by_host;
  const auto config = find(root, "config", JsonKind::object);
  const auto devices = config ? find(*config, "devices", JsonKind::array) : std::nullopt;
  if (!devices) return {};
  devices->each([&](const Value& device) {
    const auto name = find(device, "hostname", JsonKind::string);
    const std::string host = name ? name->text() : std::string();
    ++groups[whole(device, "group").value_or(0)][host];
    found.host_ranks = std::max(found.host_ranks, ++by_host[host]);
  });
  return groups.empty() ? HostRanks{} : groups.begin()->second;
}

MeasuredFile read_nccl_json(const Value& root, const std::string& file) {
  MeasuredFile found;
  std::string program;
  if (const auto args = find(root, "args", JsonKind::array); args && args->count() > 0) {
    if (const Value first = args->first(); first.is_text()) program = first.text();
  }
  const HostRanks hosts = hosts_of(root, found);
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
    const auto own = whole(result, "ranks");
    const int64_t ranks = own ? *own : all_ranks(hosts);
    if (!size || ranks == 0) result.fail("expected size, and devices in config");
    const auto time = time_of(result);
    const auto us = time ? time->number() : std::nullopt;
    if (!us) result.fail("expected out_of_place or in_place with a time");
    if (!(*us >= 0) || *us > 1e12)
      result.fail("the time is not a number of microseconds up to 1e12");
    const std::string place = file + ": " + result.pointer();
    const int64_t a_host = own ? ranks : ranks_a_host(hosts);
    const int64_t ns = std::llround(*us * 1000);
    if (ranks < 2 || *size < 1) return add_unused(found, place, "no bytes were moved");
    if (a_host == 0)
      return add_unused(found, place, "hosts have different numbers of the group's ranks");
    if (ns < 1) time->fail(no_time_text(time->as_written(), "us", *size, ranks));
    FoundRow row;
    row.row = {place, *op, {}, *size, ns, whole(result, "actual_iterations").value_or(1), {}};
    row.ranks = ranks;
    row.per_host = a_host;
    found.host_ranks = std::max(found.host_ranks, a_host);
    found.rows.push_back(std::move(row));
  });
  return found;
}

// "expected a meshplan report, ..., not a plan; meshplan run PLAN --measure --report FILE writes one".
std::string not_measured(const std::string& what_it_is) {
  return "expected a meshplan report, or the text or the JSON of an nccl-tests program, or "
         "NCCL Inspector's records, not " +
         what_it_is + "; meshplan run PLAN --measure --report FILE writes a report";
}

// "an object with "levels", "name"": its first keys.
std::string object_text(const Value& root) {
  std::vector<std::string> keys;
  root.each_member([&](std::string_view key, const Value&) {
    if (keys.size() < 3) keys.push_back('"' + printable(key, 40) + '"');
  });
  return keys.empty() ? "an empty object" : "an object with " + join(keys, ", ");
}

MeasuredFile read_json_file(const Value& root, const std::string& file) {
  if (const auto schema = root.find("schema")) {
    if (!schema->is_text() || schema->text() != "meshplan/report/1")
      schema->fail("expected \"meshplan/report/1\", not " + printable(schema->as_written(), 40));
    return read_own(root, file);
  }
  if (find(root, "results", JsonKind::array)) return read_nccl_json(root, file);
  root.fail(not_measured(object_text(root)));
}

// What is neither a JSON object nor a log: by its first line.
std::string text_kind(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "an empty file";
  const size_t end = std::min(text.find_first_of("\r\n", first), text.size());
  return "a text that begins with \"" + printable(text.substr(first, end - first), 40) + '"';
}

}  // namespace

void add_unused(MeasuredFile& file, std::string place, std::string why) {
  for (UnusedRows& rows : file.unused) {
    if (rows.why != why) continue;
    ++rows.count;
    return;
  }
  file.unused.push_back({std::move(place), std::move(why), 1});
}

std::string no_time_text(std::string_view time, const char* unit, int64_t bytes, int64_t ranks) {
  return printable(std::string(time), 40) + " " + unit + " for " + std::to_string(bytes) +
         " bytes on " + std::to_string(ranks) +
         " ranks is no measured time; measure it again, or leave it out";
}

std::optional<Op> program_op(std::string_view text) {
  for (size_t i = 0; i < op_table.size(); ++i) {
    const OpRow& row = op_table[i];
    if (row.nccl_tests == nullptr) continue;
    for (const char* word : {row.name, row.nccl_tests}) {
      if (text.find(word) != std::string_view::npos) return static_cast<Op>(i);
    }
  }
  return std::nullopt;
}

Result<MeasuredFile> read_measured(std::string_view text, const std::string& file) {
  if (is_inspector(text)) return read_inspector(text, file);
  // People have them beside their reports.
  if (const auto kind = document_kind(text))
    return bad_input(file + ": " + not_measured(*kind == DocumentKind::spec ? "a spec" : "a plan"));
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') {
    if (is_nccl_log(text)) return read_nccl_log(text, file);
    return bad_input(file + ": " + not_measured(text_kind(text)));
  }
  const auto parsed = parse_json(text, {});
  const auto* document = std::get_if<JsonDocument>(&parsed);
  if (document == nullptr) {
    const auto& refusal = std::get<JsonRefusal>(parsed);
    return bad_input(file + ": not JSON: " + refusal.message +
                     (refusal.byte ? ", " + line_and_column(text, *refusal.byte) : ""));
  }
  try {
    return read_json_file(Value(*document, 0), file);
  } catch (const Unreadable& problem) {
    return bad_input(file + ": " + (problem.pointer.empty() ? "" : problem.pointer + ": ") +
                     problem.message);
  }
}

}  // namespace meshplan
