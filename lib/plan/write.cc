// The text of the plan file: one pass over the plan writes either form, the compact one that the
// digest is computed from or the one with line breaks. Keys are written in ascending order; a test
// compares with the sorted content.
#include <algorithm>

#include "base/sha256.h"
#include "base/utf8.h"
#include "json/write.h"
#include "plan/bundle_json.h"
#include "plan/firsts.h"
#include "plan/plan.h"
#include "plan/read_parts.h"
#include "plan/step_mesh.h"
#include "plan/torch_fix.h"

namespace meshplan {
namespace {

template <class T>
std::optional<std::string> text_of(const std::optional<T>& value) {
  if (!value) return std::nullopt;
  return to_text(*value);
}

class PlanWriter {
 public:
  // `firsts`: which redistributions repeat which (firsts_of).
  PlanWriter(const Plan& plan, const std::vector<size_t>& firsts, Breaks root)
      : plan_(plan), firsts_(firsts), root_(root) {}

  // The whole; with `content_only` without the spec's digest and without notes.
  std::string write(const std::string* digest, bool content_only = false) {
    with_notes_ = !content_only;
    w_.reserve(estimated_bytes());
    w_.open('{', root_);
    if (!plan_.bundles.empty()) write_bundles(w_, plan_);
    if (digest != nullptr) w_.field("digest", *digest);
    w_.list("groups", Breaks::lines, plan_.groups,
            [&](const PlanGroup& group) { write_group(group); });
    const std::vector<MeshTable> universes = split_by_universe(plan_.meshes);
    if (universes.size() < 2) {
      w_.key("mesh");
      write_universe(plan_.meshes, nullptr);
    }
    write_options();
    w_.key("redistributions");
    w_.open('[', Breaks::lines);
    for (size_t i = 0; i < plan_.redistributions.size(); ++i) {
      if (firsts_[i] == i) {
        write_redistribution(plan_.redistributions[i]);
      } else {
        write_repeat(plan_.redistributions[i].request,
                     plan_.redistributions[firsts_[i]].request.id);
      }
    }
    w_.close();
    w_.field("schema", "meshplan/plan/1");
    if (!content_only) w_.field("spec_digest", plan_.spec_digest);
    w_.key("topology");
    write_topology(w_, plan_.topology, true);
    write_totals("totals", plan_.totals);
    if (universes.size() > 1) {
      w_.list("universes", Breaks::lines, universes, [&](const MeshTable& universe) {
        write_universe(universe, &universe.meshes.front().name);
      });
    }
    w_.close();
    return w_.take(root_ == Breaks::lines ? "\n" : "");
  }

 private:
  void write_group(const PlanGroup& group) {
    w_.open('{');
    w_.fields({{"count", group.count},
               {"declared", group.declared},
               {"dims", group.dims},
               {"id", group.id},
               {"layout", to_text(group.layout)}});
    if (group.universes.empty()) w_.field("mesh", group.mesh);
    w_.field("size", group.size);
    if (!group.universes.empty()) w_.field("universes", group.universes);
    w_.field("used_by", group.used_by);
    w_.close();
  }

  // The meshes of one universe, which has a name where there are several.
  void write_universe(const MeshTable& table, const std::string* name) {
    w_.open('{', Breaks::lines);
    w_.list("flattened", Breaks::lines, table.flattens, [&](const Flatten& flatten) {
      w_.open('{');
      w_.field("dims", flatten.dims);
      if (!flatten.group_options.empty()) w_.field("group_options", flatten.group_options);
      w_.fields({{"layout", to_text(flatten.layout)}, {"name", flatten.name}, {"of", flatten.of}});
      w_.close();
    });
    w_.list("meshes", Breaks::lines, table.meshes, [&](const Mesh& mesh) {
      w_.open('{');
      w_.list("dims", mesh.dims, [&](const MeshDim& dim) {
        w_.open('{');
        if (!dim.group_options.empty()) w_.field("group_options", dim.group_options);
        w_.fields({{"layout", to_text(dim.layout)}, {"name", dim.name}, {"size", dim.size}});
        w_.close();
      });
      if (!mesh.group_options.empty()) w_.field("group_options", mesh.group_options);
      w_.field("name", mesh.name);
      w_.close();
    });
    if (name != nullptr) w_.field("name", *name);
    const Universe universe = table.meshes.empty() ? Universe{} : *table.meshes.front().universe;
    if (!universe.ranks.empty()) w_.field("ranks", universe.ranks);
    w_.field("world", universe.world);
    w_.close();
  }

