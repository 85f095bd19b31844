#include "torch_rules/graph.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>

#include "base/int_math.h"
#include "base/text.h"
#include "cost/step_cost.h"
#include "cost/step_figures.h"
#include "plan/describe_moves.h"
#include "torch_rules/dtensor_cost.h"
#include "transfer/level_map.h"

namespace meshplan {
namespace {

__extension__ using Key = unsigned __int128;
constexpr uint32_t none = UINT32_MAX;
constexpr uint32_t code_replicate = 0;
constexpr uint32_t code_partial = 1;  // + ReduceOp
constexpr uint32_t code_shard = 6;    // + tensor dim
// States to look at: a second at most, by the topology's prices too.
constexpr int64_t most_states = 800'000;
constexpr int64_t most_priced_states = 300'000;
constexpr double infinite = std::numeric_limits<double>::infinity();

uint32_t code_of(const Placement& p) {
  if (is_partial(p)) return code_partial + static_cast<uint32_t>(p.op);
  return is_shard(p) ? code_shard + static_cast<uint32_t>(p.tensor_dim) : code_replicate;
}
Placement placement_of(uint32_t code) {
  if (code >= code_shard) return shard(static_cast<int32_t>(code - code_shard));
  return code == code_replicate ? replicate() : partial(static_cast<ReduceOp>(code - code_partial));
}
bool code_is_partial(uint32_t code) { return code >= code_partial && code < code_shard; }

// How states are packed: for each mesh dim its placement's code and, where it shards, its place in
// the order.
class Packing {
 public:
  Packing(size_t mesh_dims, size_t tensor_dims)
      : mesh_dims_(mesh_dims),
        tensor_dims_(tensor_dims),
        place_bits_(static_cast<uint32_t>(std::bit_width(mesh_dims))),
        field_bits_(static_cast<uint32_t>(std::bit_width(code_shard + tensor_dims)) + place_bits_) {
  }

  [[nodiscard]] bool fits() const { return mesh_dims_ * field_bits_ <= 128; }
  [[nodiscard]] Key field(size_t mesh_dim, uint32_t code, uint32_t place = 0) const {
    return static_cast<Key>((code << place_bits_) | place) << (mesh_dim * field_bits_);
  }
  [[nodiscard]] uint32_t read(Key key, size_t mesh_dim) const {
    return static_cast<uint32_t>(key >> (mesh_dim * field_bits_)) & ((1U << field_bits_) - 1);
  }
  [[nodiscard]] uint32_t code(uint32_t field) const { return field >> place_bits_; }
  [[nodiscard]] uint32_t place(uint32_t field) const { return field & ((1U << place_bits_) - 1); }
  [[nodiscard]] size_t mesh_dims() const { return mesh_dims_; }
  [[nodiscard]] size_t tensor_dims() const { return tensor_dims_; }

  [[nodiscard]] Key pack(const State& state, std::span<const int64_t> mesh_shape) const {
    Key key = 0;
    const std::vector<Placement> placements = placements_of(state, mesh_shape);
    for (size_t i = 0; i < mesh_dims_; ++i) {
      uint32_t place = 0;
      if (is_shard(placements[i])) {
        const std::vector<SubAxis>& order = state.shards[placements[i].tensor_dim];
        while (order[place].mesh_dim != static_cast<int32_t>(i)) ++place;
      }
      key |= field(i, code_of(placements[i]), place);
    }
    return key;
  }

 private:
  size_t mesh_dims_;
  size_t tensor_dims_;
  uint32_t place_bits_;
  uint32_t field_bits_;
};

// Interned states: open addressing from key to a dense index. Grows by doubling.
class StateTable {
 public:
  struct Node {
    Key key;
    double cost = infinite;  // of the cheapest way pushed so far, the first of equals
    uint32_t parent = none;
    bool settled = false;
  };

  StateTable() : slots_(1024, none) { nodes_.reserve(512); }

  uint32_t intern(Key key) {
    size_t at = slot(key);
    for (; slots_[at] != none; at = (at + 1) & (slots_.size() - 1)) {
      if (nodes_[slots_[at]].key == key) return slots_[at];
    }
    const auto index = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back({key});
    slots_[at] = index;
    if (nodes_.size() * 2 > slots_.size()) grow();
    return index;
  }
  // none: not interned.
  [[nodiscard]] uint32_t find(Key key) const {
    size_t at = slot(key);
    while (slots_[at] != none && nodes_[slots_[at]].key != key) at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }
  Node& operator[](uint32_t index) { return nodes_[index]; }

