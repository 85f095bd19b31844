// The plan document: what meshplan writes and everything after planning reads.
//
//     redistribution  P(sum)S(0) -> RS(0)
//     step 0          all_reduce on a (group "a", 2 ranks)          state after: RS(0)
//
// A redistribution is a list of steps. Each holds the whole state after it, so a step can be
// checked alone: the states before and after it and the ranks that may communicate (`mesh_dims`)
// determine which boxes every rank has and needs. No ranks are listed.
//
// Figures: wire_bytes = bytes that one rank receives, the maximum over ranks and groups, padding
// included; peak_bytes = input + output + staging, the largest over ranks; predicted = picoseconds
// in memory, nanoseconds rounded up in the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/shared_list.h"
#include "mesh/mesh_table.h"
#include "plan/bundle.h"
#include "plan/op_table.h"
#include "plan/protocol.h"
#include "plan/shortcuts.h"
#include "plan/totals.h"
#include "tensor/request.h"
#include "tensor/state.h"

namespace meshplan {

class JsonWriter;

// What one mesh dim (or part of it) does in a step.
struct Move {
  SubAxis sub_axis;
  Placement src;
  Placement dst;
  bool operator==(const Move&) const = default;
};

// The most chunks of a two-phase exchange.
constexpr int64_t most_chunks = 1024;
// The largest far share of an exchange: something is asked of the nearest holders, too.
constexpr int64_t most_far_64ths = 63;
constexpr int64_t most_laps = 2;     // of what ranks of a unit fetch
constexpr int64_t most_at_once = 8;  // ranks that one asks in a chunk, in shifts

struct Step {
  Op op = Op::slice;
  // Ranks that differ only on these may communicate; in mesh order; an exchange lists every mesh
  // dim.
  std::vector<SubAxis> mesh_dims;
  // Id of the group it runs on; empty for local steps and where only mesh dims of size 1 change.
  std::string group;
  // The common src and dst of all mesh dims and the tensor dim concerned; where they have no common
  // one, `moves` lists each.
  std::optional<Placement> src;
  std::optional<Placement> dst;
  std::optional<int32_t> tensor_dim;
  std::vector<Move> moves;
  std::optional<ReduceOp> reduce_op;  // the op that is run: sum where sum and avg are merged
  // Every element is divided by this after the reduction ("scale": "1/8"); 1: no scale.
  int64_t scale_divisor = 1;
  State state;       // after the step, on mesh `mesh`
  std::string mesh;  // only where the redistribution crosses meshes
  std::vector<int64_t> logical_shape;
  int64_t wire_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t predicted_ps = 0;   // the file holds predicted_ns, rounded up
  int64_t merged = 1;         // steps of the unmerged plan that this one stands for
  int64_t phases = 1;         // 2: a two-phase exchange
  int64_t chunks = 1;         // of two phases: into so many parts, each shared while the next comes
  bool whole_pieces = false;  // an exchange that sends each piece whole from one holder
  // Of two phases: all ranks of a unit on the target's side share the fetching, not those alone
  // that want what is fetched.
  bool fetched_by_all = false;
  int64_t laps = 1;  // of two phases: 2 where each that fetches has two parts at least
  // Of two phases in chunks, across meshes: a rank fetches a chunk from so many others at most, and
  // serves as many; 0: from all that it asks.
  int64_t at_once = 0;
  // Of one phase, evenly cut and reducing nothing: so many 64ths of what has holders in a rank's
  // unit and outside come from outside; 0: none.
  int64_t far_64ths = 0;
  std::string why;  // one sentence

