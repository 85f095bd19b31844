// What is priced is what runs: every exchange of golden plans, recorded cases and random worlds is
// counted as replay executes it, transfer by transfer, and the count has the price that the plan
// says.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "cost/collective_time.h"
#include "cost/step_cost.h"
#include "cost/topology.h"
#include "transfer/step_transfers.h"
#include "vector_plans.h"
#include "verify/random_world.h"

using namespace meshplan;

namespace {

struct Executed {
  int64_t wire_bytes = 0;
  int64_t sent_bytes = 0;
  int64_t predicted_ps = 0;
  int64_t fullest_ps = 0;  // in shifts
};

// One phase of what ranks send one another, by global id.
class Phase {
 public:
  explicit Phase(const Topology& topology) : topology_(topology) {}
  void move(int64_t from, int64_t to, int64_t bytes) {
    if (from == to) return;
    size_t level = 0;
    while (level + 1 < topology_.levels.size() && from / topology_.levels[level].ranks != to / topology_.levels[level].ranks) ++level;
    received_[to][level] += bytes;
    sent_[from][level] += bytes;
    if (!pairs_.emplace(from, to).second) return;
    ++peers_in_[to][level];
    ++peers_out_[from][level];
  }
  struct Moved {
    Traffic traffic;
    int64_t copied = 0;
  };
  Moved count(std::map<int64_t, int64_t>& received, std::map<int64_t, int64_t>& sent) const {
    Traffic traffic;
    int64_t most = 0;
    for (const auto& [rank, levels] : received_) {
      int64_t all = 0;
      for (int64_t bytes : levels) all += bytes;
      received[rank] += all;
      most = std::max(most, all);
    }
    for (const auto& [rank, levels] : sent_) {
      for (int64_t bytes : levels) sent[rank] += bytes;
    }
    for (const auto* bytes : {&received_, &sent_}) raise(*bytes, traffic.bytes);
    for (const auto* peers : {&peers_in_, &peers_out_}) raise(*peers, traffic.peers);
    return {traffic, 2 * most};
  }

