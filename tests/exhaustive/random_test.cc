// Random worlds, larger and stranger than the exhaustive ones: up to four mesh dims of sizes 1 to 6, permuted rank maps, any flattens,
// views of the mesh, requests across them, backward, reduce_dtype, any target order, counts. Planned by every planner, written and read
// back, verified, replayed on the host. MESHPLAN_TEST_SEED gives another seed.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "../cost/some_protocols.h"
#include "base/seed.h"
#include "cost/topology.h"
#include "planner/planner.h"
#include "replay_host/host.h"
#include "verify/random_world.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

using test::Random;

Topology random_topology(Random& random) {
  Topology topology;
  if (random.one_in(3)) {
    topology.levels = {{"flat", 1'048'576, 100'000, 10'000, 500}};
    return topology;
  }
  const int64_t host = 1 + random.below(8);
  topology.levels.push_back({"inside", host, 370'000, 10'000, random.one_in(2) ? 500 : 0});
  if (random.one_in(3)) topology.levels.push_back({"rack", host * (1 + random.below(4)), 90'000, 15'000, 500});
  topology.levels.push_back({"across", 1'048'576, 45'000, 25'000, random.one_in(2) ? 500 : 0});
  if (random.one_in(4)) topology.copy_mb_per_s = 1'000'000;
  if (random.one_in(3)) return test::with_random_protocols(random, topology);
  return topology;
}

// The root and, often, a slice and a transposed view of it.
MeshTable random_views(Random& random) {
  MeshTable table = test::random_table(random, {{1, 2, 2, 3, 4, 6}, 4, 48, true});
  const Mesh root = table.meshes.front();
  std::vector<std::string> names = dim_names(root);
  if (names.size() > 1 && random.one_in(2)) {
    std::vector<std::string> kept;
    for (const std::string& name : names) {
      if (random.one_in(2)) kept.push_back(name);
    }
    if (!kept.empty()) REQUIRE(add_slice(table, "part", "mesh", kept).ok());
  }
  if (names.size() > 1 && random.one_in(2)) {
    random.shuffle(names);
    REQUIRE(add_transpose(table, "turned", "mesh", names).ok());
  }
  return table;
}

Request random_question(Random& random, const MeshTable& table, PlannerKind planner) {
  const auto meshes = static_cast<int64_t>(table.meshes.size());
  Request request;
  request.id = "r";
  request.src_mesh = static_cast<size_t>(random.below(meshes));
  request.dst_mesh = request.src_mesh;
  if (planner == PlannerKind::optimal && random.one_in(4)) request.dst_mesh = static_cast<size_t>(random.below(meshes));
  const auto rank = static_cast<size_t>(random.one_in(20) ? 0 : 1 + random.below(3));
  static const std::vector<int64_t> extents{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 16, 18, 24};
  for (size_t d = 0; d < rank; ++d) request.tensor.shape.push_back(random.one_in(80) ? 0 : random.pick(extents));
  static const std::vector<DType> dtypes{DType::float32, DType::float64, DType::bfloat16, DType::int32};
  request.tensor.dtype = random.pick(dtypes);
  const int64_t kind = random.one_in(2) ? 0 : random.below(4);
  const int64_t shuffled = planner == PlannerKind::greedy ? 0 : 2;
  request.src = test::random_state(random, mesh_shape(table.meshes[request.src_mesh]), rank, kind, shuffled);
  request.dst = test::random_state(random, mesh_shape(table.meshes[request.dst_mesh]), rank, kind, shuffled);
  const bool crosses = request.src_mesh != request.dst_mesh;
  if (crosses || !random.one_in(3)) request.dst.partial.clear();
  if (random.one_in(4)) request.direction = Direction::backward;
  if (is_floating(request.tensor.dtype) && random.one_in(3)) request.reduce_dtype = DType::float32;
  if (planner == PlannerKind::optimal && random.one_in(5)) {
    request.any_dst_order = true;
    for (auto& list : request.dst.shards) std::sort(list.begin(), list.end());
  }
  request.count = 1 + random.below(5);
  return request;
}

std::string text_of(const MeshTable& table, const Request& request, const PlanOptions& options, const Topology& topology) {
  const Mesh& src_mesh = table.meshes[request.src_mesh];
  const Mesh& dst_mesh = table.meshes[request.dst_mesh];
  std::string text = src_mesh.name + " " + to_text(src_mesh) + (src_mesh.universe->ranks.empty() ? "" : " (permuted)");
  if (request.src_mesh != request.dst_mesh) text += " to " + dst_mesh.name + " " + to_text(dst_mesh);
  for (const Flatten& flatten : table.flattens) text += " " + flatten.name;
  text += ", shape";
  for (int64_t n : request.tensor.shape) text += " " + std::to_string(n);
  text += std::string(" ") + to_text(request.tensor.dtype) + ": " + to_text(request.src, mesh_shape(src_mesh)) + " -> " +
          to_text(request.dst, mesh_shape(dst_mesh));
  text += std::string(" by ") + to_text(options.planner) + (options.groups == GroupPolicy::any ? " any" : " declared");
  if (request.direction == Direction::backward) text += " backward";
  if (request.any_dst_order) text += " any order";
  if (request.reduce_dtype) text += std::string(" reduced in ") + to_text(*request.reduce_dtype);
  text += " memory " + std::to_string(options.max_memory_bytes) + (options.one_reduction ? " one_reduction" : "") + " levels";
  for (const TopologyLevel& level : topology.levels) text += " " + std::to_string(level.ranks);
  return text;
}

