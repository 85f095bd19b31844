#include "plan/read_parts.h"

#include <algorithm>

#include "plan/topology_limits.h"

namespace meshplan {
namespace {

constexpr size_t max_mesh_dims = 64;

void read_ranks(const Value& value, Universe& universe) {
  universe.ranks = value.integers(0);
  if (std::ssize(universe.ranks) != universe.world) {
    value.fail(std::to_string(universe.ranks.size()) + " ranks for a world of " +
               std::to_string(universe.world));
  }
  std::vector<int64_t> sorted = universe.ranks;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.back() > last_rank) {
    value.fail("rank " + std::to_string(sorted.back()) + " is above " + std::to_string(last_rank));
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) value.fail("rank " + std::to_string(*twice) + " is listed twice");
}

// A layout whose copies tile the world.
Layout read_layout(const Value& value, int64_t world) {
  Layout layout = coalesce(value.must(parse_layout(value.text())));
  if (const auto copies = complement(layout, world); !copies) value.fail(copies.error().message);
  return layout;
}

Mesh read_mesh(const Value& value, const MeshTable& table,
               const std::shared_ptr<const Universe>& universe) {
  Mesh mesh;
  mesh.name = value.at("name").text();
  if (find_mesh(table, mesh.name)) value.fail("a second mesh is called \"" + mesh.name + "\"");
  mesh.universe = universe;
  if (value.has("group_options")) mesh.group_options = value.at("group_options").text();
  const Value dims = value.at("dims");
  dims.each([&](const Value& entry) {
    MeshDim dim;
    dim.name = entry.at("name").text();
    if (find_dim(mesh, dim.name)) entry.fail("a second dim is called \"" + dim.name + "\"");
    dim.size = entry.at("size").integer(1);
    dim.layout = read_layout(entry.at("layout"), universe->world);
    if (size(dim.layout) != dim.size) {
      entry.fail("size " + std::to_string(dim.size) + " with a layout of " +
                 std::to_string(size(dim.layout)) + " ranks");
    }
    if (entry.has("group_options")) dim.group_options = entry.at("group_options").text();
    mesh.dims.push_back(std::move(dim));
  });
  if (mesh.dims.size() > max_mesh_dims)
    dims.fail("more than " + std::to_string(max_mesh_dims) + " mesh dims");
  std::vector<Mode> modes;
  for (const MeshDim& dim : mesh.dims)
    modes.insert(modes.end(), dim.layout.modes.begin(), dim.layout.modes.end());
  const Layout whole = dims.must(make_layout(std::move(modes)));
  if (const auto copies = complement(whole, mesh.universe->world); !copies)
    dims.fail(copies.error().message);
  return mesh;
}

const Mesh& mesh_called(const Value& name, const MeshTable& table) {
  const auto index = find_mesh(table, name.text());
  if (!index) name.fail("the plan has no mesh \"" + std::string(name.text()) + "\"");
  return table.meshes[*index];
}

// One universe: its meshes and flattens.
void read_universe(const Value& value, MeshTable& table) {
  Universe read;
  read.world = value.at("world").integer(1);
  if (value.has("ranks")) read_ranks(value.at("ranks"), read);
  const auto universe = std::make_shared<const Universe>(std::move(read));
  const size_t root = table.meshes.size();
  value.at("meshes").each(
      [&](const Value& mesh) { table.meshes.push_back(read_mesh(mesh, table, universe)); });
  if (table.meshes.size() == root) value.at("meshes").fail("expected one mesh or more");
  value.at("flattened").each([&](const Value& entry) {
    Flatten flatten;
    flatten.name = entry.at("name").text();
    flatten.dims = entry.at("dims").texts();
    flatten.of = entry.at("of").text();
    flatten.layout = read_layout(entry.at("layout"), universe->world);
    flatten.universe = universe;
    if (entry.has("group_options")) flatten.group_options = entry.at("group_options").text();
    table.flattens.push_back(std::move(flatten));
  });
}

}  // namespace

std::vector<MeshNames> names_of(const MeshTable& table) {
  std::vector<MeshNames> names;
  for (const Mesh& mesh : table.meshes) names.push_back({dim_names(mesh), mesh_shape(mesh)});
  return names;
}