 private:
  using ByRank = std::map<int64_t, std::array<int64_t, max_levels>>;
  static void raise(const ByRank& values, std::array<int64_t, max_levels>& most) {
    for (const auto& [rank, levels] : values) {
      for (size_t l = 0; l < max_levels; ++l) most[l] = std::max(most[l], levels[l]);
    }
  }
  const Topology& topology_;
  ByRank received_, sent_, peers_in_, peers_out_;
  std::set<std::pair<int64_t, int64_t>> pairs_;
};

int64_t one_by_one(const Topology& topology, const std::array<Phase::Moved, 2>& moved) {
  int64_t ps = 0;
  for (const Phase::Moved& phase : moved) ps += traffic_ps(topology, phase.traffic, Peers::number_and_rate, phase.copied);
  return ps;
}

// Round by round: chunk c is fetched while chunk c - 1 is shared; each takes its share of the
// bytes.
int64_t pipelined(const Topology& topology, const std::array<Phase::Moved, 2>& moved, int64_t chunks) {
  std::array<int64_t, 2> chunk_ps{};
  int64_t all = 0;
  for (size_t p = 0; p < 2; ++p) {
    Traffic chunk = moved[p].traffic;
    chunk.denominator *= chunks;
    chunk_ps[p] = traffic_ps(topology, chunk, Peers::number_and_rate, 0);
    if (topology.copy_mb_per_s > 0) all += transfer_ps(moved[p].copied, 1, topology.copy_mb_per_s);
  }
  for (int64_t round = 0; round <= chunks; ++round) all += std::max(round < chunks ? chunk_ps[0] : 0, round > 0 ? chunk_ps[1] : 0);
  return all;
}

// By phase and number.
using ByChunk = std::array<std::map<int32_t, Phase>, 2>;

// In shifts, where all chunks count as the fullest.
int64_t as_fullest(const Topology& topology, const std::array<Phase::Moved, 2>& moved, ByChunk& chunks, int64_t number) {
  std::array<Phase::Moved, 2> fullest = moved;
  for (size_t p = 0; p < 2; ++p) {
    fullest[p].traffic = {};
    fullest[p].traffic.denominator = 1;
    for (auto& [chunk, phase] : chunks[p]) {
      std::map<int64_t, int64_t> received;
      std::map<int64_t, int64_t> sent;
      const Traffic one = phase.count(received, sent).traffic;
      for (size_t l = 0; l < max_levels; ++l) {
        // As of all chunks: pipelined() gives each its share.
        fullest[p].traffic.bytes[l] = std::max(fullest[p].traffic.bytes[l], number * one.bytes[l]);
        fullest[p].traffic.peers[l] = std::max(fullest[p].traffic.peers[l], one.peers[l]);
      }
    }
  }
  return pipelined(topology, fullest, number);
}

Executed executed(const StepQuestion& q) {
  const RankTable ranks = make_rank_table({{*q.src_mesh, *q.dst_mesh}, {}});
  const bool crosses = q.dst_mesh != q.src_mesh;
  const int64_t copies = crosses ? 1 : mesh_copies(*q.src_mesh);
  const HeldBoxes before = make_held_boxes(*q.src_mesh, *q.before, q.tensor->shape, copies, ranks);
  const HeldBoxes after = make_held_boxes(*q.dst_mesh, q.step->state, q.tensor->shape, copies, ranks);
  const auto made = make_transfers({&before, &after, q.step, &ranks, q.topology, "test"});
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().message));
  const int64_t element = element_bytes(q.step->reduce_op && q.reduce_dtype ? *q.reduce_dtype : q.tensor->dtype);
  Phase first(*q.topology);
  Phase second(*q.topology);
  auto id = [&](const HeldBoxes& held, int32_t slot) {
    return ranks.global_ids[static_cast<size_t>(held.ranks[static_cast<size_t>(slot)])];
  };
  Phase& inside = q.step->phases == 2 ? second : first;
  CHECK(made->chunks == q.step->chunks);
  ByChunk chunks;
  const auto move = [&](size_t phase, int64_t from, int64_t to, const Box& box, int32_t chunk) {
    (phase == 0 ? first : inside).move(from, to, volume(box) * element);
    if (q.step->at_once > 0) chunks.at(phase).try_emplace(chunk, *q.topology).first->second.move(from, to, volume(box) * element);
  };
  for (const FirstTransfer& f : made->first_phase) move(0, id(before, f.from), id(after, f.to), f.box, f.chunk);
  for (size_t s = 0; s < made->slots.size(); ++s) {
    for (const Transfer& t : made->slots[s].transfers)
      move(1, id(t.fetched ? after : before, t.from), id(after, static_cast<int32_t>(s)), t.box, t.chunk);
  }
  Executed out;
  std::map<int64_t, int64_t> received;
  std::map<int64_t, int64_t> sent;
  const std::array<Phase::Moved, 2> moved{first.count(received, sent), second.count(received, sent)};
  if (q.step->at_once > 0) out.fullest_ps = as_fullest(*q.topology, moved, chunks, q.step->chunks);
  out.predicted_ps = q.step->chunks == 1 ? one_by_one(*q.topology, moved) : pipelined(*q.topology, moved, q.step->chunks);
  for (const auto& [rank, bytes] : received) out.wire_bytes = std::max(out.wire_bytes, bytes);
  for (const auto& [rank, bytes] : sent) out.sent_bytes = std::max(out.sent_bytes, bytes);
  return out;
}

int64_t largest_bytes(const Mesh& mesh, const State& state, const TensorMeta& tensor) {
  int64_t bytes = element_bytes(tensor.dtype);
  for (int64_t side : largest_box(state, tensor.shape, mesh_shape(mesh))) bytes *= side;
  return bytes;
}

// No finer tier: those hold exchanges above the collective that moves the same boxes.
void check_step(const StepQuestion& q, const StepCost& said) {
  const Executed is = executed(q);
  CHECK(said.wire_bytes == is.wire_bytes);
  if (q.step->at_once == 0) CHECK(said.predicted_ps == is.predicted_ps);
  if (q.step->at_once > 0) {
    // But for a slice of each transfer, as parts of a stage are near-equal.
    CHECK(said.predicted_ps <= is.fullest_ps);
    CHECK(is.fullest_ps <= said.predicted_ps + said.predicted_ps / 100);
  }
  CHECK(said.peak_bytes == largest_bytes(*q.src_mesh, *q.before, *q.tensor) + largest_bytes(*q.dst_mesh, q.step->state, *q.tensor) +
                               is.wire_bytes + is.sent_bytes);
}

