#include <algorithm>
#include <limits>

#include "base/text.h"
#include "plan/read_parts.h"
#include "plan/torch_fix.h"

namespace meshplan {
namespace {

constexpr size_t max_tensor_rank = 64;

size_t read_mesh_name(const Value& value, const MeshTable& meshes) {
  const auto index = find_mesh(meshes, value.text());
  if (!index) value.fail("there is no mesh \"" + value.text() + "\" in this plan");
  return *index;
}

TensorMeta read_tensor(const Value& value) {
  TensorMeta tensor;
  tensor.dtype = named(value.at("dtype"), parse_dtype, "dtype");
  tensor.shape = value.at("shape").integers(0);
  if (tensor.shape.size() > max_tensor_rank)
    value.at("shape").fail("more than " + std::to_string(max_tensor_rank) + " tensor dims");
  // An empty dim does not make the others harmless: products of parts of the shape are used too.
  int64_t bytes = element_bytes(tensor.dtype);
  for (int64_t extent : tensor.shape) {
    const auto more = checked_mul(bytes, std::max<int64_t>(extent, 1));
    if (!more) value.at("shape").fail("the bytes of the tensor do not fit 64 bits");
    bytes = *more;
  }
  return tensor;
}

State read_state_text(const Value& value, const MeshNames& mesh, size_t tensor_rank) {
  return value.must(parse_state(value.text(), mesh.shape, tensor_rank));
}

std::vector<ShardOrder> read_orders(const Value& value, const MeshNames& mesh) {
  std::vector<ShardOrder> orders;
  value.each([&](const Value& entry) {
    ShardOrder order;
    order.tensor_dim = static_cast<int32_t>(
        entry.at("tensor_dim").integer(0, std::numeric_limits<int32_t>::max()));
    entry.at("mesh_dims").each([&](const Value& name) {
      const auto at = std::find(mesh.names.begin(), mesh.names.end(), name.text());
      if (at == mesh.names.end()) name.fail("unknown mesh dim \"" + name.text() + "\"");
      order.mesh_dims.push_back(static_cast<int32_t>(at - mesh.names.begin()));
    });
    orders.push_back(std::move(order));
  });
  return orders;
}

State read_state(const Value& value, const std::vector<ShardOrder>& orders, const MeshNames& mesh,
                 size_t tensor_rank) {
  if (value.is_text()) return read_state_text(value, mesh, tensor_rank);
  std::vector<Placement> placements;
  value.each(
      [&](const Value& entry) { placements.push_back(entry.must(parse_placement(entry.text()))); });
  if (placements.size() != mesh.shape.size()) {
    value.fail(std::to_string(placements.size()) + " placements for " +
               std::to_string(mesh.shape.size()) + " mesh dims");
  }
  return value.must(make_state(placements, mesh.shape, tensor_rank, orders));
}

std::optional<Placement> read_placement(const Value& value, size_t tensor_rank) {
  if (value.is_null()) return std::nullopt;
  const Placement placement = value.must(parse_placement(value.text()));
  if (placement.kind == Placement::Kind::strided_shard) value.fail("expected R, S(dim) or P(op)");
  if (is_shard(placement) && static_cast<size_t>(placement.tensor_dim) >= tensor_rank) {
    value.fail(value.text() + " of a tensor of " + std::to_string(tensor_rank) + " dims");
  }
  return placement;
}

// How an exchange goes.
void read_way(const Value& value, Step& step) {
  if (value.has("phases")) step.phases = value.at("phases").integer(1, 2);
  if (value.has("chunks")) step.chunks = value.at("chunks").integer(1, most_chunks);
  if (value.has("fetched_by_all")) step.fetched_by_all = value.at("fetched_by_all").flag();
  if (value.has("laps")) step.laps = value.at("laps").integer(2, most_laps);
  if (value.has("at_once")) step.at_once = value.at("at_once").integer(1, most_at_once);
  if (value.has("far_64ths")) step.far_64ths = value.at("far_64ths").integer(1, most_far_64ths);
  if (value.has("whole_pieces")) step.whole_pieces = value.at("whole_pieces").flag();
}

Step read_step(const Value& value, const Request& request, const MeshTable& meshes,
               const std::vector<MeshNames>& names) {
  Step step;
  size_t on = request.src_mesh;
  if (value.has("mesh")) {
    const Value mesh = value.at("mesh");
    step.mesh = mesh.text();
    on = read_mesh_name(mesh, meshes);
    if (on != request.src_mesh && on != request.dst_mesh)
      mesh.fail("\"" + step.mesh + "\" is not a mesh of this redistribution");
  }
  const MeshNames& mesh = names[on];
  const size_t rank = request.tensor.shape.size();
  const auto read_sub_axis = [&](const Value& entry) {
    return entry.must(parse_sub_axis(entry.text(), mesh.names, mesh.shape));
  };
  step.op = named(value.at("op"), parse_op, "operation");
  value.at("mesh_dims").each([&](const Value& entry) {
    step.mesh_dims.push_back(read_sub_axis(entry));
  });
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
      step.moves.push_back({read_sub_axis(entry.at("mesh_dim")), *src, *dst});
    });
  }
  if (const Value op = value.at("reduce_op"); !op.is_null())
    step.reduce_op = named(op, parse_reduce_op, "reduce op");
  if (const Value scale = value.at("scale"); !scale.is_null()) {
    const std::string& text = scale.text();
    const auto divisor =
        text.substr(0, 2) == "1/" ? parse_int(std::string_view(text).substr(2)) : std::nullopt;
    if (!divisor || *divisor < 2) scale.fail("expected a scale such as \"1/8\", or null");
    step.scale_divisor = *divisor;
  }
  step.state = read_state_text(value.at("state"), mesh, rank);
  step.logical_shape = value.at("logical_shape").integers(0);
  step.wire_bytes = value.at("wire_bytes").integer(0);
  step.peak_bytes = value.at("peak_bytes").integer(0);
  step.predicted_ps = picoseconds(value.at("predicted_ns"));
  step.merged = value.at("merged").integer(1);
  read_way(value, step);
  step.why = value.at("why").text();
  return step;
}