  void write_options() {
    const PlanOptions& options = plan_.options;
    w_.key("options");
    w_.open('{');
    if (options.planner == PlannerKind::graph) w_.field("cost_model", to_text(options.cost_model));
    w_.field("groups", to_text(options.groups));
    if (options.max_groups >= 0) w_.field("max_groups", options.max_groups);
    w_.fields({{"max_memory_bytes", options.max_memory_bytes},
               {"merge", options.merge},
               {"one_reduction", options.one_reduction},
               {"planner", to_text(options.planner)}});
    if (options.ranks_per_host) w_.field("ranks_per_host", *options.ranks_per_host);
    w_.fields({{"rules", to_text(options.rules)}, {"world_group", to_text(options.world_group)}});
    w_.close();
  }

  void write_totals(const char* name, const Totals& totals) {
    w_.key(name);
    meshplan::write_totals(w_, totals);
  }

  // Placements as a spec lists them; the text of the whole state where a mesh dim has several.
  void write_state(const char* name, const State& state, const MeshNames& mesh) {
    if (!has_whole_dims(state, mesh.shape)) {
      w_.field(name, to_text(state, mesh.shape));
      return;
    }
    w_.list(name, placements_of(state, mesh.shape),
            [&](const Placement& placement) { w_.value(to_text(placement)); });
  }

  // The shard orders that are not ascending.
  void write_order(const char* name, const State& state, const MeshNames& mesh) {
    w_.key(name);
    w_.open('[');
    if (has_whole_dims(state, mesh.shape)) {
      for (const ShardOrder& order : orders_of(state)) {
        if (std::is_sorted(order.mesh_dims.begin(), order.mesh_dims.end())) continue;
        w_.open('{');
        w_.list("mesh_dims", order.mesh_dims, [&](int32_t dim) { w_.value(mesh.names[dim]); });
        w_.field("tensor_dim", order.tensor_dim);
        w_.close();
      }
    }
    w_.close();
  }

  [[nodiscard]] size_t estimated_bytes() const {
    size_t bytes = 4096;
    for (size_t i = 0; i < firsts_.size(); ++i) bytes += firsts_[i] == i ? 1024 : 96;
    return bytes;
  }

  void write_repeat(const Request& request, const std::string& first) {
    w_.open('{');
    w_.fields({{"count", request.count}, {"id", request.id}, {"same_as", first}});
    write_notes(request);
    w_.close();
  }

  void write_redistribution(const PlannedRedistribution& r) {
    const Request& request = r.request;
    MESHPLAN_CHECK(request.src_mesh < meshes_.size() && request.dst_mesh < meshes_.size(),
                   "redistribution '" + request.id + "' names a mesh of the plan's table");
    const MeshNames& src = meshes_[request.src_mesh];
    const MeshNames& dst = meshes_[request.dst_mesh];
    const bool crosses = request.src_mesh != request.dst_mesh;
    w_.open('{', Breaks::lines);
    w_.list("alternatives", Breaks::lines, r.alternatives, [&](const Alternative& alternative) {
      w_.open('{');
      write_totals("totals", alternative.totals);
      w_.field("trace", alternative.trace);
      w_.close();
    });
    w_.list("audit", Breaks::lines, r.audit,
            [&](const AuditFinding& finding) { write_finding(finding); });
    w_.field("count", request.count);
    if (request.direction == Direction::backward) w_.field("direction", "backward");
    write_state("dst", request.dst, dst);
    if (crosses) w_.field("dst_mesh", plan_.meshes.meshes[request.dst_mesh].name);
    if (request.any_dst_order) {
      w_.field("dst_order", "any");
    } else {
      write_order("dst_order", request.dst, dst);
    }
    w_.field("id", request.id);
    if (!crosses) w_.field("mesh", plan_.meshes.meshes[request.src_mesh].name);
    w_.fields({{"planner", to_text(r.planner)}, {"proven_gap_ns", ns_of_ps(r.proven_gap_ps)}});
    if (!(r.dst == request.dst)) w_.field("reached", to_text(r.dst, dst.shape));
    if (request.reduce_dtype) w_.field("reduce_dtype", to_text(*request.reduce_dtype));
    w_.list("reductions", Breaks::lines, r.reductions, [&](const ReductionNote& note) {
      w_.object(
          {{"collectives", note.collectives}, {"dims", note.dims}, {"nesting", note.nesting}});
    });
    w_.field("rules", to_text(r.rules));
    if (!r.shortcuts.none()) w_.field("shortcuts", names_of(r.shortcuts));
    write_state("src", request.src, src);
    if (crosses) w_.field("src_mesh", plan_.meshes.meshes[request.src_mesh].name);
    write_order("src_order", request.src, src);
    w_.list("steps", Breaks::lines, r.steps, [&](const Step& step) {
      const Mesh& after = mesh_after(plan_.meshes, request, step);
      write_step(step, &after == &plan_.meshes.meshes[request.src_mesh] ? src : dst);
    });
    w_.key("tensor");
    w_.object({{"dtype", to_text(request.tensor.dtype)}, {"shape", request.tensor.shape}});
    write_totals("totals", r.totals);
    w_.fields({{"trace", r.trace}, {"unmerged_trace", r.unmerged_trace}});
    w_.list("warnings", Breaks::lines, r.warnings,
            [&](const Warning& warning) { write_warning(warning); });
    write_notes(request);
    w_.close();
  }