// Every exchange of a plan; how many there were. `priced`: the plan's picoseconds are not rounded
// to nanoseconds.
int64_t check_plan(const Plan& plan, bool priced, std::set<std::string>& seen) {
  int64_t checked = 0;
  for (const PlannedRedistribution& r : plan.redistributions) {
    const Mesh& src = plan.meshes.meshes[r.request.src_mesh];
    const Mesh& dst = plan.meshes.meshes[r.request.dst_mesh];
    const State* before = &r.request.src;
    bool arrived = &src == &dst;
    for (const Step& step : r.steps) {
      const bool lands = !arrived && step.mesh == dst.name;
      StepQuestion q{
          &plan.topology, arrived ? &dst : &src, arrived || lands ? &dst : &src, &r.request.tensor, r.request.reduce_dtype, before, &step};
      arrived = arrived || lands;
      before = &step.state;
      if (step.op != Op::exchange) continue;
      std::ostringstream key;
      key << q.src_mesh->name << to_text(*q.before, mesh_shape(*q.src_mesh)) << q.dst_mesh->name
          << to_text(step.state, mesh_shape(*q.dst_mesh)) << step.phases << step.chunks << step.whole_pieces << step.fetched_by_all
          << step.laps << step.far_64ths << to_text(r.request.tensor.dtype);
      for (int64_t extent : r.request.tensor.shape) key << ' ' << extent;
      if (!seen.insert(key.str()).second) continue;
      CAPTURE(r.request.id);
      CAPTURE(key.str());
      StepCost said = price_step(q);
      CHECK(said.wire_bytes == step.wire_bytes);
      CHECK(said.peak_bytes == step.peak_bytes);
      CHECK((priced ? said.predicted_ps : ns_of_ps(said.predicted_ps) * 1000) == step.predicted_ps);
      check_step(q, said);
      ++checked;
    }
  }
  return checked;
}

}  // namespace

TEST_CASE("exchanges of golden plans cost what their execution counts") {
  int64_t checked = 0;
  int64_t two_phases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(MESHPLAN_TESTDATA) + "/plans")) {
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    auto plan = read_plan(text);
    REQUIRE_MESSAGE(plan.ok(), (entry.path().string()));
    // A take for every pair of a million ranks is more than a test can hold.
    if (rank_count(plan->meshes) > 20'000) continue;
    CAPTURE(entry.path().string());
    std::set<std::string> seen;
    checked += check_plan(*plan, false, seen);
    for (const PlannedRedistribution& r : plan->redistributions) {
      two_phases += std::count_if(r.steps.begin(), r.steps.end(), [](const Step& step) { return step.phases == 2; });
    }
  }
  MESSAGE(checked << " exchanges of golden plans, " << two_phases << " steps of two phases");
  CHECK(checked > 20);
  CHECK(two_phases > 0);
}

TEST_CASE("exchanges of recorded cases cost what their execution counts") {
  int64_t checked = 0;
  for (const auto& plans : {test::vector_plans(16), test::reshard_plans(64), test::workload_plans(64)}) {
    for (const test::VectorPlan& p : plans) {
      CAPTURE(p.name);
      std::set<std::string> seen;
      checked += check_plan(p.plan, true, seen);
    }
  }
  MESSAGE(checked << " exchanges of recorded cases");
  CHECK(checked > 150);
}

namespace {

// The next level further out, which is slower.
void add_level(test::Random& random, int64_t ranks, Topology& topology) {
  topology.levels.push_back({"l", ranks, 100'000 / (1 + static_cast<int64_t>(topology.levels.size()) * 7), 1000 * (1 + random.below(9)),
                             random.below(3) * 250, 100 - 10 * random.below(3)});
}

}  // namespace

TEST_CASE("exchanges with a far share cost what their execution counts, across meshes and on one, on random worlds") {
  constexpr uint64_t seed = 4713;
  CAPTURE(seed);
  test::Random random(seed);
  int64_t across = 0;
  int64_t on_one_mesh = 0;
  for (int round = 0; round < 4000; ++round) {
    CAPTURE(round);
    const std::vector<int64_t> sizes{1 + random.below(6), 1 + random.below(4)};
    const bool crosses = round % 2 == 0;
    const std::vector<int64_t> dst_sizes = crosses ? std::vector<int64_t>{1 + random.below(4), 1 + random.below(3)} : sizes;
    std::vector<int64_t> ids;
    for (int64_t id = 0; id < 28; ++id) ids.push_back(id);
    const auto some = [&](int64_t count) {
      if (random.one_in(2)) random.shuffle(ids);
      return std::vector<int64_t>(ids.begin(), ids.begin() + count);
    };
    MeshTable table;
    REQUIRE(add_root(table, "train", sizes[0] * sizes[1], some(sizes[0] * sizes[1]), {{"a", sizes[0]}, {"b", sizes[1]}}).ok());
    REQUIRE(
        add_root(table, "serve", dst_sizes[0] * dst_sizes[1], some(dst_sizes[0] * dst_sizes[1]), {{"x", dst_sizes[0]}, {"y", dst_sizes[1]}})
            .ok());
    Topology topology;
    const int64_t inner = 2 + random.below(6);
    for (const int64_t ranks : {inner, inner * (1 + random.below(3)), int64_t{1} << 20}) {
      if (topology.levels.size() == 1 && random.one_in(2)) continue;
      add_level(random, ranks, topology);
    }
    if (random.one_in(3)) topology.copy_mb_per_s = 1000 * (1 + random.below(900));
    TensorMeta tensor;
    tensor.dtype = DType::float32;
    const size_t tensor_rank = static_cast<size_t>(random.below(4));
    for (size_t d = 0; d < tensor_rank; ++d) tensor.shape.push_back(random.one_in(3) ? 144 : random.below(20));
    State src = test::random_state(random, sizes, tensor_rank, 0, 2);
    State dst = test::random_state(random, dst_sizes, tensor_rank, 0, 2);
    src.partial.clear();
    dst.partial.clear();
    if (!crosses && src == dst) continue;
    Step step;
    step.op = Op::exchange;
    for (size_t m = 0; m < dst_sizes.size(); ++m) step.mesh_dims.push_back({static_cast<int32_t>(m), 1, dst_sizes[m]});
    step.state = dst;
    if (crosses) step.mesh = "serve";
    const auto priced_with = [&](int64_t far_64ths) {
      step.far_64ths = far_64ths;
      const StepQuestion q{&topology, &table.meshes[0], &table.meshes[crosses ? 1 : 0], &tensor, std::nullopt, &src, &step};
      const StepCost cost = price_step(q);
      check_step(q, cost);
      return cost;
    };
    const StepCost near = priced_with(0);
    const StepCost some_far = priced_with(1 + random.below(63));
    CHECK(some_far.wire_bytes == near.wire_bytes);
    (crosses ? across : on_one_mesh) += some_far.predicted_ps != near.predicted_ps;
  }
  MESSAGE(across << " across meshes take another time with a far share, " << on_one_mesh << " on one mesh");
  CHECK(across > 100);
  CHECK(on_one_mesh > 50);
}

