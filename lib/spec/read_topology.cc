#include "spec/read_topology.h"

#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"
#include "cost/topology.h"
#include "diag/outcome_codes.h"
#include "json/scan.h"
#include "plan/topology_limits.h"
#include "spec/read_protocols.h"

namespace meshplan {
namespace {

constexpr size_t most_levels = 8;

// A bandwidth in MB/s, `least` or more, from "gb_per_s" (up to three decimals) or "mb_per_s" (as
// plans and calibration write it).
std::optional<int64_t> bandwidth(Reader& reader, uint32_t gb, uint32_t mb,
                                 const std::string& gb_name, const std::string& mb_name,
                                 int64_t least) {
  if (gb != 0 && mb != 0) {
    reader.error_at_key("E0208", mb, quote(mb_name) + " beside " + quote(gb_name),
                        {"keep one of them", {}, gb, "the same in other units"});
    return std::nullopt;
  }
  if (gb != 0) return reader.thousandths(gb, quote(gb_name), least, max_mb_per_s);
  return reader.integer(mb, quote(mb_name), least, max_mb_per_s);
}

std::optional<TopologyLevel> read_level(Reader& reader, uint32_t index, size_t position) {
  constexpr std::array<KeyRule, 15> rules{{{"name"},
                                           {"ranks", true},
                                           {"gb_per_s"},
                                           {"latency_ns", true},
                                           {"per_peer_ns"},
                                           {"exchange_percent"},
                                           {"mb_per_s"},
                                           {"peer_gb_per_s"},
                                           {"peer_mb_per_s"},
                                           {"peer_bytes"},
                                           {"switch_gb_per_s"},
                                           {"switch_mb_per_s"},
                                           {"near_bytes"},
                                           {"far_gb_per_s"},
                                           {"far_mb_per_s"}}};
  const auto found = reader.members(index, rules, "a level of the topology");
  if (!found) return std::nullopt;
  const auto [name, ranks, gb, latency, per_peer, percent, mb, peer_gb, peer_mb, peer_bytes,
              switch_gb, switch_mb, near_bytes, far_gb, far_mb] = *found;
  TopologyLevel level;
  const size_t before = reader.errors();
  level.name = "level" + std::to_string(position);
  if (name != 0) level.name = reader.name(name, "\"name\"").value_or("");
  if (ranks != 0) level.ranks = reader.integer(ranks, "\"ranks\"", 1).value_or(0);
  if (gb == 0 && mb == 0 && !reader.misspelt("gb_per_s")) {
    reader.error("E0202", index, "a level of the topology lacks the key \"gb_per_s\"");
  } else if (gb != 0 || mb != 0) {
    level.mb_per_s = bandwidth(reader, gb, mb, "gb_per_s", "mb_per_s", 1).value_or(1);
  }
  if (latency != 0)
    level.latency_ns = reader.integer(latency, "\"latency_ns\"", 0, max_latency_ns).value_or(0);
  if (per_peer != 0)
    level.per_peer_ns = reader.integer(per_peer, "\"per_peer_ns\"", 0, max_per_peer_ns).value_or(0);
  if (percent != 0)
    level.exchange_percent = reader.integer(percent, "\"exchange_percent\"", 1, 100).value_or(100);
  if (peer_gb != 0 || peer_mb != 0)
    level.peer_mb_per_s =
        bandwidth(reader, peer_gb, peer_mb, "peer_gb_per_s", "peer_mb_per_s", 1).value_or(1);
  if (peer_bytes != 0)
    level.peer_bytes = reader.integer(peer_bytes, "\"peer_bytes\"", 1, max_peer_bytes).value_or(0);
  if (switch_gb != 0 || switch_mb != 0)
    level.switch_mb_per_s =
        bandwidth(reader, switch_gb, switch_mb, "switch_gb_per_s", "switch_mb_per_s", 1)
            .value_or(1);
  if (near_bytes != 0)
    level.near_bytes = reader.integer(near_bytes, "\"near_bytes\"", 1, max_peer_bytes).value_or(0);
  if (far_gb != 0 || far_mb != 0)
    level.far_mb_per_s =
        bandwidth(reader, far_gb, far_mb, "far_gb_per_s", "far_mb_per_s", 1).value_or(1);
  if ((near_bytes == 0) != (far_gb == 0 && far_mb == 0)) {
    reader.error("E0208", std::max({near_bytes, far_gb, far_mb}),
                 "\"near_bytes\" and \"far_gb_per_s\" belong together",
                 {"bytes beyond near_bytes go at far_gb_per_s", {}, 0, {}});
  }
  if (reader.errors() > before || (gb == 0 && mb == 0) || ranks == 0 || latency == 0)
    return std::nullopt;
  return level;
}

// A level against the one inside it; the outermost holds every rank, whatever its "ranks" says.
void nest(Reader& reader, uint32_t index, uint32_t inside, bool outermost, int64_t inner,
          TopologyLevel& level) {
  const std::string numbers =
      "level " + quote(level.name) + " holds " + std::to_string(level.ranks) + " ranks, ";
  const std::string fewer = "fewer than the " + std::to_string(inner) + " of the level inside it";
  if (level.ranks < inner && outermost) {
    reader.warning(code_outermost_ranks, index,
                   "the outermost level " + quote(level.name) + " names " +
                       counted(level.ranks, "rank") + ", " + fewer +
                       "; it holds every rank all the same",
                   {"levels are listed from the inside out: turn the list around if it is not",
                    {},
                    inside,
                    "the level inside it"});
    level.ranks = inner;
  } else if (level.ranks < inner) {
    reader.error("E0314", index, numbers + fewer,
                 {"list levels from the inside out", {}, inside, "the level inside it"});
  } else if (level.ranks % inner != 0 && !outermost) {
    reader.error(
        "E0314", index,
        numbers + "not a multiple of the " + std::to_string(inner) + " of the level inside it",
        {"a unit of a level is made of whole units of the level inside it",
         {},
         inside,
         "the level inside it"});
  }
}

std::optional<std::vector<TopologyLevel>> read_levels(Reader& reader, uint32_t index) {
  const auto list = reader.elements(index, "\"levels\"");
  if (!list) return std::nullopt;
  if (list->empty()) {
    reader.error("E0211", index, "\"levels\" is empty",
                 {"a topology has one level or more, inside out", {}, 0, {}});
    return std::nullopt;
  }
  if (list->size() > most_levels) {
    reader.error("E0212", index,
                 "a topology of " + std::to_string(list->size()) + " levels; at most " +
                     std::to_string(most_levels) + " are priced");
    return std::nullopt;
  }
  const size_t before = reader.errors();
  std::vector<TopologyLevel> levels;
  for (size_t i = 0; i < list->size(); ++i) {
    auto level = read_level(reader, (*list)[i], i);
    if (!level) continue;
    if (reader.errors() == before && i > 0)
      nest(reader, (*list)[i], (*list)[i - 1], i + 1 == list->size(), levels.back().ranks, *level);
    levels.push_back(*std::move(level));
  }
  if (reader.errors() > before) return std::nullopt;
  return levels;
}

std::optional<MeasuredTable> read_table(Reader& reader, uint32_t index, size_t levels) {
  constexpr std::array<KeyRule, 4> rules{{{"op", true}, {"level"}, {"ranks"}, {"points", true}}};
  const auto found = reader.members(index, rules, "a measured table");
  if (!found) return std::nullopt;
  const auto [op, level, ranks, points] = *found;
  const size_t before = reader.errors();
  MeasuredTable table;
  if (op != 0) {
    std::vector<std::string> ops;
    for (const OpRow& row : op_table) {
      if (row.scope != OpScope::rank) ops.emplace_back(row.name);
    }
    if (const auto chosen = reader.choice(op, "collective", ops))
      table.op = parse_op(ops[*chosen]).value_or(Op::all_reduce);
  }
  if (level != 0)
    table.level =
        reader.integer(level, "\"level\"", 0, levels == 0 ? 0 : static_cast<int64_t>(levels) - 1)
            .value_or(0);
  if (ranks != 0) table.ranks = reader.integer(ranks, "\"ranks\"", 2).value_or(2);
  if (points != 0) {
    const auto list = reader.elements(points, "\"points\"");
    if (list && list->empty())
      reader.error("E0211", points, "\"points\" is empty",
                   {"a table has one [bytes, ns] or more", {}, 0, {}});
    for (const uint32_t point : list.value_or(std::vector<uint32_t>{})) {
      const auto pair = reader.elements(point, "a point");
      if (!pair) continue;
      if (pair->size() != 2) {
        reader.error("E0314", point,
                     "a point of " + std::to_string(pair->size()) + " numbers; it is [bytes, ns]");
        continue;
      }
      const auto bytes = reader.integer((*pair)[0], "the bytes of a point", 1);
      const auto ns = reader.integer((*pair)[1], "the ns of a point", 0, max_latency_ns);
      if (!bytes || !ns) continue;
      if (!table.points.empty() &&
          (*bytes <= table.points.back().first || *ns < table.points.back().second)) {
        reader.error("E0314", point, "the points do not ascend",
                     {"bytes ascend and times never fall", {}, 0, {}});
        continue;
      }
      table.points.emplace_back(*bytes, *ns);
    }
  }
  if (reader.errors() > before || op == 0 || points == 0) return std::nullopt;
  return table;
}

// An innermost level of one rank joins none: nothing goes over its links. Left in place it would be
// the unit inside which ranks share what they fetch.
void leave_out_levels_of_one_rank(Topology& topology) {
  while (topology.levels.size() > 1 && topology.levels.front().ranks == 1) {
    topology.levels.erase(topology.levels.begin());
    for (Protocol& protocol : topology.protocols) protocol.levels.erase(protocol.levels.begin());
    for (MeasuredTable& table : topology.tables)
      table.level = std::max<int64_t>(0, table.level - 1);
  }
}

// A topology object with levels.
std::optional<Topology> read_object(Reader& reader, uint32_t index) {
  constexpr std::array<KeyRule, 8> rules{{{"levels", true},
                                          {"copy_gb_per_s"},
                                          {"copy_mb_per_s"},
                                          {"name"},
                                          {"source"},
                                          {"model"},
                                          {"tables"},
                                          {"protocols"}}};
  const size_t before = reader.errors();
  const auto found = reader.members(index, rules, "the topology");
  if (!found) return std::nullopt;
  const auto [levels, copy_gb, copy_mb, name, source, model, tables, protocols] = *found;
  Topology topology;
  if (name != 0) topology.name = std::string(reader.text(name, "\"name\"").value_or(""));
  if (source != 0) topology.source = std::string(reader.text(source, "\"source\"").value_or(""));
  if (copy_gb != 0 || copy_mb != 0) {
    // 0, as plans write it: copies are not counted.
    topology.copy_mb_per_s =
        bandwidth(reader, copy_gb, copy_mb, "copy_gb_per_s", "copy_mb_per_s", 0).value_or(0);
  }
  if (levels != 0)
    topology.levels = read_levels(reader, levels).value_or(std::vector<TopologyLevel>{});
  if (model != 0 || protocols != 0)
    topology.protocols = read_protocols(reader, index, model, protocols, topology.levels);
  if (tables != 0) {
    for (const uint32_t table :
         reader.elements(tables, "\"tables\"").value_or(std::vector<uint32_t>{})) {
      if (auto read = read_table(reader, table, topology.levels.size()))
        topology.tables.push_back(std::move(*read));
    }
  }
  if (reader.errors() > before || topology.levels.empty()) return std::nullopt;
  leave_out_levels_of_one_rank(topology);
  return topology;
}

// {"file": "..."}
std::optional<Topology> read_from_file(Reader& reader, uint32_t index, const FileReader& read_file,
                                       Diagnostics& diagnostics) {
  constexpr std::array<KeyRule, 1> rules{{{"file", true}}};
  const auto found = reader.members(index, rules, "the topology");
  if (!found) return std::nullopt;
  const auto path = reader.name((*found)[0], "\"file\"");
  if (!path) return std::nullopt;
  const Result<std::string> text =
      read_file ? read_file(*path) : Result<std::string>(bad_input("no files can be read here"));
  if (!text) {
    reader.error("E0315", (*found)[0], printable(text.error().message, 300));
    return std::nullopt;
  }
  return read_topology_file(*text, *path, diagnostics);
}

}  // namespace

std::optional<Topology> read_topology_file(std::string_view text, const std::string& file,
                                           Diagnostics& diagnostics) {
  // Into a collector of its own: what the parser repairs is an error too, and earlier problems of
  // `diagnostics` are not of this file.
  Diagnostics own(diagnostics.cap());
  std::optional<Topology> topology;
  if (const auto document = read_json(text, file, own)) {
    Reader reader(*document, own);
    topology = read_object(reader, 0);
  }
  diagnostics.add_all(own);
  return own.has_errors() ? std::nullopt : topology;
}

std::optional<Topology> read_topology(Reader& reader, uint32_t index, const FileReader& read_file,
                                      Diagnostics& diagnostics) {
  const JsonNode& node = reader.node(index);
  if (node.kind == JsonKind::string) {
    const auto chosen = reader.choice(index, "topology", topology_preset_names());
    return chosen ? topology_preset(topology_preset_names()[*chosen]) : std::nullopt;
  }
  if (node.kind != JsonKind::object) {
    reader.wrong_type(index, "\"topology\"",
                      "a preset's name, {\"file\": ...} or an object with \"levels\"");
    return std::nullopt;
  }
  std::string buffer;
  for (uint32_t child = index + 1; child < node.next; child = reader.node(child).next) {
    if (key_of(reader.document(), reader.node(child), buffer) == "file")
      return read_from_file(reader, index, read_file, diagnostics);
  }
  return read_object(reader, index);
}

}  // namespace meshplan