  // No other key of a redistribution stands behind "x-".
  void write_notes(const Request& request) {
    if (!with_notes_) return;
    for (const Note& note : request.notes) {
      w_.key(note.key);
      w_.written(note.json);
    }
  }

  void write_step(const Step& step, const MeshNames& mesh) {
    w_.open('{');
    if (step.at_once != 0) w_.field("at_once", step.at_once);
    if (step.chunks != 1) w_.field("chunks", step.chunks);
    w_.field("dst", text_of(step.dst));
    if (step.far_64ths != 0) w_.field("far_64ths", step.far_64ths);
    if (step.fetched_by_all) w_.field("fetched_by_all", true);
    w_.field("group", step.group);
    if (step.laps != 1) w_.field("laps", step.laps);
    w_.fields({{"logical_shape", step.logical_shape}, {"merged", step.merged}});
    if (!step.mesh.empty()) w_.field("mesh", step.mesh);
    w_.list("mesh_dims", step.mesh_dims,
            [&](const SubAxis& sub_axis) { w_.value(to_text(sub_axis, mesh.names, mesh.shape)); });
    if (!step.moves.empty()) {
      w_.list("moves", step.moves, [&](const Move& move) {
        w_.object({{"dst", to_text(move.dst)},
                   {"mesh_dim", to_text(move.sub_axis, mesh.names, mesh.shape)},
                   {"src", to_text(move.src)}});
      });
    }
    w_.fields({{"op", to_text(step.op)}, {"peak_bytes", step.peak_bytes}});
    if (step.phases != 1) w_.field("phases", step.phases);
    w_.fields(
        {{"predicted_ns", ns_of_ps(step.predicted_ps)}, {"reduce_op", text_of(step.reduce_op)}});
    if (step.scale_divisor != 1) {
      w_.field("scale", "1/" + std::to_string(step.scale_divisor));
    } else {
      w_.field("scale", std::nullopt);
    }
    w_.fields({{"src", text_of(step.src)},
               {"state", to_text(step.state, mesh.shape)},
               {"tensor_dim", step.tensor_dim}});
    if (step.whole_pieces) w_.field("whole_pieces", true);
    w_.fields({{"why", step.why}, {"wire_bytes", step.wire_bytes}});
    w_.close();
  }

  void write_warning(const Warning& warning) {
    w_.open('{');
    w_.fields({{"code", warning_code(warning.kind)},
               {"collective", to_text(warning.collective)},
               {"dims", warning.dims}});
    if (warning.fix_name.empty()) {
      w_.field("fix", std::nullopt);
    } else {
      w_.key("fix");
      w_.object(
          {{"dims", warning.dims}, {"name", warning.fix_name}, {"torch", torch_fix(warning)}});
    }
    w_.fields({{"kind", to_text(warning.kind)},
               {"mesh", warning.mesh},
               {"message", warning.message},
               {"operations", warning.operations},
               {"saves_collectives", warning.saves_collectives},
               {"saves_ns", warning.saves_ns}});
    w_.close();
  }

  void write_finding(const AuditFinding& finding) {
    w_.object({{"better_predicted_ns", ns_of_ps(finding.better_predicted_ps)},
               {"better_trace", finding.better_trace},
               {"better_wire_bytes", finding.better_wire_bytes},
               {"code", finding.code},
               {"kind", finding.kind},
               {"message", finding.message},
               {"predicted_ns", ns_of_ps(finding.predicted_ps)},
               {"step", finding.step},
               {"wire_bytes", finding.wire_bytes}});
  }

