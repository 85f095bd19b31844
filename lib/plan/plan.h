// The plan document: what meshplan writes and everything after planning reads.
//
//     redistribution  P(sum)S(0) -> RS(0)
//     step 0          all_reduce on a (group "a", 2 ranks)          state after: RS(0)
//
// A redistribution is a list of steps; each holds the whole state after it, so that a step is right or wrong by itself: the state before
// it, the state after it and the ranks that may talk (`mesh_dims`) say which boxes every rank has and needs. Nothing lists ranks.
//
// Figures: wire_bytes = bytes that one rank receives, the maximum over ranks and groups, padding included; peak_bytes = input + output +
// staging, the largest over ranks; predicted = picoseconds inside, nanoseconds rounded up in the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "mesh/mesh_table.h"
#include "plan/op_table.h"
#include "plan/shortcuts.h"
#include "plan/totals.h"
#include "tensor/request.h"
#include "tensor/state.h"

namespace meshplan {

class JsonWriter;

// What one mesh dim (or part of it) does in a step.
struct Move {
  Atom atom;
  Placement src;
  Placement dst;
  bool operator==(const Move&) const = default;
};

struct Step {
  Op op = Op::slice;
  std::vector<Atom> mesh_dims;  // ranks that may talk: those that differ only on these; in mesh order; an exchange lists every mesh dim
  std::string group;            // id of the group it runs on; empty for local steps and where only mesh dims of size 1 change
  // The common src and dst of all mesh dims and the affected tensor dim, where one of each says it all; else `moves` does.
  std::optional<Placement> src;
  std::optional<Placement> dst;
  std::optional<int32_t> tensor_dim;
  std::vector<Move> moves;
  std::optional<ReduceOp> reduce_op;  // the op that is run: sum where sum and avg are merged
  int64_t scale_divisor = 1;          // after the reduction every element is divided by this ("scale": "1/8"); 1: no scale
  State state;                        // after the step, on mesh `mesh`
  std::string mesh;                   // name of the mesh that `state` is on, where the redistribution crosses meshes; else empty
  std::vector<int64_t> logical_shape;
  int64_t wire_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t predicted_ps = 0;   // the file holds predicted_ns, rounded up
  int64_t merged = 1;         // steps of the unmerged plan that this one stands for
  int64_t phases = 1;         // 2: a two-phase exchange
  bool whole_pieces = false;  // an exchange whose cut is 1: pieces go whole (OPTIMAL.md move 5)
  std::string why;            // one sentence

