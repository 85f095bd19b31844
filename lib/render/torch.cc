#include "render/torch.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "base/int_math.h"
#include "base/text.h"
#include "base/utf8.h"
#include "plan/notes.h"
#include "render/plan_view.h"

namespace meshplan {
namespace {

struct Line {
  std::string code;
  std::string comment;
};

// Names that a function of ours may not have: Python's keywords, and what the file itself uses.
bool is_reserved(const std::string& name) {
  static constexpr std::string_view reserved =
      " False None True and as assert async await break class continue def del elif else except "
      "finally for from global if import in is lambda nonlocal not or pass raise return try while "
      "with yield DTensor NotImplementedError Partial REDISTRIBUTIONS Replicate Shard _NormPartial "
      "_StridedShard declare_flattened torch ";
  return reserved.find(" " + name + " ") != std::string_view::npos;
}

// A Python identifier made of an id; distinct ids keep distinct names.
std::string function_name(const std::string& id, std::set<std::string>& taken) {
  std::string base;
  for (const char c : id) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    base += plain ? c : '_';
  }
  if (base.empty() || (base.front() >= '0' && base.front() <= '9') || is_reserved(base))
    base = "r_" + base;
  std::string name = base;
  for (int64_t n = 2; !taken.insert(name).second; ++n) name = base + "_" + std::to_string(n);
  return name;
}

// A Python string literal; ids may hold anything.
std::string literal(const std::string& text) {
  static constexpr char hex[] = "0123456789abcdef";
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    const size_t length = std::max<size_t>(1, utf8_length(text, at));
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text[at];
    } else if (is_control(text, at, length)) {
      // At most three bytes: no control lies beyond the basic plane.
      unsigned code = byte;
      if (length == 2) code = (byte & 31U) << 6 | (static_cast<unsigned char>(text[at + 1]) & 63U);
      if (length == 3)
        code = (byte & 15U) << 12 | (static_cast<unsigned char>(text[at + 1]) & 63U) << 6 |
               (static_cast<unsigned char>(text[at + 2]) & 63U);
      out += code < 0x100 ? "\\x" : "\\u";
      for (int shift = code < 0x100 ? 4 : 12; shift >= 0; shift -= 4)
        out += hex[code >> shift & 15];
    } else {
      out.append(text, at, length);
    }
    at += length;
  }
  return out + '"';
}

// The mesh sizes that come before mesh dim `dim` in the order and stand after it in the mesh:
// PyTorch's split factor, which tells it the order. 1 for an ascending order.
int64_t split_factor(const std::vector<SubAxis>& order, int32_t dim) {
  int64_t factor = 1;
  for (const SubAxis& sub_axis : order) {
    if (sub_axis.mesh_dim == dim) break;
    if (sub_axis.mesh_dim > dim) factor *= sub_axis.size;  // divides the size of the mesh
  }
  return factor;
}

std::string placement_code(const State& state, const Placement& placement, int32_t dim) {
  if (is_replicate(placement)) return "Replicate()";
  if (is_partial(placement)) return std::string("Partial(\"") + to_text(placement.op) + "\")";
  const int64_t factor = split_factor(state.shards[placement.tensor_dim], dim);
  const std::string tensor_dim = std::to_string(placement.tensor_dim);
  if (factor == 1) return "Shard(" + tensor_dim + ")";
  return "_StridedShard(" + tensor_dim + ", split_factor=" + std::to_string(factor) + ")";
}

// `_NormPartial(2.0)` of the note of that text; nullopt where it is no norm's.
std::optional<std::string> norm_code(const std::string& name) {
  const std::string begin = "_NormPartial(";
  if (name.rfind(begin, 0) != 0 || name.back() != ')') return std::nullopt;
  const std::string power = name.substr(begin.size(), name.size() - begin.size() - 1);
  if (power == "inf" || power == "-inf") return begin + "float(\"" + power + "\"))";
  if (power.empty() || power.find_first_not_of("0123456789.") != std::string::npos)
    return std::nullopt;
  return name;
}