  bool operator==(const Step&) const = default;
};

// How an exchange goes beside its phases, behind a comma each: ", fetched by all in 2 laps, 8
// chunks from 2 at once"; empty where there is nothing to say.
[[nodiscard]] std::string way_text(const Step& step);

enum class WarningKind : uint8_t { missing_flatten, uneven_shape, non_ascending };
[[nodiscard]] const char* to_text(WarningKind kind);       // "missing_flatten"
[[nodiscard]] const char* warning_code(WarningKind kind);  // "W0301", "W0302", "W0303"

struct Warning {
  WarningKind kind = WarningKind::missing_flatten;
  std::vector<std::string> dims;  // mesh order
  Op collective = Op::all_reduce;
  int64_t operations = 0;
  // saved_ns of this plan and the one with the fix; may be negative under the dtensor rules
  int64_t saves_ns = 0;
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
  int64_t wire_bytes = 0;         // of the plan that is found fault with, mostly PyTorch's
  int64_t better_wire_bytes = 0;  // of the better plan
  int64_t predicted_ps = 0;       // of the former; 0: not known
  int64_t better_predicted_ps = 0;
  std::string better_trace;
  bool operator==(const AuditFinding&) const = default;
};

struct Alternative {
  std::string trace;
  Totals totals;
  bool operator==(const Alternative&) const = default;
};

// One logical reduction: how many collectives it passes through and in which nesting, innermost
// first ("tp, then dp").
struct ReductionNote {
  std::vector<std::string> dims;  // mesh dims that held the partial
  int64_t collectives = 0;
  std::string nesting;
  bool operator==(const ReductionNote&) const = default;
};

// Copies share their lists: of those that repeat one another (plan/firsts.h) memory holds one.
struct PlannedRedistribution {
  Request request;
  PlannerKind planner = PlannerKind::optimal;
  Rules rules = Rules::native;
  // The state reached: request.dst, unless the shard order was left to the planner or the direction
  // is backward.
  State dst;
  std::string trace;
  std::string unmerged_trace;
  SharedList<Step> steps;
  Totals totals;
  SharedList<ReductionNote> reductions;
  SharedList<Warning> warnings;
  SharedList<AuditFinding> audit;
  SharedList<Alternative> alternatives;
  // 0: proven optimal, or of a rule planner; else how far above the optimum it may be.
  int64_t proven_gap_ps = 0;
  Shortcuts shortcuts;  // why it is not proven; none where it is
};

// One communicator family: the ranks of one layout, in every copy. Where an exchange goes from one
// universe to another its group has all ranks of both: `universes` names their roots, in the order
// of the file, there is no mesh, and positions count the ranks by ascending id.
//
//     train on ranks 0-7, serve on 8-15     group "train+serve", layout 16:1
struct PlanGroup {
  std::string id;
  std::string mesh;
  std::vector<std::string> dims;
  Layout layout;
  int64_t size = 1;
  int64_t count = 1;  // communicators of this layout in the world
  bool declared = true;
  int64_t used_by = 0;  // steps
  std::vector<std::string> universes{};
  bool operator==(const PlanGroup&) const = default;
};

struct TopologyLevel {
  std::string name;
  int64_t ranks = 1;     // consecutive global ids in one unit
  int64_t mb_per_s = 1;  // 1e6 bytes a second per rank and direction
  int64_t latency_ns = 0;
  int64_t per_peer_ns = 0;
  int64_t exchange_percent = 100;
  // An exchange or all_to_all has at most this to one peer; 0: all that the level has.
  int64_t peer_mb_per_s = 0;
  int64_t peer_bytes = 0;  // of those bytes to a peer, so many are held to that; 0: all
  // Of all_reduce where switches of the level reduce, its bytes counted twice; 0: they do not.
  int64_t switch_mb_per_s = 0;
  // Of an exchange or all_to_all so many bytes a rank are near, in caches; what is beyond has
  // far_mb_per_s, beside all of them at mb_per_s: the slower of the two counts. 0: all are near.
  int64_t near_bytes = 0;
  int64_t far_mb_per_s = 0;
  bool operator==(const TopologyLevel&) const = default;
};

// Measured times of one collective over groups that reach `level`; log-log interpolation between
// the points.
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
  // None: the model of levels. Else that of protocols: these price the collectives of groups that
  // look alike everywhere but all_to_all; latency_ns, per_peer_ns and exchange_percent of a level
  // are those of exchanges and all_to_alls.
  std::vector<Protocol> protocols;
  std::vector<MeasuredTable> tables;  // measured tier
  bool operator==(const Topology&) const = default;
};

struct Plan {
  std::string digest;  // "sha256:...": filled by write_plan / checked by read_plan
  std::string spec_digest;
  MeshTable meshes;
  Topology topology;
  PlanOptions options;
  std::vector<PlanGroup> groups;
  std::vector<PlannedRedistribution> redistributions;
  std::vector<PlannedBundle> bundles;
  Totals totals;  // of all redistributions and bundles (totals_of_file)
};

