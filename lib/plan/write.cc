// The plan file's text: one walk over the plan writes either form, the compact one that the digest is over or the one with line breaks.
// Keys stand in ascending order here, as the walk meets them; a test compares with the sorted content.
#include <algorithm>

#include "base/sha256.h"
#include "base/text.h"
#include "plan/json.h"
#include "plan/plan.h"

namespace meshplan {
namespace {

// Where a container's members go: each on a line of its own, or all on one.
enum class Breaks : uint8_t { lines, one_line };

class Writer {
 public:
  explicit Writer(bool compact) : compact_(compact) {}

  void open(char bracket, Breaks breaks) {
    out += bracket;
    open_.push_back({breaks == Breaks::lines && !compact_, true});
  }
  void close(char bracket) {
    const Level level = open_.back();
    open_.pop_back();
    if (level.lines && !level.empty) new_line();
    out += bracket;
  }
  // Before each element of a list.
  void item() {
    Level& level = open_.back();
    if (!level.empty) out += compact_ || level.lines ? "," : ", ";
    level.empty = false;
    if (level.lines) new_line();
  }
  void key(const char* name) {
    item();
    out += '"';
    out += name;
    out += compact_ ? "\":" : "\": ";
  }

  void field(const char* name, int64_t value) {
    key(name);
    append_integer(out, value);
  }
  void flag(const char* name, bool value) {
    key(name);
    out += value ? "true" : "false";
  }
  void field(const char* name, std::string_view value) {
    key(name);
    append_json_text(out, value);
  }
  void field(const char* name, const std::optional<Placement>& value) {
    if (!value) return none(name);
    field(name, to_text(*value));
  }
  void none(const char* name) {
    key(name);
    out += "null";
  }
  void field(const char* name, const std::vector<int64_t>& values) {
    key(name);
    open('[', Breaks::one_line);
    for (int64_t value : values) {
      item();
      append_integer(out, value);
    }
    close(']');
  }
  void field(const char* name, const std::vector<std::string>& values) {
    key(name);
    open('[', Breaks::one_line);
    for (const std::string& value : values) {
      item();
      append_json_text(out, value);
    }
    close(']');
  }
  // A list whose elements `write` writes, each on a line of its own.
  template <class List, class Write>
  void list(const char* name, const List& values, const Write& write) {
    key(name);
    open('[', Breaks::lines);
    for (const auto& value : values) {
      item();
      write(value);
    }
    close(']');
  }

  std::string out;

 private:
  struct Level {
    bool lines;
    bool empty;
  };
  void new_line() {
    out += '\n';
    out.append(open_.size() * 2, ' ');
  }
  bool compact_;
  std::vector<Level> open_;
};

// The names and sizes of a mesh, once for all that is printed on it.
struct MeshNames {
  std::vector<std::string> names;
  std::vector<int64_t> shape;
};

bool is_identifier(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; });
}

class PlanWriter {
 public:
  PlanWriter(const Plan& plan, bool compact) : plan_(plan), w_(compact) {
    for (const Mesh& mesh : plan.meshes.meshes) meshes_.push_back({dim_names(mesh), mesh_shape(mesh)});
  }

  std::string write(const std::string* digest) {
    w_.out.reserve(4096 + plan_.redistributions.size() * 1024);
    w_.open('{', Breaks::lines);
    if (digest != nullptr) w_.field("digest", *digest);
    w_.list("groups", plan_.groups, [&](const PlanGroup& group) { write_group(group); });
    write_meshes();
    write_options();
    w_.list("redistributions", plan_.redistributions, [&](const PlannedRedistribution& r) { write_redistribution(r); });
    w_.field("schema", std::string_view("meshplan/plan/1"));
    w_.field("spec_digest", plan_.spec_digest);
    write_topology();
    write_totals("totals", plan_.totals);
    w_.close('}');
    return std::move(w_.out);
  }

 private:
  void write_group(const PlanGroup& group) {
    w_.open('{', Breaks::one_line);
    w_.field("count", group.count);
    w_.flag("declared", group.declared);
    w_.field("dims", group.dims);
    w_.field("id", group.id);
    w_.field("layout", to_text(group.layout));
    w_.field("mesh", group.mesh);
    w_.field("size", group.size);
    w_.field("used_by", group.used_by);
    w_.close('}');
  }

