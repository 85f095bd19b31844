// Reads a plan file back, so that proof and replay work from the file alone. Every value is checked for type and range before it is used:
// any bytes give a plan or an error that names the place.
#include <algorithm>
#include <limits>

#include "base/int_math.h"
#include "base/sha256.h"
#include "base/text.h"
#include "plan/json.h"
#include "plan/json_value.h"
#include "plan/plan.h"
#include "plan/topology_limits.h"

namespace meshplan {
namespace {

constexpr size_t max_tensor_rank = 64;
constexpr size_t max_mesh_dims = 64;

struct MeshNames {
  std::vector<std::string> names;
  std::vector<int64_t> shape;
};

class PlanReader {
 public:
  Plan read(const Value& root) {
    plan_.spec_digest = root.at("spec_digest").text();
    read_meshes(root.at("mesh"));
    read_options(root.at("options"));
    read_topology(root.at("topology"));
    root.at("groups").each([&](const Value& value) { read_group(value); });
    root.at("redistributions").each([&](const Value& value) { plan_.redistributions.push_back(read_redistribution(value)); });
    plan_.totals = read_totals(root.at("totals"));
    return std::move(plan_);
  }

 private:
  void read_meshes(const Value& value) {
    MeshTable& table = plan_.meshes;
    Universe universe;
    universe.world = value.at("world").integer(1);
    if (value.has("ranks")) read_ranks(value.at("ranks"), universe);
    table.universe = std::make_shared<const Universe>(std::move(universe));
    value.at("meshes").each([&](const Value& mesh) { read_mesh(mesh); });
    if (table.meshes.empty()) value.at("meshes").fail("expected one mesh or more");
    value.at("flattened").each([&](const Value& entry) {
      Flatten flatten;
      flatten.name = entry.at("name").text();
      flatten.dims = entry.at("dims").texts();
      flatten.of = entry.at("of").text();
      flatten.layout = read_layout(entry.at("layout"));
      if (entry.has("group_options")) flatten.group_options = entry.at("group_options").text();
      table.flattens.push_back(std::move(flatten));
    });
  }

  static void read_ranks(const Value& value, Universe& universe) {
    universe.ranks = value.integers(0);
    if (static_cast<int64_t>(universe.ranks.size()) != universe.world) {
      value.fail(std::to_string(universe.ranks.size()) + " ranks for a world of " + std::to_string(universe.world));
    }
    std::vector<int64_t> sorted = universe.ranks;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) value.fail("rank " + std::to_string(*twice) + " is listed twice");
  }

  // A layout whose copies tile the world.
  [[nodiscard]] Layout read_layout(const Value& value) const {
    Layout layout = coalesce(value.must(parse_layout(value.text())));
    if (const auto copies = complement(layout, plan_.meshes.universe->world); !copies) value.fail(copies.error().message);
    return layout;
  }

  void read_mesh(const Value& value) {
    Mesh mesh;
    mesh.name = value.at("name").text();
    if (find_mesh(plan_.meshes, mesh.name)) value.fail("a second mesh is called \"" + mesh.name + "\"");
    mesh.universe = plan_.meshes.universe;
    if (value.has("group_options")) mesh.group_options = value.at("group_options").text();
    const Value dims = value.at("dims");
    dims.each([&](const Value& entry) {
      MeshDim dim;
      dim.name = entry.at("name").text();
      if (find_dim(mesh, dim.name)) entry.fail("a second dim is called \"" + dim.name + "\"");
      dim.size = entry.at("size").integer(1);
      dim.layout = read_layout(entry.at("layout"));
      if (size(dim.layout) != dim.size) {
        entry.fail("size " + std::to_string(dim.size) + " with a layout of " + std::to_string(size(dim.layout)) + " ranks");
      }
      if (entry.has("group_options")) dim.group_options = entry.at("group_options").text();
      mesh.dims.push_back(std::move(dim));
    });
    if (mesh.dims.size() > max_mesh_dims) dims.fail("more than " + std::to_string(max_mesh_dims) + " mesh dims");
    std::vector<Mode> modes;
    for (const MeshDim& dim : mesh.dims) modes.insert(modes.end(), dim.layout.modes.begin(), dim.layout.modes.end());
    const Layout whole = dims.must(make_layout(std::move(modes)));
    if (const auto copies = complement(whole, mesh.universe->world); !copies) dims.fail(copies.error().message);
    meshes_.push_back({dim_names(mesh), mesh_shape(mesh)});
    plan_.meshes.meshes.push_back(std::move(mesh));
  }