// By mesh dim the code of a partial that the program calls by another name (a norm's, a mask's), ""
// for plain ones: the source's own stays the one that x has, a norm's is made. nullopt where
// nothing makes it: operators alone make the partials of masks.
std::vector<std::optional<std::string>> own_partials(const PlannedRedistribution& planned,
                                                     std::span<const int64_t> shape) {
  const std::vector<Placement> source = placements_of(planned.request.src, shape);
  std::vector<std::optional<std::string>> own(shape.size(), "");
  const std::vector<std::string> names = partial_names(planned.request);
  for (size_t i = 0; i < std::min(names.size(), own.size()); ++i) {
    if (names[i].empty()) continue;
    own[i] =
        is_partial(source[i]) ? "x.placements[" + std::to_string(i) + "]" : norm_code(names[i]);
  }
  return own;
}

std::string state_code(const State& state, std::span<const int64_t> shape,
                       const std::vector<std::optional<std::string>>& own) {
  const std::vector<Placement> placements = placements_of(state, shape);
  std::vector<std::string> parts;
  for (size_t i = 0; i < placements.size(); ++i) {
    const std::string named = is_partial(placements[i]) ? own[i].value_or("") : "";
    parts.push_back(named.empty() ? placement_code(state, placements[i], static_cast<int32_t>(i))
                                  : named);
  }
  return "[" + join(parts, ", ") + "]";
}

std::string torch_dtype(DType dtype) {
  const std::string text = to_text(dtype);
  return "torch." + (text == "float8_e4m3" ? "float8_e4m3fn" : text);
}

std::string groups_text(const Step& step, const Mesh& mesh) {
  const std::vector<std::string> names = dim_names(mesh);
  const std::vector<int64_t> shape = mesh_shape(mesh);
  std::vector<std::string> parts;
  for (const SubAxis& sub_axis : step.mesh_dims) parts.push_back(to_text(sub_axis, names, shape));
  return join(parts, ", ");
}

// A step on several mesh dims taken one mesh dim at a time: shards leave from the end of their
// order, then join at the end of theirs, and what is only reduced is reduced last. Empty where the
// step is no such thing (all_to_all, exchange).
std::vector<Step> one_by_one(const State& before, const Step& step) {
  std::vector<Step> parts;
  if (step.op == Op::all_to_all || step.op == Op::exchange || step.op == Op::to_partial)
    return parts;
  State at = before;
  const auto add = [&](Op op, const SubAxis& sub_axis) {
    Step part;
    part.op = op;
    part.mesh_dims = {sub_axis};
    part.reduce_op = step.reduce_op;
    part.state = at;
    parts.push_back(std::move(part));
  };
  const auto take_partial = [&](const SubAxis& sub_axis) {
    return std::erase_if(at.partial, [&](const PendingSubAxis& pending) {
             return pending.sub_axis == sub_axis;
           }) > 0;
  };
  for (size_t d = 0; d < at.shards.size(); ++d) {
    const std::vector<SubAxis>& target = step.state.shards[d];
    while (at.shards[d].size() > target.size()) {
      const SubAxis sub_axis = at.shards[d].back();
      at.shards[d].pop_back();
      add(Op::all_gather, sub_axis);
    }
    if (!std::equal(at.shards[d].begin(), at.shards[d].end(), target.begin())) return {};
  }
  for (size_t d = 0; d < at.shards.size(); ++d) {
    while (at.shards[d].size() < step.state.shards[d].size()) {
      const SubAxis sub_axis = step.state.shards[d][at.shards[d].size()];
      const bool reduced = take_partial(sub_axis);
      at.shards[d].push_back(sub_axis);
      add(reduced ? Op::reduce_scatter : Op::slice, sub_axis);
    }
  }
  const std::vector<PendingSubAxis> pending = at.partial;
  for (const PendingSubAxis& left : pending) {
    if (std::find(step.state.partial.begin(), step.state.partial.end(), left) !=
        step.state.partial.end())
      continue;
    take_partial(left.sub_axis);
    add(Op::all_reduce, left.sub_axis);
  }
  return at == step.state ? parts : std::vector<Step>{};
}