  const Plan& plan_;
  const std::vector<size_t>& firsts_;
  Breaks root_;
  bool with_notes_ = true;
  JsonWriter w_{2, Breaks::one_line};
  std::vector<MeshNames> meshes_ = names_of(plan_.meshes);
};

}  // namespace

namespace {

// One number of every level.
void write_levels(JsonWriter& w, const char* name, const Protocol& protocol,
                  int64_t ProtocolLevel::*number) {
  std::vector<int64_t> numbers;
  for (const ProtocolLevel& level : protocol.levels) numbers.push_back(level.*number);
  w.field(name, numbers);
}

void write_protocol(JsonWriter& w, const Protocol& protocol) {
  w.open('{');
  w.field("base_ns", protocol.base_ns);
  if (protocol.near_bytes > 0) write_levels(w, "far_share", protocol, &ProtocolLevel::far_share);
  write_levels(w, "hop_ns", protocol, &ProtocolLevel::hop_ns);
  if (protocol.most_bytes > 0) w.field("most_bytes", protocol.most_bytes);
  w.field("name", protocol.name);
  if (protocol.near_bytes > 0) w.field("near_bytes", protocol.near_bytes);
  if (protocol.ops != 0) {
    std::vector<std::string> ops;
    for (size_t i = 0; i < op_table.size(); ++i) {
      if ((protocol.ops & bit_of(static_cast<Op>(i))) != 0) ops.emplace_back(op_table[i].name);
    }
    w.field("ops", ops);
  }
  write_levels(w, "share", protocol, &ProtocolLevel::share);
  if (protocol.switch_ns > 0) w.field("switch_ns", protocol.switch_ns);
  if (protocol.trees || protocol.switch_ns > 0) {
    write_levels(w, "tree_ns", protocol, &ProtocolLevel::tree_ns);
    write_levels(w, "tree_share", protocol, &ProtocolLevel::tree_share);
  }
  if (protocol.trees) w.field("trees", true);
  w.close();
}

}  // namespace

void write_topology(JsonWriter& w, const Topology& t, bool with_empty) {
  w.open('{', Breaks::lines);
  if (with_empty || t.copy_mb_per_s > 0) w.field("copy_mb_per_s", t.copy_mb_per_s);
  w.list("levels", Breaks::lines, t.levels, [&](const TopologyLevel& level) {
    w.open('{');
    w.field("exchange_percent", level.exchange_percent);
    if (level.near_bytes > 0) w.field("far_mb_per_s", level.far_mb_per_s);
    w.fields(
        {{"latency_ns", level.latency_ns}, {"mb_per_s", level.mb_per_s}, {"name", level.name}});
    if (level.near_bytes > 0) w.field("near_bytes", level.near_bytes);
    if (level.peer_bytes > 0) w.field("peer_bytes", level.peer_bytes);
    if (level.peer_mb_per_s > 0) w.field("peer_mb_per_s", level.peer_mb_per_s);
    w.fields({{"per_peer_ns", level.per_peer_ns}, {"ranks", level.ranks}});
    if (level.switch_mb_per_s > 0) w.field("switch_mb_per_s", level.switch_mb_per_s);
    w.close();
  });
  if (!t.protocols.empty()) w.field("model", "protocols");
  if (with_empty || !t.name.empty()) w.field("name", t.name);
  if (!t.protocols.empty()) {
    w.list("protocols", Breaks::lines, t.protocols,
           [&](const Protocol& protocol) { write_protocol(w, protocol); });
  }
  if (with_empty || !t.source.empty()) w.field("source", t.source);
  if (!t.tables.empty()) {
    w.list("tables", Breaks::lines, t.tables, [&](const MeasuredTable& table) {
      w.open('{');
      w.fields({{"level", table.level}, {"op", to_text(table.op)}});
      w.list("points", table.points, [&](const auto& point) {
        w.value(std::vector<int64_t>{point.first, point.second});
      });
      w.field("ranks", table.ranks);
      w.close();
    });
  }
  w.close();
}

void write_totals(JsonWriter& writer, const Totals& totals) {
  writer.object({{"collectives", totals.collectives},
                 {"lower_bound_bytes", totals.lower_bound_bytes},
                 {"lower_bound_ns", ns_of_ps(totals.lower_bound_ps)},
                 {"peak_bytes", totals.peak_bytes},
                 {"predicted_ns", ns_of_ps(totals.predicted_ps)},
                 {"wire_bytes", totals.wire_bytes}});
}

std::string canonical_json(const Plan& plan) {
  return PlanWriter(plan, firsts_of(plan.redistributions), Breaks::compact).write(nullptr);
}

std::string canonical_content(const Plan& plan) {
  return PlanWriter(plan, firsts_of(plan.redistributions), Breaks::compact).write(nullptr, true);
}

std::string write_plan(const Plan& plan) {
  const std::vector<size_t> firsts = firsts_of(plan.redistributions);
  const std::string digest =
      "sha256:" + sha256_hex(PlanWriter(plan, firsts, Breaks::compact).write(nullptr));
  return PlanWriter(plan, firsts, Breaks::lines).write(&digest);
}

}  // namespace meshplan