// A fix says again, for whoever applies it, what its warning says.
void read_fix(const Value& fix, Warning& warning) {
  const Value name = fix.at("name");
  warning.fix_name = name.text();
  if (warning.fix_name.empty()) name.fail("expected the name of a flattened dim");
  const Value dims = fix.at("dims");
  if (dims.texts() != warning.dims) dims.fail("expected the dims of the warning");
  const Value torch = fix.at("torch");
  if (torch.text() != torch_fix(warning))
    torch.fail("expected the call that declares it: " + torch_fix(warning));
}

Warning read_warning(const Value& value) {
  Warning warning;
  const Value kind = value.at("kind");
  std::optional<WarningKind> found;
  for (WarningKind each :
       {WarningKind::missing_flatten, WarningKind::uneven_shape, WarningKind::non_ascending}) {
    if (kind.text() == to_text(each)) found = each;
  }
  warning.kind = kind.must(found, "kind of warning");
  if (const Value code = value.at("code"); code.text() != warning_code(warning.kind)) {
    code.fail("\"" + code.text() + "\" beside the kind \"" + to_text(warning.kind) +
              "\", whose code is " + warning_code(warning.kind));
  }
  warning.dims = value.at("dims").texts();
  warning.collective = named(value.at("collective"), parse_op, "operation");
  warning.operations = value.at("operations").integer(0);
  warning.saves_ns = value.at("saves_ns").integer(-ns_of_ps(INT64_MAX), ns_of_ps(INT64_MAX));
  warning.saves_collectives =
      value.at("saves_collectives").integer(std::numeric_limits<int64_t>::min());
  warning.mesh = value.at("mesh").text();
  warning.message = value.at("message").text();
  if (const Value fix = value.at("fix"); !fix.is_null()) read_fix(fix, warning);
  return warning;
}

AuditFinding read_finding(const Value& value) {
  AuditFinding finding;
  finding.code = value.at("code").text();
  finding.kind = value.at("kind").text();
  finding.step = value.at("step").integer(-1);
  finding.message = value.at("message").text();
  finding.wire_bytes = value.at("wire_bytes").integer(0);
  finding.better_wire_bytes = value.at("better_wire_bytes").integer(0);
  finding.better_trace = value.at("better_trace").text();
  // Older plans have no times here.
  if (value.has("predicted_ns")) finding.predicted_ps = picoseconds(value.at("predicted_ns"));
  if (value.has("better_predicted_ns"))
    finding.better_predicted_ps = picoseconds(value.at("better_predicted_ns"));
  return finding;
}