  void read_options(const Value& value) {
    PlanOptions& options = plan_.options;
    options.groups = named(value.at("groups"), parse_group_policy, "policy of groups");
    options.max_memory_bytes = value.at("max_memory_bytes").integer(-1);
    options.merge = value.at("merge").flag();
    options.one_reduction = value.at("one_reduction").flag();
    options.planner = named(value.at("planner"), parse_planner, "planner");
    options.rules = named(value.at("rules"), parse_rules, "set of rules");
    options.world_group = named(value.at("world_group"), parse_world_group, "way to make groups");
    if (value.has("cost_model")) options.cost_model = named(value.at("cost_model"), parse_cost_model, "cost model");
    if (value.has("max_groups")) options.max_groups = value.at("max_groups").integer(0);
    if (value.has("ranks_per_host")) options.ranks_per_host = value.at("ranks_per_host").integer(1);
  }

  template <class Named>
  static Named named(const Value& value, std::optional<Named> (*parse)(std::string_view), const char* what) {
    return value.must(parse(value.text()), what);
  }

  void read_topology(const Value& value) {
    Topology& topology = plan_.topology;
    topology.name = value.at("name").text();
    topology.source = value.at("source").text();
    topology.copy_mb_per_s = value.at("copy_mb_per_s").integer(0, max_mb_per_s);
    if (value.has("model")) topology.model = value.at("model").text();
    const Value levels = value.at("levels");
    levels.each([&](const Value& entry) {
      TopologyLevel level;
      level.name = entry.at("name").text();
      level.ranks = entry.at("ranks").integer(1);
      level.mb_per_s = entry.at("mb_per_s").integer(1, max_mb_per_s);
      level.latency_ns = entry.at("latency_ns").integer(0, max_latency_ns);
      level.per_peer_ns = entry.at("per_peer_ns").integer(0, max_per_peer_ns);
      level.exchange_percent = entry.at("exchange_percent").integer(1, 100);
      if (!topology.levels.empty() && level.ranks < topology.levels.back().ranks) entry.fail("levels stand from the inside out");
      topology.levels.push_back(std::move(level));
    });
    if (topology.levels.empty() || topology.levels.size() > 8) levels.fail("expected 1 to 8 levels");
    if (!value.has("tables")) return;
    value.at("tables").each([&](const Value& entry) {
      MeasuredTable table;
      table.op = named(entry.at("op"), parse_op, "operation");
      table.level = entry.at("level").integer(0, static_cast<int64_t>(topology.levels.size()) - 1);
      table.ranks = entry.at("ranks").integer(2);
      entry.at("points").each([&](const Value& point) {
        const std::vector<int64_t> pair = point.integers(0);
        if (pair.size() != 2) point.fail("expected [bytes, nanoseconds]");
        if (!table.points.empty() && pair[0] <= table.points.back().first) point.fail("bytes must ascend");
        table.points.emplace_back(pair[0], pair[1]);
      });
      topology.tables.push_back(std::move(table));
    });
  }

  void read_group(const Value& value) {
    PlanGroup group;
    group.id = value.at("id").text();
    group.mesh = value.at("mesh").text();
    group.dims = value.at("dims").texts();
    group.layout = read_layout(value.at("layout"));
    group.size = value.at("size").integer(1);
    group.count = value.at("count").integer(1);
    group.declared = value.at("declared").flag();
    group.used_by = value.at("used_by").integer(0);
    plan_.groups.push_back(std::move(group));
  }

  [[nodiscard]] size_t read_mesh_name(const Value& value) const {
    const auto index = find_mesh(plan_.meshes, value.text());
    if (!index) value.fail("there is no mesh \"" + value.text() + "\" in this plan");
    return *index;
  }

  static Totals read_totals(const Value& value) {
    Totals totals;
    totals.collectives = value.at("collectives").integer(0);
    totals.wire_bytes = value.at("wire_bytes").integer(0);
    totals.peak_bytes = value.at("peak_bytes").integer(0);
    totals.predicted_ps = value.at("predicted_ns").picoseconds();
    totals.lower_bound_bytes = value.at("lower_bound_bytes").integer(0);
    totals.lower_bound_ps = value.at("lower_bound_ns").picoseconds();
    return totals;
  }