// The body of one function, line by line.
class Body {
 public:
  Body(const Plan& plan, const PlannedRedistribution& planned, const Mesh& mesh)
      : plan_(plan),
        planned_(planned),
        mesh_(mesh),
        shape_(mesh_shape(mesh)),
        at_(planned.request.src),
        own_(own_partials(planned, shape_)) {}

  std::vector<Line> lines() && {
    State before = planned_.request.src;
    for (const Step& step : planned_.steps) {
      add_step(before, step);
      before = step.state;
    }
    // Equal boxes under other names, and size-1 mesh dims.
    if (at_ != planned_.dst && !without_call_)
      call(planned_.dst, false, "changes placements only; no data moves");
    return std::move(lines_);
  }

 private:
  [[nodiscard]] std::string obstacle(const Step& step) const {
    if (makes_unknown(step)) return "no PyTorch call makes the partial of a mask";
    return torch_obstacle(plan_.meshes, mesh_, planned_.request.tensor, at_, step);
  }

  // Whether the step leaves a partial that has a name and no code.
  [[nodiscard]] bool makes_unknown(const Step& step) const {
    if (!has_whole_dims(step.state, shape_)) return false;
    const std::vector<Placement> to = placements_of(step.state, shape_);
    for (size_t i = 0; i < to.size(); ++i) {
      if (is_partial(to[i]) && !own_[i].has_value()) return true;
    }
    return false;
  }

  [[nodiscard]] std::string name_of(const Step& step) const {
    return std::string(to_text(step.op)) +
           (is_local(step.op) ? "" : " on " + groups_text(step, mesh_));
  }

  void call(const State& state, bool reduces, std::string comment) {
    const bool casts = reduces && planned_.request.reduce_dtype.has_value();
    if (casts)
      lines_.push_back({"x = x.to(" + torch_dtype(*planned_.request.reduce_dtype) + ")", ""});
    lines_.push_back(
        {"x = x.redistribute(mesh, " + state_code(state, shape_, own_) + ")", std::move(comment)});
    if (casts)
      lines_.push_back({"x = x.to(" + torch_dtype(planned_.request.tensor.dtype) + ")", ""});
    at_ = state;
  }

  // redistribute() makes no replica partial: the first rank of each mesh dim keeps the value and
  // the others hold the identity; where the value reduced with itself is itself, all keep it.
  void make_partial(const Step& step) {
    const std::vector<Placement> from = placements_of(at_, shape_);
    const std::vector<Placement> to = placements_of(step.state, shape_);
    std::string keeps;
    std::string identity;
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] == to[i] || (to[i].op != ReduceOp::sum && to[i].op != ReduceOp::product))
        continue;
      keeps += (keeps.empty() ? "" : " and ") + std::string("mesh.get_local_rank(") +
               std::to_string(i) + ") == 0";
      identity = to[i].op == ReduceOp::sum ? "torch.zeros_like" : "torch.ones_like";
    }
    const std::string local =
        keeps.empty() ? "x.to_local()"
                      : "x.to_local() if " + keeps + " else " + identity + "(x.to_local())";
    lines_.push_back({"x = DTensor.from_local(" + local + ", mesh, " +
                          state_code(step.state, shape_, own_) +
                          ", run_check=False, shape=x.shape, stride=x.stride())",
                      name_of(step)});
    at_ = step.state;
  }

  void add_step(const State& before, const Step& step) {
    if (step.op == Op::to_partial && at_ == before && !makes_unknown(step) &&
        only_replicas_change(before, step.state)) {
      make_partial(step);
      return;
    }
    const std::string reason =
        at_ == before ? obstacle(step) : "the step before has no PyTorch call";
    if (reason.empty()) {
      call(step.state, step.reduce_op.has_value(), name_of(step));
      return;
    }
    lines_.push_back({"", name_of(step) + " to " + to_text(step.state, shape_) + ": " + reason});
    if (makes_unknown(step)) {
      without_call_ = true;
      return;
    }
    if (at_ == before && add_parts(before, step)) return;
    if (has_whole_dims(step.state, shape_))
      call(step.state, step.reduce_op.has_value(), "PyTorch plans this part itself");
  }

  [[nodiscard]] bool only_replicas_change(const State& before, const State& after) const {
    if (!has_whole_dims(before, shape_) || !has_whole_dims(after, shape_)) return false;
    const std::vector<Placement> from = placements_of(before, shape_);
    const std::vector<Placement> to = placements_of(after, shape_);
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] != to[i] && !is_replicate(from[i])) return false;
    }
    return true;
  }

  // One call a mesh dim, where each of them runs as it should.
  bool add_parts(const State& before, const Step& step) {
    const std::vector<Step> parts = one_by_one(before, step);
    State at = before;
    for (const Step& part : parts) {
      if (!torch_obstacle(plan_.meshes, mesh_, planned_.request.tensor, at, part).empty())
        return false;
      at = part.state;
    }
    for (const Step& part : parts) call(part.state, row_of(part.op).reduces, name_of(part));
    return !parts.empty();
  }

  const Plan& plan_;
  const PlannedRedistribution& planned_;
  const Mesh& mesh_;
  std::vector<int64_t> shape_;
  State at_;  // where the calls so far have taken the tensor
  std::vector<std::optional<std::string>> own_;
  bool without_call_ = false;  // of a step that makes what no call makes
  std::vector<Line> lines_;
};