struct RandomTally {
  int64_t planned = 0;
  int64_t refused = 0;
  int64_t replayed = 0;
};

void check(const MeshTable& table, const Topology& topology, const Request& request, const PlanOptions& options, const std::string& place,
           RandomTally& tally) {
  PlanOutcome outcome = plan_requests(table, topology, {request}, options, "sha256:" + std::string(64, '0'));
  if (!outcome.failures.empty()) {
    ++tally.refused;
    CHECK(outcome.failures[0].error.fault == Fault::no_plan);
    const bool limited = options.max_memory_bytes > 0 || options.one_reduction;
    if (request.dst.partial.empty() && !limited) FAIL_CHECK(place << ": refused: " << outcome.failures[0].error.message);
    return;
  }
  ++tally.planned;
  if (const Status status = verify_plan(outcome.plan); !status) FAIL_CHECK(place << ": " << status.error().message);
  const std::string written = write_plan(outcome.plan);
  const Result<Plan> read = read_plan(written);
  if (!read) {
    FAIL_CHECK(place << ": the written plan cannot be read: " << read.error().message);
    return;
  }
  if (write_plan(*read) != written) FAIL_CHECK(place << ": the plan is written otherwise after reading");
  if (const Status status = verify_plan(*read); !status) FAIL_CHECK(place << ": after reading: " << status.error().message);
  ReplayOptions replay_options;
  replay_options.threads = 1;
  auto report = replay_on_host(*read, replay_options);
  if (!report) {
    FAIL_CHECK(place << ": replay: " << report.error().message);
  } else if (!all_right(*report)) {
    FAIL_CHECK(place << ": " << wrong_elements(*report) << " elements wrong when replayed: " << outcome.plan.redistributions[0].trace);
  } else {
    ++tally.replayed;
  }
}

TEST_CASE("random worlds: planned, written, read, verified and replayed") {
  const uint64_t used_seed = test::seed_or(20250612);
  Random random(used_seed);
  RandomTally tally;
  const char* more = std::getenv("MESHPLAN_EXHAUSTIVE");  // NOLINT(concurrency-mt-unsafe)
  const int64_t rounds = more == nullptr ? 150 : 30'000;
  for (int64_t round = 0; round < rounds; ++round) {
    const MeshTable table = random_views(random);
    const Topology topology = random_topology(random);
    for (PlannerKind planner : {PlannerKind::greedy, PlannerKind::graph, PlannerKind::optimal}) {
      PlanOptions options;
      options.planner = planner;
      options.rules = planner == PlannerKind::optimal || random.one_in(5) ? Rules::native : Rules::dtensor;
      options.groups = random.one_in(2) ? GroupPolicy::any : GroupPolicy::declared;
      options.merge = !random.one_in(4);
      options.work_budget = 400'000;
      if (planner == PlannerKind::optimal && random.one_in(4)) options.max_memory_bytes = random.one_in(2) ? -1 : 64 + random.below(20'000);
      if (random.one_in(6)) options.one_reduction = true;
      const Request request = random_question(random, table, planner);
      const std::string place =
          "seed " + std::to_string(used_seed) + ", round " + std::to_string(round) + ": " + text_of(table, request, options, topology);
      try {
        check(table, topology, request, options, place, tally);
      } catch (const InternalError& error) {
        FAIL_CHECK(place << ": " << std::string(error.what()));
      }
    }
  }
  MESSAGE(tally.planned << " planned, " << tally.refused << " refused, " << tally.replayed << " replayed");
  CHECK(tally.replayed > rounds);
}

// Found by the random worlds: an exchange that carries a reduction to another mesh lists the mesh dims of the target, whose numbers say
// nothing about the source's pending ones; and a mesh dim of size 1 has nothing to reduce there.
TEST_CASE("reductions across meshes") {
  RandomTally tally;
  PlanOptions options;
  auto across = [&](const std::vector<std::pair<std::string, int64_t>>& dims, const std::vector<std::string>& view, const std::string& src,
                    const std::string& dst) {
    MeshTable table;
    int64_t world = 1;
    for (const auto& [name, size] : dims) world *= size;
    REQUIRE(add_root(table, "mesh", world, {}, dims).ok());
    REQUIRE(add_transpose(table, "view", "mesh", view).ok());
    Request request;
    request.id = src + " to " + dst;
    request.dst_mesh = 1;
    request.tensor.shape = {8, 6};
    request.src = *parse_state(src, mesh_shape(table.meshes[0]), 2);
    request.dst = *parse_state(dst, mesh_shape(table.meshes[1]), 2);
    check(table, uniform_topology(), request, options, request.id, tally);
  };
  across({{"a", 2}, {"b", 4}, {"c", 3}}, {"a", "c", "b"}, "S(0)P(sum)R", "RRS(0)");
  across({{"a", 2}, {"b", 4}}, {"b", "a"}, "P(avg)S(0)", "S(1)S(0)");
  across({{"a", 4}, {"b", 1}}, {"b", "a"}, "S(0)P(min)", "RS(1)");
  across({{"a", 1}, {"b", 1}}, {"b", "a"}, "P(max)R", "RR");
  CHECK(tally.replayed == 4);
}

}  // namespace
}  // namespace meshplan