  static TensorMeta read_tensor(const Value& value) {
    TensorMeta tensor;
    tensor.dtype = named(value.at("dtype"), parse_dtype, "dtype");
    tensor.shape = value.at("shape").integers(0);
    if (tensor.shape.size() > max_tensor_rank) value.at("shape").fail("more than " + std::to_string(max_tensor_rank) + " tensor dims");
    // Empty dims do not hide the size of the others: products of parts of the shape are taken everywhere.
    int64_t bytes = element_bytes(tensor.dtype);
    for (int64_t extent : tensor.shape) {
      const auto more = checked_mul(bytes, std::max<int64_t>(extent, 1));
      if (!more) value.at("shape").fail("the bytes of the tensor do not fit 64 bits");
      bytes = *more;
    }
    return tensor;
  }

  static State read_state_text(const Value& value, const MeshNames& mesh, size_t tensor_rank) {
    return value.must(parse_state(value.text(), mesh.shape, tensor_rank));
  }

  static std::vector<ShardOrder> read_orders(const Value& value, const MeshNames& mesh) {
    std::vector<ShardOrder> orders;
    value.each([&](const Value& entry) {
      ShardOrder order;
      order.tensor_dim = static_cast<int32_t>(entry.at("tensor_dim").integer(0, std::numeric_limits<int32_t>::max()));
      entry.at("mesh_dims").each([&](const Value& name) {
        const auto at = std::find(mesh.names.begin(), mesh.names.end(), name.text());
        if (at == mesh.names.end()) name.fail("there is no mesh dim \"" + name.text() + "\"");
        order.mesh_dims.push_back(static_cast<int32_t>(at - mesh.names.begin()));
      });
      orders.push_back(std::move(order));
    });
    return orders;
  }

  static State read_state(const Value& value, const std::vector<ShardOrder>& orders, const MeshNames& mesh, size_t tensor_rank) {
    if (value.is_text()) return read_state_text(value, mesh, tensor_rank);
    std::vector<Placement> placements;
    value.each([&](const Value& entry) { placements.push_back(entry.must(parse_placement(entry.text()))); });
    if (placements.size() != mesh.shape.size()) {
      value.fail(std::to_string(placements.size()) + " placements for " + std::to_string(mesh.shape.size()) + " mesh dims");
    }
    return value.must(make_state(placements, mesh.shape, tensor_rank, orders));
  }

  PlannedRedistribution read_redistribution(const Value& value) {
    PlannedRedistribution r;
    Request& request = r.request;
    request.id = value.at("id").text();
    request.src_mesh = read_mesh_name(value.at(value.has("mesh") ? "mesh" : "src_mesh"));
    request.dst_mesh = read_mesh_name(value.at(value.has("mesh") ? "mesh" : "dst_mesh"));
    const MeshNames& src = meshes_[request.src_mesh];
    const MeshNames& dst = meshes_[request.dst_mesh];
    request.tensor = read_tensor(value.at("tensor"));
    const size_t rank = request.tensor.shape.size();
    const Value dst_order = value.at("dst_order");
    request.any_dst_order = dst_order.is_text();
    if (request.any_dst_order && dst_order.text() != "any") dst_order.fail("expected a list of orders or \"any\"");
    request.src = read_state(value.at("src"), read_orders(value.at("src_order"), src), src, rank);
    request.dst = read_state(value.at("dst"), request.any_dst_order ? std::vector<ShardOrder>() : read_orders(dst_order, dst), dst, rank);
    request.count = value.at("count").integer(1);
    if (value.has("direction")) {
      const Value direction = value.at("direction");
      if (direction.text() != "backward" && direction.text() != "forward") direction.fail("expected forward or backward");
      request.direction = direction.text() == "backward" ? Direction::backward : Direction::forward;
    }
    if (value.has("reduce_dtype")) request.reduce_dtype = named(value.at("reduce_dtype"), parse_dtype, "dtype");
    r.planner = named(value.at("planner"), parse_planner, "planner");
    r.rules = named(value.at("rules"), parse_rules, "set of rules");
    r.dst = value.has("reached") ? read_state_text(value.at("reached"), dst, rank) : request.dst;
    r.trace = value.at("trace").text();
    r.unmerged_trace = value.at("unmerged_trace").text();
    r.totals = read_totals(value.at("totals"));
    r.proven_gap_ps = value.at("proven_gap_ns").picoseconds();
    if (value.has("shortcuts")) {
      value.at("shortcuts").each([&](const Value& name) {
        r.shortcuts.add(named(name, parse_shortcut, "shortcut"));
      });
    }
    value.at("steps").each([&](const Value& step) { r.steps.push_back(read_step(step, request)); });
    value.at("reductions").each([&](const Value& note) {
      r.reductions.push_back({note.at("dims").texts(), note.at("collectives").integer(0), note.at("nesting").text()});
    });
    value.at("warnings").each([&](const Value& warning) { r.warnings.push_back(read_warning(warning)); });
    value.at("audit").each([&](const Value& finding) { r.audit.push_back(read_finding(finding)); });
    value.at("alternatives").each([&](const Value& other) {
      r.alternatives.push_back({other.at("trace").text(), read_totals(other.at("totals"))});
    });
    return r;
  }