// Data leaves the source's mesh once, by an exchange, and is on the target's from then on: who
// reads a step knows its mesh dims by that.
void check_crossing(const Value& steps, const PlannedRedistribution& r, const MeshTable& meshes) {
  size_t on = r.request.src_mesh;
  size_t number = 0;
  steps.each([&](const Value& value) {
    const Step& step = r.steps[number++];
    const size_t next = step.mesh.empty() ? r.request.src_mesh : *find_mesh(meshes, step.mesh);
    if (next == on) return;
    const std::string way = std::string(to_text(step.op)) + " from mesh \"" +
                            meshes.meshes[on].name + "\" to \"" + meshes.meshes[next].name + "\"";
    if (on != r.request.src_mesh) value.fail(way + ": data that has crossed does not go back");
    if (step.op != Op::exchange) value.fail(way + ": only an exchange crosses meshes");
    on = next;
  });
}

}  // namespace

std::vector<Note> read_notes(const Value& value) {
  std::vector<Note> notes;
  value.each_member([&](std::string_view key, const Value& member) {
    if (key.substr(0, 2) == "x-") notes.push_back({std::string(key), member.canonical()});
  });
  std::sort(notes.begin(), notes.end(), [](const Note& a, const Note& b) { return a.key < b.key; });
  return notes;
}

PlannedRedistribution read_redistribution(const Value& value, const MeshTable& meshes,
                                          const std::vector<MeshNames>& names) {
  PlannedRedistribution r;
  Request& request = r.request;
  request.id = value.at("id").text();
  request.src_mesh = read_mesh_name(value.at(value.has("mesh") ? "mesh" : "src_mesh"), meshes);
  request.dst_mesh = read_mesh_name(value.at(value.has("mesh") ? "mesh" : "dst_mesh"), meshes);
  const MeshNames& src = names[request.src_mesh];
  const MeshNames& dst = names[request.dst_mesh];
  request.tensor = read_tensor(value.at("tensor"));
  const size_t rank = request.tensor.shape.size();
  const Value dst_order = value.at("dst_order");
  request.any_dst_order = dst_order.is_text();
  if (request.any_dst_order && dst_order.text() != "any")
    dst_order.fail("expected a list of orders or \"any\"");
  request.src = read_state(value.at("src"), read_orders(value.at("src_order"), src), src, rank);
  request.dst = read_state(
      value.at("dst"),
      request.any_dst_order ? std::vector<ShardOrder>() : read_orders(dst_order, dst), dst, rank);
  request.count = value.at("count").integer(1);
  request.notes = read_notes(value);
  if (value.has("direction")) {
    const Value direction = value.at("direction");
    if (direction.text() != "backward" && direction.text() != "forward")
      direction.fail("expected forward or backward");
    request.direction = direction.text() == "backward" ? Direction::backward : Direction::forward;
  }
  if (value.has("reduce_dtype"))
    request.reduce_dtype = named(value.at("reduce_dtype"), parse_dtype, "dtype");
  r.planner = named(value.at("planner"), parse_planner, "planner");
  r.rules = named(value.at("rules"), parse_rules, "set of rules");
  r.dst = value.has("reached") ? read_state_text(value.at("reached"), dst, rank) : request.dst;
  r.trace = value.at("trace").text();
  r.unmerged_trace = value.at("unmerged_trace").text();
  r.totals = read_totals(value.at("totals"));
  r.proven_gap_ps = picoseconds(value.at("proven_gap_ns"));
  if (value.has("shortcuts")) {
    value.at("shortcuts").each([&](const Value& name) {
      r.shortcuts.add(named(name, parse_shortcut, "shortcut"));
    });
  }
  value.at("steps").each(
      [&](const Value& step) { r.steps.push_back(read_step(step, request, meshes, names)); });
  check_crossing(value.at("steps"), r, meshes);
  value.at("reductions").each([&](const Value& note) {
    r.reductions.push_back(
        {note.at("dims").texts(), note.at("collectives").integer(0), note.at("nesting").text()});
  });
  value.at("warnings").each([&](const Value& warning) {
    r.warnings.push_back(read_warning(warning));
  });
  value.at("audit").each([&](const Value& finding) { r.audit.push_back(read_finding(finding)); });
  value.at("alternatives").each([&](const Value& other) {
    r.alternatives.push_back({other.at("trace").text(), read_totals(other.at("totals"))});
  });
  return r;
}

}  // namespace meshplan