// The file, beside the fields that are named as here (schemas/plan.schema.json):
//   mesh            {"world", "ranks" (only where not 0, 1, 2, ...),
//                   "meshes": [{"name", "dims": [{"name", "size", "layout"}]}],
//                   "flattened": [{"name", "dims", "of", "layout"}]}; "group_options" where given
//   universes       in place of "mesh" where there are several: one such object each, with the
//                   "name" of its root
//   groups          "universes" in place of "mesh" where a group joins two
//   options         those that the whole file was planned with
//   src, dst        placements, one per mesh dim, as in the spec
//   src_order, dst_order   shard orders that do not ascend, or "any"
//   reached         the text of the state reached, if it is not dst
//   direction, reduce_dtype   if not the default
//   steps           "mesh" where a redistribution crosses meshes, "phases" 2, "chunks",
//                   "fetched_by_all" true, "laps" 2, "at_once" 1 to 8, "far_64ths" 1 to 63,
//                   "whole_pieces" true,
//                   "moves": [{"mesh_dim", "src", "dst"}]; "scale" is "1/8"; times are nanoseconds,
//                   rounded up
//   reductions, audit, alternatives, proven_gap_ns, shortcuts   as in PlannedRedistribution
//   bundles         only where there are some; members and parts by id, numbers that are usual left
//                   out (from 0 to count, piece 0 of 1, stream 0, after nothing)
//   "x-..."         notes (plan/notes.h)
// A redistribution that repeats an earlier one is {"count", "id", "same_as": ID of that one} and
// its own notes (plan/firsts.h).
// Reading gives times in whole nanoseconds, so that writing gives the same bytes again.

// What a redistribution costs as often as it happens, and the sum over several.
[[nodiscard]] Totals weighted(const PlannedRedistribution& redistribution);
[[nodiscard]] Totals total_of(const std::vector<PlannedRedistribution>& redistributions);
// The same of a bundle, whose rounds count as collectives.
[[nodiscard]] Totals weighted(const PlannedBundle& bundle);
// The same over a file: in place of a bundle's members its rounds count as collectives, and its
// bytes, peak, time and bounds; of a plan that was read not what its bundles must receive.
[[nodiscard]] Totals totals_of_file(const Plan& plan);
// By redistribution: whether a bundle runs it.
[[nodiscard]] std::vector<bool> run_by_bundles(const Plan& plan);

// The compact canonical JSON (sorted keys, UTF-8, no spaces) without the digest, which is computed
// from it.
[[nodiscard]] std::string canonical_json(const Plan& plan);
// The same without the spec's digest and without notes: what the plan itself says.
[[nodiscard]] std::string canonical_content(const Plan& plan);
// The plan file: sorted keys, LF, one step per line, digest filled in. Byte-identical for the same
// plan on every machine.
[[nodiscard]] std::string write_plan(const Plan& plan);
// The members of "totals", ascending.
void write_totals(JsonWriter& writer, const Totals& totals);
// The value of "topology"; `with_empty`: with empty fields too, as plans have them.
void write_topology(JsonWriter& writer, const Topology& topology, bool with_empty);
// Accepts any formatting. Unknown keys are refused (plan/known_keys.h), those of a newer minor
// version ignored, an unknown major version is refused; a digest that does not match the content is
// an error unless `check_digest` is false.
[[nodiscard]] Result<Plan> read_plan(std::string_view text, bool check_digest = true);
// The same, with the message and the place of a problem apart.
struct PlanRefusal {
  std::string message;
  std::string pointer;         // of the value concerned; "" is the whole document
  std::optional<size_t> byte;  // of invalid JSON, which has no pointer
  size_t begin = 0;            // the bytes of the value concerned
  size_t end = 0;
};
[[nodiscard]] std::variant<Plan, PlanRefusal> try_read_plan(std::string_view text,
                                                            bool check_digest = true);

// "->", or "-->" where the step runs on a flattened group (merged > 1 or several mesh dims).
[[nodiscard]] const char* arrow_of(const Step& step);
// "P(sum)RS(0)->RRS(0)-->...": the states joined by the arrows of the steps, on one mesh or from
// one mesh to another: then the state of a step is on the target mesh if the step names it, else on
// the source mesh.
[[nodiscard]] std::string trace_of(const State& src, const std::vector<Step>& steps,
                                   std::span<const int64_t> mesh_shape);
[[nodiscard]] std::string trace_of(const State& src, const std::vector<Step>& steps,
                                   const Mesh& src_mesh, const Mesh& dst_mesh);

// What the arrows of a trace join, at least one text. Law: "->" instead of arrows joins them again.
[[nodiscard]] std::vector<std::string_view> texts_of_states(std::string_view trace);

// Picoseconds to nanoseconds, rounded up.
[[nodiscard]] constexpr int64_t ns_of_ps(int64_t ps) { return ps / 1000 + (ps % 1000 > 0); }
// What the second plan takes less than the first, as the predicted_ns of both say it.
[[nodiscard]] constexpr int64_t saved_ns(const Totals& first, const Totals& second) {
  return ns_of_ps(first.predicted_ps) - ns_of_ps(second.predicted_ps);
}

}  // namespace meshplan