void append_function(std::string& out, const Plan& plan, const PlannedRedistribution& planned,
                     const std::string& name) {
  const Request& request = planned.request;
  const Mesh& mesh = plan.meshes.meshes[request.src_mesh];
  const std::vector<int64_t> shape = mesh_shape(mesh);
  out += "\n\ndef " + name + "(x, mesh):\n";
  out += "    # " + one_line(request.id) + ", on " + one_line(to_text(mesh)) + ": " +
         one_line(planned.trace) + ", " + counted(request.count, "time") + "\n";
  out += "    # " + counted(planned.totals.collectives, "collective") + ", " +
         human_bytes(planned.totals.wire_bytes) + " a rank, " +
         human_ns(ns_of_ps(planned.totals.predicted_ps)) + "\n";
  if (const std::string notes = notes_text(plan, planned); !notes.empty())
    out += "    # asked for by " + one_line(notes) + "\n";
  if (request.direction == Direction::backward) {
    out +=
        "    # of a gradient: call it where the gradient is computed (Tensor.register_hook, or the backward of a torch.autograd.Function)\n";
  }
  if (request.src_mesh != request.dst_mesh) {
    out +=
        "    # from one mesh to another: PyTorch has no call for this; meshplan.follow(PLAN) makes "
        "it, and meshplan.reshard moves tensors by name\n";
    out += "    raise NotImplementedError(" + literal(request.id + ": between meshes") + ")\n";
    return;
  }
  const std::vector<Line> lines = Body(plan, planned, mesh).lines();
  if (planned.steps.size() == 1 && lines.size() == 1 &&
      lines.front().code.rfind("x = x.redistribute(mesh, ", 0) == 0) {
    out += "    # one call, as the program has it already\n";
  }
  for (const Line& line : lines) {
    out += "    " + line.code + (line.code.empty() || line.comment.empty() ? "" : "  ");
    if (!line.comment.empty()) out += "# " + one_line(line.comment);
    out += "\n";
  }
  out += "    return x\n";
}

struct FlattenAdvice {
  std::string mesh;
  std::vector<std::string> dims;
  std::string name;
  int64_t saves_ns = 0;
  int64_t redistributions = 0;
  bool needed = false;  // the plan runs on it (groups: any)
};

