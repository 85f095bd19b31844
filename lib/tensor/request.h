// The planner's input: one redistribution, and the options of a whole file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensor/state.h"

namespace meshplan {

enum class Direction : uint8_t { forward, backward };

// A note of the spec ("x-source": "train.py:31"), which decides nothing (plan/notes.h).
struct Note {
  std::string key;
  std::string json;  // canonical
  bool operator==(const Note&) const = default;
};

struct Request {
  std::string id;
  size_t src_mesh = 0;  // index into the file's MeshTable
  size_t dst_mesh = 0;  // the same index unless the redistribution crosses meshes
  TensorMeta tensor;
  State src;  // on src_mesh
  State dst;  // on dst_mesh
  // "dst_order": "any": the planner chooses; `dst` holds the default order
  bool any_dst_order = false;
  Direction direction = Direction::forward;
  std::optional<DType> reduce_dtype;  // reductions run in this dtype
  int64_t count = 1;
  std::vector<Note> notes{};  // keys ascend
};

enum class PlannerKind : uint8_t { greedy, graph, optimal };
enum class Rules : uint8_t { dtensor, native };
enum class GroupPolicy : uint8_t { declared, any };
enum class WorldGroup : uint8_t { init, skip };
enum class CostModel : uint8_t { topology, dtensor, unit };

// Options as one source gives them: a spec, a command line, a caller of the library. Empty: not
// given.
struct GivenOptions {
  std::optional<PlannerKind> planner;
  std::optional<Rules> rules;
  std::optional<GroupPolicy> groups;
  std::optional<CostModel> cost_model;
  std::optional<int64_t> max_memory_bytes;
  std::optional<bool> one_reduction;
  std::optional<WorldGroup> world_group;
  std::optional<bool> merge;
  std::optional<bool> audit;
  std::optional<int64_t> alternatives;
  std::optional<int64_t> max_groups;
  std::optional<int64_t> ranks_per_host;
};

// Options that hold (planner/settle_options.h).
struct PlanOptions {
  PlannerKind planner = PlannerKind::optimal;
  Rules rules = Rules::native;
  GroupPolicy groups = GroupPolicy::declared;
  CostModel cost_model = CostModel::dtensor;  // used by the graph planner
  // 0: no intermediate state larger than the larger of source and target; -1: no limit; above 0:
  // limit of the peak of every step
  int64_t max_memory_bytes = 0;
  bool one_reduction = false;
  WorldGroup world_group = WorldGroup::init;
  bool merge = true;         // --no-merge: false
  bool audit = false;        // --audit
  int64_t alternatives = 0;  // --alternatives N
  int64_t max_groups = -1;   // --max-groups K; -1: not requested
  // --ranks-per-host; default: first level of a given topology, else 1
  std::optional<int64_t> ranks_per_host;
  bool advice = true;  // false: do not look for missing flattens
  // limit per redistribution of all work, in the units of search/work.h; once more where a memory
  // limit leaves the plan unproven (planner/without_limit.h)
  int64_t work_budget = 60'000'000;
};

[[nodiscard]] const char* to_text(PlannerKind planner);
[[nodiscard]] const char* to_text(Rules rules);
[[nodiscard]] const char* to_text(GroupPolicy groups);
[[nodiscard]] const char* to_text(WorldGroup world_group);
[[nodiscard]] const char* to_text(CostModel model);
[[nodiscard]] std::optional<PlannerKind> parse_planner(std::string_view text);
[[nodiscard]] std::optional<Rules> parse_rules(std::string_view text);
[[nodiscard]] std::optional<GroupPolicy> parse_group_policy(std::string_view text);
[[nodiscard]] std::optional<WorldGroup> parse_world_group(std::string_view text);
[[nodiscard]] std::optional<CostModel> parse_cost_model(std::string_view text);

}  // namespace meshplan