MeshTable read_meshes(const Value& root) {
  MeshTable table;
  if (!root.has("universes")) {
    read_universe(root.at("mesh"), table);
    return table;
  }
  const Value universes = root.at("universes");
  if (root.has("mesh")) universes.fail("a plan has \"mesh\" or \"universes\", not both");
  universes.each([&](const Value& universe) {
    const size_t first = table.meshes.size();
    read_universe(universe, table);
    const std::string& name = table.meshes[first].name;
    if (universe.at("name").text() != name)
      universe.at("name").fail("a universe is called like its first mesh, \"" + name + "\"");
  });
  if (universes.count() < 2) universes.fail("expected two universes or more");
  return table;
}

PlanOptions read_options(const Value& value) {
  PlanOptions options;
  options.groups = named(value.at("groups"), parse_group_policy, "policy of groups");
  options.max_memory_bytes = value.at("max_memory_bytes").integer(-1);
  options.merge = value.at("merge").flag();
  options.one_reduction = value.at("one_reduction").flag();
  options.planner = named(value.at("planner"), parse_planner, "planner");
  options.rules = named(value.at("rules"), parse_rules, "set of rules");
  options.world_group = named(value.at("world_group"), parse_world_group, "way to make groups");
  if (value.has("cost_model"))
    options.cost_model = named(value.at("cost_model"), parse_cost_model, "cost model");
  if (value.has("max_groups")) options.max_groups = value.at("max_groups").integer(0);
  if (value.has("ranks_per_host")) options.ranks_per_host = value.at("ranks_per_host").integer(1);
  return options;
}

namespace {

Protocol read_protocol(const Value& value, size_t levels) {
  Protocol protocol;
  protocol.levels.resize(levels);
  const auto numbers = [&](const char* name, int64_t ProtocolLevel::*number, int64_t least) {
    const std::vector<int64_t> all = value.at(name).integers(least);
    if (all.size() != levels)
      value.at(name).fail("expected one number for each of the " + std::to_string(levels) +
                          " levels");
    for (size_t l = 0; l < levels; ++l) protocol.levels[l].*number = all[l];
  };
  protocol.name = value.at("name").text();
  protocol.base_ns = value.at("base_ns").integer(0, max_latency_ns);
  if (value.has("trees")) protocol.trees = value.at("trees").flag();
  if (value.has("switch_ns")) protocol.switch_ns = value.at("switch_ns").integer(1, max_latency_ns);
  numbers("hop_ns", &ProtocolLevel::hop_ns, 0);
  numbers("share", &ProtocolLevel::share, 1);
  if (value.has("tree_ns")) numbers("tree_ns", &ProtocolLevel::tree_ns, 0);
  if (value.has("tree_share")) numbers("tree_share", &ProtocolLevel::tree_share, 1);
  if (value.has("ops")) {
    for (const std::string& name : value.at("ops").texts()) {
      const auto op = parse_op(name);
      if (!op || is_local(*op)) value.at("ops").fail("\"" + name + "\" does not communicate");
      protocol.ops |= bit_of(*op);
    }
  }
  if (value.has("most_bytes"))
    protocol.most_bytes = value.at("most_bytes").integer(1, max_peer_bytes);
  if (value.has("near_bytes")) {
    protocol.near_bytes = value.at("near_bytes").integer(1, max_peer_bytes);
    numbers("far_share", &ProtocolLevel::far_share, 1);
  } else if (value.has("far_share")) {
    value.at("far_share").fail("without near_bytes nothing is far");
  }
  for (const ProtocolLevel& level : protocol.levels) {
    if (level.hop_ns > max_latency_ns || level.tree_ns > max_latency_ns ||
        level.share > whole_share || level.tree_share > whole_share ||
        level.far_share > whole_share)
      value.fail("a hop takes at most " + std::to_string(max_latency_ns) +
                 " ns, a share is at most " + std::to_string(whole_share));
  }
  return protocol;
}

// "nccl" is how plans before protocols name NCCL's own.
void read_model(const Value& value, Topology& topology) {
  const std::string model = value.has("model") ? value.at("model").text() : std::string();
  if (model == "nccl") {
    topology.protocols = nccl_protocols(topology.levels.size());
  } else if (model == "protocols") {
    const Value protocols = value.at("protocols");
    protocols.each([&](const Value& entry) {
      topology.protocols.push_back(read_protocol(entry, topology.levels.size()));
    });
    if (topology.protocols.empty() || std::ssize(topology.protocols) > max_protocols)
      protocols.fail("expected 1 to " + std::to_string(max_protocols) + " protocols");
    if (const auto op = unserved_op(topology.protocols))
      protocols.fail(std::string("no protocol serves ") + to_text(*op) + " of every size");
  } else if (!model.empty()) {
    value.at("model").fail("expected \"protocols\"");
  }
}

}  // namespace