std::vector<FlattenAdvice> advice_of(const Plan& plan) {
  std::vector<FlattenAdvice> advice;
  const auto entry = [&](const std::string& mesh,
                         const std::vector<std::string>& dims) -> FlattenAdvice& {
    const auto known = std::find_if(advice.begin(), advice.end(), [&](const auto& a) {
      return a.mesh == mesh && a.dims == dims;
    });
    if (known != advice.end()) return *known;
    advice.push_back({mesh, dims, join(dims, "_"), 0, 0, false});
    return advice.back();
  };
  for (const PlanGroup& group : plan.groups) {
    if (!group.declared && group.used_by > 0 && group.dims.size() > 1)
      entry(group.mesh, group.dims).needed = true;
  }
  for (const PlannedRedistribution& planned : plan.redistributions) {
    for (const Warning& warning : planned.warnings) {
      if (warning.kind != WarningKind::missing_flatten || warning.fix_name.empty()) continue;
      FlattenAdvice& known = entry(warning.mesh, warning.dims);
      known.name = warning.fix_name;
      add_weighted(known.saves_ns, warning.saves_ns, planned.request.count);
      known.redistributions = saturating_add(known.redistributions, planned.request.count);
    }
  }
  return advice;
}

// The call that declares it: on `mesh`, or on its entry of `meshes` where the plan has several.
std::string flatten_code(const FlattenAdvice& advice, bool several) {
  std::vector<std::string> names;
  for (const std::string& dim : advice.dims) names.push_back(literal(dim));
  return (several ? "meshes[" + literal(advice.mesh) + "]" : std::string("mesh")) + "[" +
         join(names, ", ") + "]._flatten(" + literal(advice.name) + ")";
}

void append_flattens(std::string& out, const Plan& plan) {
  const std::vector<FlattenAdvice> advice = advice_of(plan);
  const bool several = plan.meshes.meshes.size() > 1;
  out += std::string("\n\ndef declare_flattened(") + (several ? "meshes" : "mesh") + "):\n";
  if (advice.empty()) {
    out += "    # every flattened mesh that helps is declared\n    pass\n";
    return;
  }
  if (several) out += "    # meshes: the program's DeviceMesh for each of the plan's names\n";
  out +=
      "    # once, after the meshes are made and before anything runs; then record and plan again: the plan below is the one without "
      "them\n";
  for (const FlattenAdvice& a : advice) {
    out += "    " + flatten_code(a, several) + "  # ";
    if (a.needed) out += "this plan runs on it";
    if (a.redistributions > 0) {
      out += std::string(a.needed ? "; " : "") + "saves " + human_ns(a.saves_ns) + " in " +
             counted(a.redistributions, "redistribution");
    }
    out += "\n";
  }
}

}  // namespace

std::string render_torch(const Plan& plan) {
  std::string functions;
  std::string table;
  std::set<std::string> taken;
  for (const PlannedRedistribution& planned : plan.redistributions) {
    const std::string name = function_name(planned.request.id, taken);
    append_function(functions, plan, planned, name);
    table += "    " + literal(planned.request.id) + ": " + name + ",\n";
  }
  std::string out =
      "# PyTorch code of the plan" + (plan.digest.empty() ? "" : " " + plan.digest) + "\n";
  out +=
      "# Each function takes a DTensor in the source placements, and its mesh, and returns it in the target's.\n"
      "# What PyTorch plans itself is not as in the plan: meshplan.follow(PLAN) executes every step as it is planned.\n";
  if (functions.find("= x.to(torch.") != std::string::npos ||
      functions.find(" torch.") != std::string::npos)
    out += "import torch\n";
  out += std::string("from torch.distributed.tensor import ") +
         (functions.find("DTensor.") == std::string::npos ? "" : "DTensor, ") +
         "Partial, Replicate, Shard\n";
  if (functions.find("_StridedShard(") != std::string::npos)
    out += "from torch.distributed.tensor.placement_types import _StridedShard\n";
  if (functions.find(" _NormPartial(") != std::string::npos ||
      functions.find("[_NormPartial(") != std::string::npos)
    out += "from torch.distributed.tensor._ops._math_ops import _NormPartial\n";
  append_flattens(out, plan);
  out += functions + "\n\nREDISTRIBUTIONS = {\n" + table + "}\n";
  return out;
}

}  // namespace meshplan