 private:
  [[nodiscard]] size_t slot(Key key) const {
    uint64_t mixed =
        (static_cast<uint64_t>(key) ^ (static_cast<uint64_t>(key >> 64) * 0x9e3779b97f4a7c15U)) *
        0xff51afd7ed558ccdU;
    return static_cast<size_t>(mixed ^ (mixed >> 32)) & (slots_.size() - 1);
  }
  void grow() {
    slots_.assign(slots_.size() * 2, none);
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      size_t at = slot(nodes_[i].key);
      while (slots_[at] != none) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = i;
    }
  }

  std::vector<Node> nodes_;
  std::vector<uint32_t> slots_;
};

struct Queued {
  double cost = 0;
  uint32_t order = 0;  // pushes so far
  uint32_t node = 0;
  // A heap of std:: keeps the largest on top.
  bool operator<(const Queued& other) const {
    return cost != other.cost ? cost > other.cost : order > other.order;
  }
};

// What a transition costs in the model asked for.
class EdgeCost {
 public:
  explicit EdgeCost(const PlanQuestion& question)
      : question_(question),
        mesh_(question.meshes->meshes[question.request->src_mesh]),
        shape_(mesh_shape(mesh_)),
        model_(question.options->cost_model, shape_, question.request->tensor,
               ranks_per_host(question)) {
    if (by_topology()) levels_.emplace(mesh_, *question.topology);
  }

  [[nodiscard]] bool by_topology() const {
    return question_.options->cost_model == CostModel::topology;
  }
  [[nodiscard]] double step(Op op, size_t mesh_dim, int64_t shards) const {
    return model_.step(op, mesh_dim, shards);
  }
  // Picoseconds of the topology's price, for any state.
  [[nodiscard]] double priced(const State& before, size_t mesh_dim, const Placement& src,
                              const Placement& dst) const {
    // Nothing moves.
    if (is_local(op_between(src, dst)) || shape_[mesh_dim] == 1) return 0;
    const Transition transition{static_cast<int32_t>(mesh_dim), src, dst, {}};
    State after = before;
    apply_transition(after, transition, shape_, ShardPosition::last);
    Step step;
    step.op = op_between(src, dst);
    step.mesh_dims = {{transition.mesh_dim, 1, shape_[mesh_dim]}};
    describe_uniform(step, src, dst);
    if (is_partial(src)) step.reduce_op = src.op;
    step.state = std::move(after);
    StepQuestion asked;
    asked.topology = question_.topology;
    asked.src_mesh = &mesh_;
    asked.dst_mesh = &mesh_;
    asked.tensor = &question_.request->tensor;
    asked.reduce_dtype = question_.request->reduce_dtype;
    asked.before = &before;
    asked.step = &step;
    return static_cast<double>(price_step_on(*levels_, asked).predicted_ps);
  }

 private:
  const PlanQuestion& question_;
  const Mesh& mesh_;
  std::vector<int64_t> shape_;
  DtensorCost model_;
  std::optional<LevelMap> levels_;  // by_topology only
};

class Search {
 public:
  Search(const PlanQuestion& question, const Packing& packing)
      : request_(*question.request),
        packing_(packing),
        shape_(mesh_shape(question.meshes->meshes[request_.src_mesh])),
        costs_(question),
        codes_(packing.mesh_dims()),
        places_(packing.mesh_dims()),
        last_(packing.tensor_dims()),
        count_(packing.tensor_dims()) {
    for (const State* state : {&request_.src, &request_.dst}) {
      for (const PendingSubAxis& pending : state->partial)
        ops_present_[static_cast<size_t>(pending.op)] = true;
    }
    queue_.reserve(1024);
    const Key goal = packing_.pack(request_.dst, shape_);
    for (size_t i = 0; i < shape_.size(); ++i)
      goal_codes_.push_back(packing_.code(packing_.read(goal, i)));
  }

