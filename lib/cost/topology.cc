#include "cost/topology.h"

#include <nlohmann/json.hpp>

namespace meshplan {

using Json = nlohmann::json;

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