  static std::optional<Placement> read_placement(const Value& value, size_t tensor_rank) {
    if (value.is_null()) return std::nullopt;
    const Placement placement = value.must(parse_placement(value.text()));
    if (placement.kind == Placement::Kind::strided_shard) value.fail("expected R, S(dim) or P(op)");
    if (is_shard(placement) && static_cast<size_t>(placement.tensor_dim) >= tensor_rank) {
      value.fail(value.text() + " of a tensor of " + std::to_string(tensor_rank) + " dims");
    }
    return placement;
  }

  [[nodiscard]] Step read_step(const Value& value, const Request& request) const {
    Step step;
    size_t on = request.src_mesh;
    if (value.has("mesh")) {
      const Value mesh = value.at("mesh");
      step.mesh = mesh.text();
      on = read_mesh_name(mesh);
      if (on != request.src_mesh && on != request.dst_mesh) mesh.fail("\"" + step.mesh + "\" is no mesh of this redistribution");
    }
    const MeshNames& mesh = meshes_[on];
    const size_t rank = request.tensor.shape.size();
    const auto read_atom = [&](const Value& entry) { return entry.must(parse_atom(entry.text(), mesh.names, mesh.shape)); };
    step.op = named(value.at("op"), parse_op, "operation");
    value.at("mesh_dims").each([&](const Value& entry) { step.mesh_dims.push_back(read_atom(entry)); });
    step.group = value.at("group").text();
    step.src = read_placement(value.at("src"), rank);
    step.dst = read_placement(value.at("dst"), rank);
    if (const Value dim = value.at("tensor_dim"); !dim.is_null()) {
      step.tensor_dim = static_cast<int32_t>(dim.integer(0, static_cast<int64_t>(rank) - 1));
    }
    if (value.has("moves")) {
      value.at("moves").each([&](const Value& entry) {
        const Value from = entry.at("src");
        const Value to = entry.at("dst");
        const auto src = read_placement(from, rank);
        const auto dst = read_placement(to, rank);
        if (!src) from.fail("expected a placement");
        if (!dst) to.fail("expected a placement");
        step.moves.push_back({read_atom(entry.at("mesh_dim")), *src, *dst});
      });
    }
    if (const Value op = value.at("reduce_op"); !op.is_null()) step.reduce_op = named(op, parse_reduce_op, "reduce op");
    if (const Value scale = value.at("scale"); !scale.is_null()) {
      const std::string& text = scale.text();
      const auto divisor = text.substr(0, 2) == "1/" ? parse_int(std::string_view(text).substr(2)) : std::nullopt;
      if (!divisor || *divisor < 2) scale.fail("expected a scale such as \"1/8\", or null");
      step.scale_divisor = *divisor;
    }
    step.state = read_state_text(value.at("state"), mesh, rank);
    step.logical_shape = value.at("logical_shape").integers(0);
    step.wire_bytes = value.at("wire_bytes").integer(0);
    step.peak_bytes = value.at("peak_bytes").integer(0);
    step.predicted_ps = value.at("predicted_ns").picoseconds();
    step.merged = value.at("merged").integer(1);
    if (value.has("phases")) step.phases = value.at("phases").integer(1, 2);
    if (value.has("whole_pieces")) step.whole_pieces = value.at("whole_pieces").flag();
    step.why = value.at("why").text();
    return step;
  }