Topology read_topology(const Value& value) {
  Topology topology;
  topology.name = value.at("name").text();
  topology.source = value.at("source").text();
  topology.copy_mb_per_s = value.at("copy_mb_per_s").integer(0, max_mb_per_s);
  const Value levels = value.at("levels");
  levels.each([&](const Value& entry) {
    TopologyLevel level;
    level.name = entry.at("name").text();
    level.ranks = entry.at("ranks").integer(1);
    level.mb_per_s = entry.at("mb_per_s").integer(1, max_mb_per_s);
    level.latency_ns = entry.at("latency_ns").integer(0, max_latency_ns);
    level.per_peer_ns = entry.at("per_peer_ns").integer(0, max_per_peer_ns);
    level.exchange_percent = entry.at("exchange_percent").integer(1, 100);
    if (entry.has("peer_mb_per_s"))
      level.peer_mb_per_s = entry.at("peer_mb_per_s").integer(1, max_mb_per_s);
    if (entry.has("peer_bytes"))
      level.peer_bytes = entry.at("peer_bytes").integer(1, max_peer_bytes);
    if (entry.has("near_bytes")) {
      level.near_bytes = entry.at("near_bytes").integer(1, max_peer_bytes);
      level.far_mb_per_s = entry.at("far_mb_per_s").integer(1, max_mb_per_s);
    } else if (entry.has("far_mb_per_s")) {
      entry.at("far_mb_per_s").fail("without near_bytes nothing is far");
    }
    if (entry.has("switch_mb_per_s"))
      level.switch_mb_per_s = entry.at("switch_mb_per_s").integer(1, max_mb_per_s);
    if (!topology.levels.empty() && level.ranks < topology.levels.back().ranks)
      entry.fail("expected levels from the inside out");
    topology.levels.push_back(std::move(level));
  });
  if (topology.levels.empty() || topology.levels.size() > 8) levels.fail("expected 1 to 8 levels");
  read_model(value, topology);
  if (!value.has("tables")) return topology;
  value.at("tables").each([&](const Value& entry) {
    MeasuredTable table;
    table.op = named(entry.at("op"), parse_op, "operation");
    table.level = entry.at("level").integer(0, std::ssize(topology.levels) - 1);
    table.ranks = entry.at("ranks").integer(2);
    entry.at("points").each([&](const Value& point) {
      const std::vector<int64_t> pair = point.integers(0);
      if (pair.size() != 2) point.fail("expected [bytes, nanoseconds]");
      if (!table.points.empty() && pair[0] <= table.points.back().first)
        point.fail("bytes must ascend");
      table.points.emplace_back(pair[0], pair[1]);
    });
    topology.tables.push_back(std::move(table));
  });
  return topology;
}

PlanGroup read_group(const Value& value, const MeshTable& meshes) {
  PlanGroup group;
  group.id = value.at("id").text();
  std::vector<std::shared_ptr<const Universe>> universes;
  if (value.has("universes")) {
    const Value roots = value.at("universes");
    roots.each([&](const Value& name) {
      group.universes.push_back(name.text());
      universes.push_back(mesh_called(name, meshes).universe);
    });
    if (universes.size() < 2) roots.fail("expected two universes or more");
  } else {
    group.mesh = value.at("mesh").text();
    universes.push_back(mesh_called(value.at("mesh"), meshes).universe);
  }
  group.dims = value.at("dims").texts();
  group.layout = read_layout(value.at("layout"), rank_count(universes));
  group.size = value.at("size").integer(1);
  group.count = value.at("count").integer(1);
  group.declared = value.at("declared").flag();
  group.used_by = value.at("used_by").integer(0);
  return group;
}

Totals read_totals(const Value& value) {
  Totals totals;
  totals.collectives = value.at("collectives").integer(0);
  totals.wire_bytes = value.at("wire_bytes").integer(0);
  totals.peak_bytes = value.at("peak_bytes").integer(0);
  totals.predicted_ps = picoseconds(value.at("predicted_ns"));
  totals.lower_bound_bytes = value.at("lower_bound_bytes").integer(0);
  totals.lower_bound_ps = picoseconds(value.at("lower_bound_ns"));
  return totals;
}

}  // namespace meshplan