  void write_meshes() {
    const MeshTable& table = plan_.meshes;
    w_.key("mesh");
    w_.open('{', Breaks::lines);
    w_.list("flattened", table.flattens, [&](const Flatten& flatten) {
      w_.open('{', Breaks::one_line);
      w_.field("dims", flatten.dims);
      if (!flatten.group_options.empty()) w_.field("group_options", flatten.group_options);
      w_.field("layout", to_text(flatten.layout));
      w_.field("name", flatten.name);
      w_.field("of", flatten.of);
      w_.close('}');
    });
    w_.list("meshes", table.meshes, [&](const Mesh& mesh) {
      w_.open('{', Breaks::one_line);
      w_.key("dims");
      w_.open('[', Breaks::one_line);
      for (const MeshDim& dim : mesh.dims) {
        w_.item();
        w_.open('{', Breaks::one_line);
        if (!dim.group_options.empty()) w_.field("group_options", dim.group_options);
        w_.field("layout", to_text(dim.layout));
        w_.field("name", dim.name);
        w_.field("size", dim.size);
        w_.close('}');
      }
      w_.close(']');
      if (!mesh.group_options.empty()) w_.field("group_options", mesh.group_options);
      w_.field("name", mesh.name);
      w_.close('}');
    });
    if (table.universe != nullptr && !table.universe->ranks.empty()) w_.field("ranks", table.universe->ranks);
    w_.field("world", table.universe == nullptr ? 1 : table.universe->world);
    w_.close('}');
  }

  void write_options() {
    const PlanOptions& options = plan_.options;
    w_.key("options");
    w_.open('{', Breaks::one_line);
    if (options.planner == PlannerKind::graph) w_.field("cost_model", std::string_view(to_text(options.cost_model)));
    w_.field("groups", std::string_view(to_text(options.groups)));
    if (options.max_groups >= 0) w_.field("max_groups", options.max_groups);
    w_.field("max_memory_bytes", options.max_memory_bytes);
    w_.flag("merge", options.merge);
    w_.flag("one_reduction", options.one_reduction);
    w_.field("planner", std::string_view(to_text(options.planner)));
    if (options.ranks_per_host) w_.field("ranks_per_host", *options.ranks_per_host);
    w_.field("rules", std::string_view(to_text(options.rules)));
    w_.field("world_group", std::string_view(to_text(options.world_group)));
    w_.close('}');
  }

  void write_topology() {
    const Topology& topology = plan_.topology;
    w_.key("topology");
    w_.open('{', Breaks::lines);
    w_.field("copy_mb_per_s", topology.copy_mb_per_s);
    w_.list("levels", topology.levels, [&](const TopologyLevel& level) {
      w_.open('{', Breaks::one_line);
      w_.field("exchange_percent", level.exchange_percent);
      w_.field("latency_ns", level.latency_ns);
      w_.field("mb_per_s", level.mb_per_s);
      w_.field("name", level.name);
      w_.field("per_peer_ns", level.per_peer_ns);
      w_.field("ranks", level.ranks);
      w_.close('}');
    });
    if (!topology.model.empty()) w_.field("model", topology.model);
    w_.field("name", topology.name);
    w_.field("source", topology.source);
    if (!topology.tables.empty()) {
      w_.list("tables", topology.tables, [&](const MeasuredTable& table) {
        w_.open('{', Breaks::one_line);
        w_.field("level", table.level);
        w_.field("op", std::string_view(to_text(table.op)));
        w_.key("points");
        w_.open('[', Breaks::one_line);
        for (const auto& [bytes, nanoseconds] : table.points) {
          w_.item();
          w_.open('[', Breaks::one_line);
          w_.item();
          append_integer(w_.out, bytes);
          w_.item();
          append_integer(w_.out, nanoseconds);
          w_.close(']');
        }
        w_.close(']');
        w_.field("ranks", table.ranks);
        w_.close('}');
      });
    }
    w_.close('}');
  }

  void write_totals(const char* name, const Totals& totals) {
    w_.key(name);
    w_.open('{', Breaks::one_line);
    w_.field("collectives", totals.collectives);
    w_.field("lower_bound_bytes", totals.lower_bound_bytes);
    w_.field("lower_bound_ns", ns_of_ps(totals.lower_bound_ps));
    w_.field("peak_bytes", totals.peak_bytes);
    w_.field("predicted_ns", ns_of_ps(totals.predicted_ps));
    w_.field("wire_bytes", totals.wire_bytes);
    w_.close('}');
  }