  static Warning read_warning(const Value& value) {
    Warning warning;
    const Value kind = value.at("kind");
    std::optional<WarningKind> found;
    for (WarningKind each : {WarningKind::missing_flatten, WarningKind::uneven_shape, WarningKind::non_ascending}) {
      if (kind.text() == to_text(each)) found = each;
    }
    warning.kind = kind.must(found, "kind of warning");
    if (const Value code = value.at("code"); code.text() != warning_code(warning.kind)) {
      code.fail("\"" + code.text() + "\" beside the kind \"" + to_text(warning.kind) + "\", whose code is " + warning_code(warning.kind));
    }
    warning.dims = value.at("dims").texts();
    warning.collective = named(value.at("collective"), parse_op, "operation");
    warning.operations = value.at("operations").integer(0);
    warning.saves_ps = saturating_mul(value.at("saves_ns").integer(-ns_of_ps(max_plan_int), ns_of_ps(max_plan_int)), 1000);
    warning.saves_collectives = value.at("saves_collectives").integer(std::numeric_limits<int64_t>::min());
    if (const Value fix = value.at("fix"); !fix.is_null()) warning.fix_name = fix.at("name").text();
    warning.mesh = value.at("mesh").text();
    warning.message = value.at("message").text();
    return warning;
  }

  static AuditFinding read_finding(const Value& value) {
    AuditFinding finding;
    finding.code = value.at("code").text();
    finding.kind = value.at("kind").text();
    finding.step = value.at("step").integer(-1);
    finding.message = value.at("message").text();
    finding.wire_bytes = value.at("wire_bytes").integer(0);
    finding.better_wire_bytes = value.at("better_wire_bytes").integer(0);
    finding.better_trace = value.at("better_trace").text();
    return finding;
  }

  Plan plan_;
  std::vector<MeshNames> meshes_;
};

// The schema's name and major version; unknown majors are refused by name, minor ones ("meshplan/plan/1.2") are read.
void check_schema(const Value& root) {
  static constexpr std::string_view family = "meshplan/plan/";
  const Value schema = root.at("schema");
  const std::string_view name = schema.text();
  if (name.substr(0, 14) == "meshplan/spec/") schema.fail("this is a spec; plan it first: meshplan plan SPEC -o PLAN");
  if (name.substr(0, family.size()) != family) schema.fail("\"" + std::string(name) + "\" is no plan; expected \"meshplan/plan/1\"");
  const std::string_view version = name.substr(family.size());
  const std::string_view major = version.substr(0, version.find('.'));
  if (major != "1") {
    schema.fail("\"" + std::string(name) + "\" needs a meshplan that reads plans of version " + std::string(major) +
                "; this one reads version 1");
  }
}

void check_content(const Value& root, const Json& json) {
  JsonObject content = std::get<JsonObject>(json.value);
  content.erase(std::remove_if(content.begin(), content.end(), [](const auto& member) { return member.first == "digest"; }), content.end());
  std::string compact;
  append_json(compact, Json{std::move(content)});
  const std::string digest = "sha256:" + sha256_hex(compact);
  if (digest != root.at("digest").text()) {
    root.at("digest").fail("the content has the digest " + digest + ", so it was changed after planning; plan the spec again");
  }
}

}  // namespace

std::variant<Plan, PlanRefusal> try_read_plan(std::string_view text, bool check_digest) {
  const auto json = parse_json(text);
  if (const auto* refusal = std::get_if<JsonRefusal>(&json)) return PlanRefusal{refusal->message, {}, refusal->byte};
  const Json& document = std::get<Json>(json);
  try {
    const Value root(document);
    check_schema(root);
    Plan plan = PlanReader().read(root);
    if (root.has("digest")) plan.digest = root.at("digest").text();
    // Last: of a plan changed by hand the value that cannot be is more to the point than the digest.
    if (check_digest) check_content(root, document);
    return plan;
  } catch (const Unreadable& unreadable) {
    return unreadable.refusal;
  }
}

Result<Plan> read_plan(std::string_view text, bool check_digest) {
  auto read = try_read_plan(text, check_digest);
  if (auto* plan = std::get_if<Plan>(&read)) return std::move(*plan);
  const PlanRefusal& refusal = std::get<PlanRefusal>(read);
  if (refusal.byte) return bad_input(line_and_column(text, *refusal.byte) + ": " + refusal.message);
  return bad_input((refusal.pointer.empty() ? "the whole document" : refusal.pointer) + ": " + refusal.message);
}

}  // namespace meshplan