  bool operator==(const Step&) const = default;
};

enum class WarningKind : uint8_t { missing_flatten, uneven_shape, non_ascending };
[[nodiscard]] const char* to_text(WarningKind kind);       // "missing_flatten"
[[nodiscard]] const char* warning_code(WarningKind kind);  // "W0301", "W0302", "W0303"

struct Warning {
  WarningKind kind = WarningKind::missing_flatten;
  std::vector<std::string> dims;  // mesh order
  Op collective = Op::all_reduce;
  int64_t operations = 0;
  int64_t saves_ps = 0;  // saves_ns in the file, rounded down; may be negative under the dtensor rules
  int64_t saves_collectives = 0;
  std::string fix_name;  // the flattened dim to declare over `dims`; empty where there is no fix
  std::string mesh;      // the mesh whose dims they are
  std::string message;
  bool operator==(const Warning&) const = default;
};

// What PyTorch would do wrong or badly (plan --audit).
struct AuditFinding {
  std::string code;   // "A0401"
  std::string kind;   // "merged_uneven_gather"
  int64_t step = -1;  // index into steps; -1: the whole redistribution
  std::string message;
  int64_t wire_bytes = 0;         // of the PyTorch plan
  int64_t better_wire_bytes = 0;  // of the better plan
  std::string better_trace;
  bool operator==(const AuditFinding&) const = default;
};

struct Alternative {
  std::string trace;
  Totals totals;
  bool operator==(const Alternative&) const = default;
};

// One logical reduction: how many collectives it passes through and in which nesting, innermost first ("tp, then dp").
struct ReductionNote {
  std::vector<std::string> dims;  // mesh dims that held the partial
  int64_t collectives = 0;
  std::string nesting;
  bool operator==(const ReductionNote&) const = default;
};

struct PlannedRedistribution {
  Request request;
  PlannerKind planner = PlannerKind::optimal;
  Rules rules = Rules::native;
  State dst;  // the target reached: request.dst unless the order was left to the planner or backward changed it
  std::string trace;
  std::string unmerged_trace;
  std::vector<Step> steps;
  Totals totals;
  std::vector<ReductionNote> reductions;
  std::vector<Warning> warnings;
  std::vector<AuditFinding> audit;
  std::vector<Alternative> alternatives;
  int64_t proven_gap_ps = 0;  // 0: proven optimal (or a rule planner); else how far above the optimum it may be
  Shortcuts shortcuts;        // why it is not proven; none where it is
};

// One communicator family: the ranks of one layout, in every copy.
struct PlanGroup {
  std::string id;
  std::string mesh;
  std::vector<std::string> dims;
  Layout layout;
  int64_t size = 1;
  int64_t count = 1;  // communicators of this layout in the world
  bool declared = true;
  int64_t used_by = 0;  // steps
  bool operator==(const PlanGroup&) const = default;
};

struct TopologyLevel {
  std::string name;
  int64_t ranks = 1;     // consecutive global ids in one unit
  int64_t mb_per_s = 1;  // 1e6 bytes a second per rank and direction
  int64_t latency_ns = 0;
  int64_t per_peer_ns = 0;
  int64_t exchange_percent = 100;
  bool operator==(const TopologyLevel&) const = default;
};

// A measured time of one collective over a group that reaches `level`: log-log interpolation between points (finer tier).
struct MeasuredTable {
  Op op = Op::all_reduce;
  int64_t level = 0;
  int64_t ranks = 2;
  std::vector<std::pair<int64_t, int64_t>> points;  // (bytes, nanoseconds), ascending
  bool operator==(const MeasuredTable&) const = default;
};

struct Topology {
  std::string name;                   // "h100", "uniform", or "" for a user's own
  std::string source;                 // where a preset's numbers come from
  std::vector<TopologyLevel> levels;  // inside out; the last holds every rank
  int64_t copy_mb_per_s = 0;          // 0: copies are not counted
  std::string model;                  // "" = levels; "nccl" = NCCL's published formula prices what it covers
  std::vector<MeasuredTable> tables;  // measured tier
  bool operator==(const Topology&) const = default;
};

struct Plan {
  std::string digest;  // "sha256:...": filled by write_plan / checked by read_plan
  std::string spec_digest;
  MeshTable meshes;
  Topology topology;
  PlanOptions options;  // those that decide replay and diff: rules, planner, groups, memory, one_reduction, world_group
  std::vector<PlanGroup> groups;
  std::vector<PlannedRedistribution> redistributions;
  Totals totals;  // of all redistributions (total_of)
};

// The file, beside the names that the contract gives (CONTRACT.md, "Plan"):
//   mesh            {"world", "ranks" (only where not 0, 1, 2, ...), "meshes": [{"name", "dims": [{"name", "size", "layout"}]}],
//                   "flattened": [{"name", "dims", "of", "layout"}]}; "group_options" as a text where there are some
//   options         what the whole file was planned under
//   src, dst        placements, one per mesh dim, as in the spec; src_order, dst_order: the orders that do not ascend, or "any"
//   reached         the text of the state reached, where it is not dst; direction, reduce_dtype: where not the default
//   steps           "mesh" where a redistribution crosses meshes, "phases" 2, "whole_pieces" true, "moves": [{"mesh_dim", "src", "dst"}];
//                   "scale" is "1/8"; times are nanoseconds, rounded up
//   reductions, audit, alternatives, proven_gap_ns: the fields of PlannedRedistribution; shortcuts: their names, only where there are some
// Reading gives times in whole nanoseconds, so that what was read writes the same bytes.

// What a redistribution costs as often as it happens, and the sum over several.
[[nodiscard]] Totals weighted(const PlannedRedistribution& redistribution);
[[nodiscard]] Totals total_of(const std::vector<PlannedRedistribution>& redistributions);

// The compact canonical JSON (sorted keys, UTF-8, no spaces), without the digest: what the digest is over.
[[nodiscard]] std::string canonical_json(const Plan& plan);
// The plan file: sorted keys, LF, one step per line, digest filled in. Byte-identical for the same plan on every machine.
[[nodiscard]] std::string write_plan(const Plan& plan);
// The members of "totals", ascending.
void write_totals(JsonWriter& writer, const Totals& totals);
// The value of "topology"; `with_empty`: with the fields that say nothing, as plans have them.
void write_topology(JsonWriter& writer, const Topology& topology, bool with_empty);
// Any formatting of the same content. Unknown minor keys are kept out of the way, an unknown major version is refused by name; a digest
// that does not match the content is an error unless `check_digest` is false.
[[nodiscard]] Result<Plan> read_plan(std::string_view text, bool check_digest = true);
// The same, and where the trouble lies apart from what it is.
struct PlanRefusal {
  std::string message;
  std::string pointer;         // of the value concerned; "" is the whole document
  std::optional<size_t> byte;  // where the text is no JSON; then there is no pointer
  size_t begin = 0;            // the bytes of the value concerned
  size_t end = 0;
};
[[nodiscard]] std::variant<Plan, PlanRefusal> try_read_plan(std::string_view text, bool check_digest = true);

// "->", or "-->" where the step runs on a flattened group (merged > 1 or several mesh dims).
[[nodiscard]] const char* arrow_of(const Step& step);
// "P(sum)RS(0)->RRS(0)-->...": the states joined by their steps' arrows. On one mesh, and from one mesh to another: then a step's
// state is on the target's mesh where the step names it, else still on the source's.
[[nodiscard]] std::string trace_of(const State& src, const std::vector<Step>& steps, std::span<const int64_t> mesh_shape);
[[nodiscard]] std::string trace_of(const State& src, const std::vector<Step>& steps, const Mesh& src_mesh, const Mesh& dst_mesh);

// Picoseconds to nanoseconds, rounded up.
[[nodiscard]] constexpr int64_t ns_of_ps(int64_t ps) { return ps / 1000 + (ps % 1000 > 0); }
// The same rounded down: what a warning saves.
[[nodiscard]] constexpr int64_t floor_ns_of_ps(int64_t ps) { return ps / 1000 - (ps % 1000 < 0); }

}  // namespace meshplan