  // Placements as a spec lists them; the text of the whole state where a mesh dim is split between several.
  void write_state(const char* name, const State& state, const MeshNames& mesh) {
    if (!has_whole_dims(state, mesh.shape)) {
      w_.field(name, to_text(state, mesh.shape));
      return;
    }
    w_.key(name);
    w_.open('[', Breaks::one_line);
    for (const Placement& placement : placements_of(state, mesh.shape)) {
      w_.item();
      append_json_text(w_.out, to_text(placement));
    }
    w_.close(']');
  }

  // The shard orders that are not ascending.
  void write_order(const char* name, const State& state, const MeshNames& mesh) {
    w_.key(name);
    w_.open('[', Breaks::one_line);
    if (has_whole_dims(state, mesh.shape)) {
      for (const ShardOrder& order : orders_of(state)) {
        if (std::is_sorted(order.mesh_dims.begin(), order.mesh_dims.end())) continue;
        w_.item();
        w_.open('{', Breaks::one_line);
        w_.key("mesh_dims");
        w_.open('[', Breaks::one_line);
        for (int32_t dim : order.mesh_dims) {
          w_.item();
          append_json_text(w_.out, mesh.names[static_cast<size_t>(dim)]);
        }
        w_.close(']');
        w_.field("tensor_dim", int64_t{order.tensor_dim});
        w_.close('}');
      }
    }
    w_.close(']');
  }

  void write_redistribution(const PlannedRedistribution& r) {
    const Request& request = r.request;
    MESHPLAN_CHECK(request.src_mesh < meshes_.size() && request.dst_mesh < meshes_.size(),
                   "redistribution '" + request.id + "' names a mesh of the plan's table");
    const MeshNames& src = meshes_[request.src_mesh];
    const MeshNames& dst = meshes_[request.dst_mesh];
    const bool crosses = request.src_mesh != request.dst_mesh;
    w_.open('{', Breaks::lines);
    w_.list("alternatives", r.alternatives, [&](const Alternative& alternative) {
      w_.open('{', Breaks::one_line);
      write_totals("totals", alternative.totals);
      w_.field("trace", alternative.trace);
      w_.close('}');
    });
    w_.list("audit", r.audit, [&](const AuditFinding& finding) { write_finding(finding); });
    w_.field("count", request.count);
    if (request.direction == Direction::backward) w_.field("direction", std::string_view("backward"));
    write_state("dst", request.dst, dst);
    if (crosses) w_.field("dst_mesh", plan_.meshes.meshes[request.dst_mesh].name);
    if (request.any_dst_order) {
      w_.field("dst_order", std::string_view("any"));
    } else {
      write_order("dst_order", request.dst, dst);
    }
    w_.field("id", request.id);
    if (!crosses) w_.field("mesh", plan_.meshes.meshes[request.src_mesh].name);
    w_.field("planner", std::string_view(to_text(r.planner)));
    w_.field("proven_gap_ns", ns_of_ps(r.proven_gap_ps));
    if (!(r.dst == request.dst)) w_.field("reached", to_text(r.dst, dst.shape));
    if (request.reduce_dtype) w_.field("reduce_dtype", std::string_view(to_text(*request.reduce_dtype)));
    w_.list("reductions", r.reductions, [&](const ReductionNote& note) {
      w_.open('{', Breaks::one_line);
      w_.field("collectives", note.collectives);
      w_.field("dims", note.dims);
      w_.field("nesting", note.nesting);
      w_.close('}');
    });
    w_.field("rules", std::string_view(to_text(r.rules)));
    if (!r.shortcuts.none()) w_.field("shortcuts", names_of(r.shortcuts));
    write_state("src", request.src, src);
    if (crosses) w_.field("src_mesh", plan_.meshes.meshes[request.src_mesh].name);
    write_order("src_order", request.src, src);
    w_.list("steps", r.steps, [&](const Step& step) {
      const bool on_dst = crosses && step.mesh == plan_.meshes.meshes[request.dst_mesh].name;
      write_step(step, on_dst ? dst : src);
    });
    w_.key("tensor");
    w_.open('{', Breaks::one_line);
    w_.field("dtype", std::string_view(to_text(request.tensor.dtype)));
    w_.field("shape", request.tensor.shape);
    w_.close('}');
    write_totals("totals", r.totals);
    w_.field("trace", r.trace);
    w_.field("unmerged_trace", r.unmerged_trace);
    w_.list("warnings", r.warnings, [&](const Warning& warning) { write_warning(warning); });
    w_.close('}');
  }

