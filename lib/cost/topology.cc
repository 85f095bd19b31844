#include "cost/topology.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace meshplan {
namespace {

using Json = nlohmann::json;

Result<int64_t> whole(const Json& object, const char* key, int64_t fallback, const std::string& where) {
  auto found = object.find(key);
  if (found == object.end()) return fallback;
  if (!found->is_number_integer() || (found->is_number_unsigned() && found->get<uint64_t>() > INT64_MAX)) {
    return bad_input(where + "/" + key + ": expected an integer, found " +
                     found->dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 40));
  }
  return found->get<int64_t>();
}

// "gb_per_s" with up to three decimals, or "mb_per_s" as plans and calibration write it.
Result<int64_t> bandwidth(const Json& object, const char* gb, const char* mb, int64_t fallback, const std::string& where) {
  if (object.contains(mb)) return whole(object, mb, fallback, where);
  auto found = object.find(gb);
  if (found == object.end()) return fallback;
  if (!found->is_number()) return bad_input(where + "/" + gb + ": expected a number");
  double value = found->get<double>();
  if (!(value >= 0) || value > 1e9) return bad_input(where + "/" + gb + ": expected a number within 0.001 and 1000000000");
  auto thousandths = static_cast<int64_t>(std::llround(value * 1000));
  double back = static_cast<double>(thousandths) / 1000;
  if (back - value > 1e-9 || value - back > 1e-9) return bad_input(where + "/" + gb + ": expected at most three decimals");
  return thousandths;
}

}  // namespace

Result<Topology> parse_topology(std::string_view json_text) {
  Json root;
  try {
    root = Json::parse(json_text, nullptr, true, true);
  } catch (const Json::exception& e) {
    std::string what = e.what();
    return bad_input("topology: " + what.substr(0, 200));
  }
  if (!root.is_object()) return bad_input("topology: expected an object with \"levels\"");
  Topology t;
  if (root.contains("name") && root["name"].is_string()) t.name = root["name"].get<std::string>();
  if (root.contains("source") && root["source"].is_string()) t.source = root["source"].get<std::string>();
  if (root.contains("model")) {
    if (!root["model"].is_string() || (!root["model"].get_ref<const std::string&>().empty() && root["model"] != "nccl"))
      return bad_input("topology /model: expected \"nccl\"");
    t.model = root["model"].get<std::string>();
  }
  auto levels = root.find("levels");
  if (levels == root.end() || !levels->is_array()) return bad_input("topology /levels: expected a list of levels, inside out");
  for (size_t i = 0; i < levels->size(); ++i) {
    const Json& entry = (*levels)[i];
    std::string where = "topology /levels/" + std::to_string(i);
    if (!entry.is_object()) return bad_input(where + ": expected an object");
    TopologyLevel level;
    if (entry.contains("name") && entry["name"].is_string()) level.name = entry["name"].get<std::string>();
    auto ranks = whole(entry, "ranks", 0, where);
    auto speed = bandwidth(entry, "gb_per_s", "mb_per_s", 0, where);
    auto latency = whole(entry, "latency_ns", 0, where);
    auto peer = whole(entry, "per_peer_ns", 0, where);
    auto percent = whole(entry, "exchange_percent", 100, where);
    for (const Result<int64_t>* value : {&ranks, &speed, &latency, &peer, &percent}) {
      if (!value->ok()) return value->error();
    }
    level.ranks = *ranks;
    level.mb_per_s = *speed;
    level.latency_ns = *latency;
    level.per_peer_ns = *peer;
    level.exchange_percent = *percent;
    t.levels.push_back(std::move(level));
  }
  auto copy = bandwidth(root, "copy_gb_per_s", "copy_mb_per_s", 0, "topology");
  if (!copy) return copy.error();
  t.copy_mb_per_s = *copy;
  if (auto tables = root.find("tables"); tables != root.end()) {
    if (!tables->is_array()) return bad_input("topology /tables: expected a list");
    for (size_t i = 0; i < tables->size(); ++i) {
      const Json& entry = (*tables)[i];
      std::string where = "topology /tables/" + std::to_string(i);
      if (!entry.is_object() || !entry.contains("op") || !entry["op"].is_string())
        return bad_input(where + "/op: expected a collective's name");
      auto op = parse_op(entry["op"].get<std::string>());
      if (!op) return bad_input(where + "/op: '" + entry["op"].get<std::string>().substr(0, 40) + "' is no collective");
      auto level = whole(entry, "level", 0, where);
      auto ranks = whole(entry, "ranks", 2, where);
      if (!level) return level.error();
      if (!ranks) return ranks.error();
      MeasuredTable table{*op, *level, *ranks, {}};
      auto points = entry.find("points");
      if (points == entry.end() || !points->is_array() || points->empty())
        return bad_input(where + "/points: expected a list of [bytes, ns]");
      for (const Json& point : *points) {
        if (!point.is_array() || point.size() != 2 || !point[0].is_number_integer() || !point[1].is_number_integer()) {
          return bad_input(where + "/points: expected pairs [bytes, ns] of integers");
        }
        auto bytes = point[0].get<int64_t>();
        auto ns = point[1].get<int64_t>();
        if (bytes < 1 || ns < 0 || (!table.points.empty() && (bytes <= table.points.back().first || ns < table.points.back().second))) {
          return bad_input(where + "/points: expected ascending bytes from 1 on and times that never fall");
        }
        table.points.emplace_back(bytes, ns);
      }
      t.tables.push_back(std::move(table));
    }
  }
  if (auto ok = check_topology(t); !ok) return bad_input("topology: " + ok.error().message);
  return t;
}

std::string write_topology(const Topology& t) {
  Json root = Json::object();
  if (!t.name.empty()) root["name"] = t.name;
  if (!t.source.empty()) root["source"] = t.source;
  if (!t.model.empty()) root["model"] = t.model;
  if (t.copy_mb_per_s > 0) root["copy_mb_per_s"] = t.copy_mb_per_s;
  root["levels"] = Json::array();
  for (const TopologyLevel& level : t.levels) {
    root["levels"].push_back({{"name", level.name},
                              {"ranks", level.ranks},
                              {"mb_per_s", level.mb_per_s},
                              {"latency_ns", level.latency_ns},
                              {"per_peer_ns", level.per_peer_ns},
                              {"exchange_percent", level.exchange_percent}});
  }
  for (const MeasuredTable& table : t.tables) {
    Json points = Json::array();
    for (auto [bytes, ns] : table.points) points.push_back({bytes, ns});
    root["tables"].push_back({{"op", to_text(table.op)}, {"level", table.level}, {"ranks", table.ranks}, {"points", points}});
  }
  return root.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace meshplan