TEST_CASE("any exchange costs what its execution counts, in one phase and in two, on random worlds") {
  constexpr uint64_t seed = 4711;
  CAPTURE(seed);
  test::Random random(seed);
  int64_t two_phases = 0;
  int64_t by_all = 0;
  for (int round = 0; round < 4000; ++round) {
    test::WorldOptions options;
    options.dim_sizes = {1, 2, 2, 3, 4, 5, 6, 8};
    options.max_dims = 4;
    options.max_world = 48;
    options.permuted_ranks = true;
    const MeshTable table = test::random_table(random, options);
    const Mesh& mesh = table.meshes.front();
    const std::vector<int64_t> sizes = mesh_shape(mesh);
    Topology topology;
    const int64_t inner = 1 + random.below(8);
    const int64_t middle = inner * (1 + random.below(4));
    for (int64_t ranks : {inner, middle, int64_t{1} << 20}) {
      if (!topology.levels.empty() && ranks == middle && random.one_in(2)) continue;
      add_level(random, ranks, topology);
    }
    if (random.one_in(3)) topology.copy_mb_per_s = 1000 * (1 + random.below(900));
    TensorMeta tensor;
    tensor.dtype = DType::float32;
    const size_t tensor_rank = static_cast<size_t>(random.below(4));
    for (size_t d = 0; d < tensor_rank; ++d) tensor.shape.push_back(random.one_in(3) ? 48 : random.below(20));
    const State src = test::random_state(random, sizes, tensor_rank, 0, 2);
    State dst = test::random_state(random, sizes, tensor_rank, 0, 2);
    // An exchange makes nothing pending: what stays so was so before, and nothing else uses its
    // mesh dim.
    dst.partial.clear();
    for (const PendingSubAxis& p : src.partial) {
      bool used = false;
      for (const auto& order : dst.shards) used = used || std::find(order.begin(), order.end(), p.sub_axis) != order.end();
      if (!used && random.one_in(2)) dst.partial.push_back(p);
    }
    Step step;
    step.op = Op::exchange;
    for (size_t m = 0; m < sizes.size(); ++m) step.mesh_dims.push_back({static_cast<int32_t>(m), 1, sizes[m]});
    step.state = dst;
    step.whole_pieces = random.one_in(2);
    if (src.partial == dst.partial && random.one_in(2)) {
      step.phases = 2;
      step.whole_pieces = false;
      step.fetched_by_all = random.one_in(2);
      step.laps = 1 + random.below(2);
      by_all += step.fetched_by_all;
      if (random.one_in(2)) step.chunks = 1 + random.below(6);
      ++two_phases;
    }
    if (src.partial != dst.partial) step.reduce_op = ReduceOp::sum;
    CAPTURE(round);
    CAPTURE(to_text(src, sizes));
    CAPTURE(to_text(dst, sizes));
    CAPTURE(step.phases);
    CAPTURE(step.whole_pieces);
    CAPTURE(step.fetched_by_all);
    CAPTURE(step.laps);
    StepQuestion q{&topology, &mesh, &mesh, &tensor, std::nullopt, &src, &step};
    if (src == dst) continue;
    check_step(q, price_step(q));
  }
  CHECK(two_phases > 500);
  CHECK(by_all > 200);
}