  void write_step(const Step& step, const MeshNames& mesh) {
    w_.open('{', Breaks::one_line);
    w_.field("dst", step.dst);
    w_.field("group", step.group);
    w_.field("logical_shape", step.logical_shape);
    w_.field("merged", step.merged);
    if (!step.mesh.empty()) w_.field("mesh", step.mesh);
    w_.key("mesh_dims");
    w_.open('[', Breaks::one_line);
    for (const Atom& atom : step.mesh_dims) {
      w_.item();
      append_json_text(w_.out, to_text(atom, mesh.names, mesh.shape));
    }
    w_.close(']');
    if (!step.moves.empty()) {
      w_.key("moves");
      w_.open('[', Breaks::one_line);
      for (const Move& move : step.moves) {
        w_.item();
        w_.open('{', Breaks::one_line);
        w_.field("dst", to_text(move.dst));
        w_.field("mesh_dim", to_text(move.atom, mesh.names, mesh.shape));
        w_.field("src", to_text(move.src));
        w_.close('}');
      }
      w_.close(']');
    }
    w_.field("op", std::string_view(to_text(step.op)));
    w_.field("peak_bytes", step.peak_bytes);
    if (step.phases != 1) w_.field("phases", step.phases);
    w_.field("predicted_ns", ns_of_ps(step.predicted_ps));
    if (step.reduce_op) {
      w_.field("reduce_op", std::string_view(to_text(*step.reduce_op)));
    } else {
      w_.none("reduce_op");
    }
    if (step.scale_divisor != 1) {
      w_.field("scale", "1/" + std::to_string(step.scale_divisor));
    } else {
      w_.none("scale");
    }
    w_.field("src", step.src);
    w_.field("state", to_text(step.state, mesh.shape));
    if (step.tensor_dim) {
      w_.field("tensor_dim", int64_t{*step.tensor_dim});
    } else {
      w_.none("tensor_dim");
    }
    if (step.whole_pieces) w_.flag("whole_pieces", true);
    w_.field("why", step.why);
    w_.field("wire_bytes", step.wire_bytes);
    w_.close('}');
  }

  void write_warning(const Warning& warning) {
    w_.open('{', Breaks::one_line);
    w_.field("code", std::string_view(warning_code(warning.kind)));
    w_.field("collective", std::string_view(to_text(warning.collective)));
    w_.field("dims", warning.dims);
    if (warning.fix_name.empty()) {
      w_.none("fix");
    } else {
      w_.key("fix");
      w_.open('{', Breaks::one_line);
      w_.field("dims", warning.dims);
      w_.field("name", warning.fix_name);
      w_.field("torch", torch_fix(warning));
      w_.close('}');
    }
    w_.field("kind", std::string_view(to_text(warning.kind)));
    w_.field("mesh", warning.mesh);
    w_.field("message", warning.message);
    w_.field("operations", warning.operations);
    w_.field("saves_collectives", warning.saves_collectives);
    w_.field("saves_ns", floor_ns_of_ps(warning.saves_ps));
    w_.close('}');
  }

  // mesh["dp", "tp"]._flatten("dp_tp")
  static std::string torch_fix(const Warning& warning) {
    std::string call = (is_identifier(warning.mesh) ? warning.mesh : std::string("mesh")) + "[";
    for (size_t i = 0; i < warning.dims.size(); ++i) {
      if (i > 0) call += ", ";
      append_json_text(call, warning.dims[i]);
    }
    call += "]._flatten(";
    append_json_text(call, warning.fix_name);
    return call + ")";
  }

  void write_finding(const AuditFinding& finding) {
    w_.open('{', Breaks::one_line);
    w_.field("better_trace", finding.better_trace);
    w_.field("better_wire_bytes", finding.better_wire_bytes);
    w_.field("code", finding.code);
    w_.field("kind", finding.kind);
    w_.field("message", finding.message);
    w_.field("step", finding.step);
    w_.field("wire_bytes", finding.wire_bytes);
    w_.close('}');
  }

  const Plan& plan_;
  Writer w_;
  std::vector<MeshNames> meshes_;
};

}  // namespace

std::string canonical_json(const Plan& plan) { return PlanWriter(plan, true).write(nullptr); }

std::string write_plan(const Plan& plan) {
  const std::string digest = "sha256:" + sha256_hex(canonical_json(plan));
  std::string text = PlanWriter(plan, false).write(&digest);
  text += '\n';
  return text;
}

}  // namespace meshplan