  // The keys of the states on the chosen way, source and target included; none: more states to look
  // at than `most`.
  std::vector<Key> run(int64_t most) {
    const uint32_t start = table_.intern(packing_.pack(request_.src, shape_));
    goal_ = table_.intern(packing_.pack(request_.dst, shape_));
    table_[start].cost = 0;
    queue_.push_back({0, 0, start});
    while (!queue_.empty()) {
      std::pop_heap(queue_.begin(), queue_.end());
      const uint32_t at = queue_.back().node;
      queue_.pop_back();
      if (at == goal_) break;
      if (table_[at].settled) continue;
      if (most-- == 0) return {};
      table_[at].settled = true;
      expand(at);
    }
    std::vector<Key> keys;
    for (uint32_t at = goal_; at != none; at = table_[at].parent) keys.push_back(table_[at].key);
    std::reverse(keys.begin(), keys.end());
    return keys;
  }

  [[nodiscard]] State unpack(Key key) const {
    State state;
    state.shards.resize(packing_.tensor_dims());
    for (size_t i = 0; i < shape_.size(); ++i) {
      const uint32_t field = packing_.read(key, i);
      const Placement p = placement_of(packing_.code(field));
      const SubAxis sub_axis{static_cast<int32_t>(i), 1, shape_[i]};
      if (is_partial(p)) state.partial.push_back({sub_axis, p.op});
      if (!is_shard(p)) continue;
      std::vector<SubAxis>& order = state.shards[p.tensor_dim];
      order.resize(std::max(order.size(), static_cast<size_t>(packing_.place(field)) + 1));
      order[packing_.place(field)] = sub_axis;
    }
    return state;
  }

 private:
  // Reads the state into the scratch arrays: codes, and for each tensor dim how many mesh dims
  // shard it and which is last.
  void decode(Key key) {
    std::fill(count_.begin(), count_.end(), 0U);
    shards_ = 1;
    for (size_t i = 0; i < shape_.size(); ++i) {
      const uint32_t field = packing_.read(key, i);
      codes_[i] = packing_.code(field);
      places_[i] = packing_.place(field);
      if (codes_[i] < code_shard) continue;
      const size_t d = codes_[i] - code_shard;
      if (places_[i] + 1 > count_[d]) {
        count_[d] = places_[i] + 1;
        last_[d] = i;
      }
      shards_ = saturating_mul(shards_, shape_[i]);
    }
  }

  void push(uint32_t from, size_t mesh_dim, uint32_t code, uint32_t place, Op op) {
    const Key key =
        (table_[from].key ^ packing_.field(mesh_dim, codes_[mesh_dim], places_[mesh_dim])) |
        packing_.field(mesh_dim, code, place);
    // No step takes less than nothing: most states are reached as cheaply already, and to find one
    // takes less than a price of the topology.
    const uint32_t known = costs_.by_topology() ? table_.find(key) : none;
    if (known != none && (table_[known].settled || table_[known].cost <= table_[from].cost)) return;
    const double step =
        costs_.by_topology()
            ? costs_.priced(before_, mesh_dim, placement_of(codes_[mesh_dim]), placement_of(code))
            : costs_.step(op, mesh_dim, shards_);
    const double cost = table_[from].cost + step;
    if (cost >= table_[goal_].cost) return;  // never before the target
    const uint32_t to = known != none ? known : table_.intern(key);
    StateTable::Node& node = table_[to];
    if (node.settled || cost >= node.cost) return;
    node.cost = cost;
    node.parent = from;
    queue_.push_back({cost, ++pushes_, to});
    std::push_heap(queue_.begin(), queue_.end());
  }

  void expand(uint32_t at) {
    const Key key = table_[at].key;
    decode(key);
    if (costs_.by_topology()) before_ = unpack(key);
    const size_t tensor_dims = packing_.tensor_dims();
    const size_t mesh_dims = packing_.mesh_dims();
    auto shard_code = [](size_t tensor_dim) {
      return code_shard + static_cast<uint32_t>(tensor_dim);
    };
    for (size_t d = 0; d < tensor_dims; ++d) {
      for (size_t to = 0; count_[d] != 0 && to < tensor_dims; ++to) {
        if (to != d) push(at, last_[d], shard_code(to), count_[to], Op::all_to_all);
      }
    }
    for (size_t d = 0; d < tensor_dims; ++d) {
      if (count_[d] != 0) push(at, last_[d], code_replicate, 0, Op::all_gather);
    }
    for (size_t i = 0; i < mesh_dims; ++i) {
      if (code_is_partial(codes_[i])) push(at, i, code_replicate, 0, Op::all_reduce);
    }
    for (size_t i = 0; i < mesh_dims; ++i) {
      for (size_t d = 0; codes_[i] == code_replicate && d < tensor_dims; ++d)
        push(at, i, shard_code(d), count_[d], Op::slice);
    }
    for (size_t i = 0; i < mesh_dims; ++i) {
      for (size_t d = 0; code_is_partial(codes_[i]) && d < tensor_dims; ++d)
        push(at, i, shard_code(d), count_[d], Op::reduce_scatter);
    }
    for (size_t i = 0; i < mesh_dims; ++i) {
      for (uint32_t op = 0; codes_[i] == code_replicate && op < ops_present_.size(); ++op) {
        if (ops_present_[op] && mixes_with_pending(static_cast<ReduceOp>(op)))
          push(at, i, code_partial + op, 0, Op::to_partial);
      }
    }
    const uint32_t sum = code_partial + static_cast<uint32_t>(ReduceOp::sum);
    for (size_t d = 0; d < tensor_dims; ++d) {
      if (count_[d] != 0 && goal_codes_[last_[d]] == sum)
        push(at, last_[d], sum, 0, Op::to_partial);
    }
  }

  [[nodiscard]] bool mixes_with_pending(ReduceOp op) const {
    return std::all_of(codes_.begin(), codes_.end(), [&](uint32_t code) {
      return !code_is_partial(code) || may_mix(static_cast<ReduceOp>(code - code_partial), op);
    });
  }

  const Request& request_;
  const Packing& packing_;
  std::vector<int64_t> shape_;
  EdgeCost costs_;
  std::array<bool, 5> ops_present_{};
  std::vector<uint32_t> goal_codes_;
  uint32_t goal_ = 0;
  StateTable table_;
  std::vector<Queued> queue_;
  uint32_t pushes_ = 0;
  // The state being expanded.
  State before_;  // by_topology only
  std::vector<uint32_t> codes_;
  std::vector<uint32_t> places_;
  std::vector<size_t> last_;
  std::vector<uint32_t> count_;
  int64_t shards_ = 1;
};

// The tensor as the rank at coordinate 0 sees it without `mesh_dim`: what the other mesh dims
// leave, in their order.
std::vector<int64_t> shape_without(const State& state, int32_t mesh_dim,
                                   std::span<const int64_t> tensor_shape) {
  std::vector<int64_t> shape(tensor_shape.begin(), tensor_shape.end());
  for (size_t d = 0; d < shape.size(); ++d) {
    for (const SubAxis& sub_axis : state.shards[d]) {
      if (sub_axis.mesh_dim != mesh_dim) shape[d] = ceil_div(shape[d], sub_axis.size);
    }
  }
  return shape;
}

}  // namespace

int64_t ranks_per_host(const PlanQuestion& question) {
  if (question.options->ranks_per_host) return *question.options->ranks_per_host;
  const Topology& topology = *question.topology;
  return topology.name == "uniform" || topology.levels.empty() ? 1 : topology.levels.front().ranks;
}

Result<std::vector<Transition>> graph_transitions(const PlanQuestion& question) {
  const Request& request = *question.request;
  const std::vector<int64_t> shape = mesh_shape(question.meshes->meshes[request.src_mesh]);
  const Packing packing(shape.size(), request.tensor.shape.size());
  if (!packing.fits()) {
    return no_plan("the graph planner's states do not fit " + std::to_string(shape.size()) +
                   " mesh dims with " + std::to_string(request.tensor.shape.size()) +
                   " tensor dims; use --planner optimal");
  }
  Search search(question, packing);
  const int64_t most =
      question.options->cost_model == CostModel::topology ? most_priced_states : most_states;
  const std::vector<Key> keys = search.run(most);
  if (keys.empty()) {
    return no_plan("the graph planner stops after " + with_commas(most) + " states of " +
                   std::to_string(shape.size()) + " mesh dims with " +
                   std::to_string(request.tensor.shape.size()) +
                   " tensor dims; use --planner optimal");
  }
  std::vector<Transition> transitions;
  for (size_t step = 0; step + 1 < keys.size(); ++step) {
    for (size_t i = 0; i < shape.size(); ++i) {
      const uint32_t before = packing.code(packing.read(keys[step], i));
      const uint32_t after = packing.code(packing.read(keys[step + 1], i));
      if (before == after) continue;
      const auto dim = static_cast<int32_t>(i);
      transitions.push_back({dim, placement_of(before), placement_of(after),
                             shape_without(search.unpack(keys[step]), dim, request.tensor.shape)});
    }
  }
  return transitions;
}

}  // namespace meshplan
