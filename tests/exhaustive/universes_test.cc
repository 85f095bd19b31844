// Redistributions between meshes of several universes: planned, verified, written and read back, replayed on the host, and followed
// rank by rank: who sends what to whom, by global ids that this file works out from the rank lists alone.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "base/seed.h"
#include "cost/step_cost.h"
#include "cost/topology.h"
#include "planner/planner.h"
#include "replay_host/host.h"
#include "transfer/exchange_cut.h"
#include "transfer/step_transfers.h"
#include "verify/random_world.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

using test::Random;

// A root and the ranks that it was given, row-major.
struct Root {
  std::vector<std::pair<std::string, int64_t>> dims;
  std::vector<int64_t> ranks;
};

std::vector<int64_t> run(int64_t first, int64_t count) {
  std::vector<int64_t> ranks;
  for (int64_t i = 0; i < count; ++i) ranks.push_back(first + i);
  return ranks;
}

MeshTable table_of(const std::vector<Root>& roots) {
  MeshTable table;
  for (size_t i = 0; i < roots.size(); ++i) {
    const auto world = static_cast<int64_t>(roots[i].ranks.size());
    REQUIRE(add_root(table, "root" + std::to_string(i), world, roots[i].ranks, roots[i].dims).ok());
  }
  return table;
}

Topology hosts_of(int64_t ranks) {
  Topology topology;
  topology.levels = {{"inside", ranks, 370'000, 10'000, 500}, {"across", 1'048'576, 45'000, 25'000, 500}};
  return topology;
}

struct Follower {
  const MeshTable& table;
  const std::vector<Root>& roots;
  std::string place;

  // What every rank of a root has in a state, by the list of its ranks.
  [[nodiscard]] std::map<int64_t, Box> boxes(size_t root, const State& state, const std::vector<int64_t>& shape) const {
    const std::vector<int64_t> sizes = mesh_shape(table.meshes[root]);
    std::map<int64_t, Box> held;
    for (size_t i = 0; i < roots[root].ranks.size(); ++i)
      held[roots[root].ranks[i]] = box_of(state, shape, sizes, coordinates_of(static_cast<int64_t>(i), sizes));
    return held;
  }

  // Every transfer of a step comes from a rank that has the box, and every rank of the target has its box afterwards, whole, each
  // element of every contribution once. No other rank takes part.
  void follow(const Plan& plan, const PlannedRedistribution& r, const RankTable& ranks) const {
    const std::vector<int64_t>& shape = r.request.tensor.shape;
    State state = r.request.src;
    size_t on = r.request.src_mesh;
    for (const Step& step : r.steps) {
      size_t next = on;
      if (!step.mesh.empty()) next = find_mesh(table, step.mesh).value();
      const int64_t copies = 1;
      const HeldBoxes before = make_held_boxes(plan.meshes.meshes[on], state, shape, copies, ranks);
      const HeldBoxes after = make_held_boxes(plan.meshes.meshes[next], step.state, shape, copies, ranks);
      const auto made = make_transfers({&before, &after, &step, &ranks, &plan.topology, "test"});
      REQUIRE_MESSAGE(made.ok(), place << (made.ok() ? "" : made.error().message));
      const auto has = boxes(on, state, shape);
      const auto wants = boxes(next, step.state, shape);
      REQUIRE(made->slots.size() == wants.size());
      std::set<int64_t> met;
      // What ranks of the target have fetched, by rank, box and chunk.
      std::set<std::tuple<int64_t, std::string, int32_t>> fetched;
      for (const FirstTransfer& f : made->first_phase) {
        const int64_t from = ranks.global_ids[static_cast<size_t>(before.ranks[static_cast<size_t>(f.from)])];
        const int64_t to = ranks.global_ids[static_cast<size_t>(after.ranks[static_cast<size_t>(f.to)])];
        REQUIRE_MESSAGE(has.count(from) == 1, place << ": rank " << from << " is not on the source mesh");
        CHECK_MESSAGE(intersect(f.box, has.at(from)) == f.box, place << ": rank " << from << " lacks what is fetched");
        CHECK_MESSAGE(fetched.emplace(to, to_text(f.box), f.chunk).second, place << ": rank " << to << " fetches twice");
      }
      for (size_t s = 0; s < made->slots.size(); ++s) {
        const int64_t id = ranks.global_ids[static_cast<size_t>(after.ranks[s])];
        REQUIRE_MESSAGE(wants.count(id) == 1, place << ": rank " << id << " is not on the target mesh");
        met.insert(id);
        int64_t elements = 0;
        for (const Transfer& transfer : made->slots[s].transfers) {
          const HeldBoxes& sender = transfer.fetched ? after : before;
          const int64_t from = ranks.global_ids[static_cast<size_t>(sender.ranks[static_cast<size_t>(transfer.from)])];
          if (transfer.fetched) {
            CHECK_MESSAGE(fetched.count({from, to_text(transfer.box), transfer.chunk}) == 1,
                          place << ": rank " << from << " passes on what it has not fetched");
          } else {
            REQUIRE_MESSAGE(has.count(from) == 1, place << ": rank " << from << " is not on the source mesh");
            CHECK_MESSAGE(intersect(transfer.box, has.at(from)) == transfer.box, place << ": rank " << from << " lacks what it sends");
          }
          CHECK_MESSAGE(intersect(transfer.box, wants.at(id)) == transfer.box, place << ": rank " << id << " gets what it does not want");
          elements += volume(transfer.box);
        }
        if (step.op == Op::exchange) CHECK_MESSAGE(elements == made->contributions * volume(wants.at(id)), place << ": rank " << id);
      }
      CHECK(met.size() == wants.size());
      state = step.state;
      on = next;
    }
    CHECK_MESSAGE(on == r.request.dst_mesh, place << ": it does not arrive");
  }
};

int64_t in_two_phases = 0;  // plans that were tried so
int64_t with_far_share = 0;

// Replayed on host, and every transfer followed.
void check_replay(const std::vector<Root>& roots, const MeshTable& table, const Plan& plan, const std::string& place) {
  ReplayOptions options;
  options.threads = 1;
  const auto report = replay_on_host(plan, options);
  REQUIRE_MESSAGE(report.ok(), place << (report.ok() ? "" : report.error().message));
  std::set<int64_t> all;
  for (const Root& root : roots) all.insert(root.ranks.begin(), root.ranks.end());
  CHECK_MESSAGE(report->ranks == static_cast<int64_t>(all.size()), place);
  CHECK_MESSAGE(all_right(*report), place << ": " << wrong_elements(*report) << " elements wrong: " << plan.redistributions[0].trace);
  const RankTable ranks = make_rank_table(plan.meshes);
  CHECK(ranks.global_ids == std::vector<int64_t>(all.begin(), all.end()));
  Follower{table, roots, place}.follow(plan, plan.redistributions[0], ranks);
}

// The same plan with its exchange across in two phases, in so many chunks, where that is allowed;
// what a step takes may be more.
bool check_in_two_phases(const std::vector<Root>& roots, const MeshTable& table, Plan plan, int64_t chunks, Fetchers fetchers,
                         const std::string& place) {
  PlannedRedistribution& r = plan.redistributions[0];
  if (plan.topology.levels.size() < 2) return false;
  size_t at = 0;
  while (at < r.steps.size() && r.steps[at].mesh != table.meshes[r.request.dst_mesh].name) ++at;
  if (at == r.steps.size() || r.steps[at].op != Op::exchange || r.steps[at].reduce_op) return false;
  r.steps[at].phases = 2;
  r.steps[at].chunks = chunks;
  set_fetchers(fetchers, r.steps.own()[at]);
  const std::string by = std::string(all_fetch(fetchers) ? " by all" : "") + (laps_of(fetchers) > 1 ? " in laps" : "");
  r.steps[at].whole_pieces = false;
  price_redistribution(r, plan.meshes, plan.topology);
  plan.totals = r.totals;
  r.alternatives.clear();
  r.proven_gap_ps = (ns_of_ps(r.totals.predicted_ps) - ns_of_ps(r.totals.lower_bound_ps)) * 1000;
  if (r.proven_gap_ps > 0) r.shortcuts.add(Shortcut::few_landings);
  if (const Status status = verify_plan(plan); !status) FAIL_CHECK(place << " in two phases" << by << ": " << status.error().message);
  check_replay(roots, table, plan, place + " in two phases" + by + " and " + std::to_string(chunks) + " chunks");
  return true;
}

// The same with a far share.
bool check_with_far_share(const std::vector<Root>& roots, const MeshTable& table, Plan plan, int64_t far_64ths, const std::string& place) {
  PlannedRedistribution& r = plan.redistributions[0];
  if (plan.topology.levels.size() < 2) return false;
  size_t at = 0;
  while (at < r.steps.size() && r.steps[at].mesh != table.meshes[r.request.dst_mesh].name) ++at;
  if (at == r.steps.size() || r.steps[at].op != Op::exchange || r.steps[at].reduce_op) return false;
  Step& step = r.steps.own()[at];
  step.phases = step.chunks = 1;
  set_fetchers(Fetchers::wanting, step);
  step.whole_pieces = false;
  step.far_64ths = far_64ths;
  price_redistribution(r, plan.meshes, plan.topology);
  plan.totals = r.totals;
  r.alternatives.clear();
  r.proven_gap_ps = (ns_of_ps(r.totals.predicted_ps) - ns_of_ps(r.totals.lower_bound_ps)) * 1000;
  if (r.proven_gap_ps > 0) r.shortcuts.add(Shortcut::few_landings);
  if (const Status status = verify_plan(plan); !status) FAIL_CHECK(place << " with a far share: " << status.error().message);
  check_replay(roots, table, plan, place + " with a far share");
  return true;
}

// The plan of one request, all of it checked.
void check(const std::vector<Root>& roots, const Topology& topology, const Request& request, const std::string& place) {
  const MeshTable table = table_of(roots);
  PlanOptions options;
  options.work_budget = 400'000;
  const PlanOutcome outcome = plan_requests(table, topology, {request}, options, "sha256:" + std::string(64, '0'));
  REQUIRE_MESSAGE(outcome.failures.empty(), place << (outcome.failures.empty() ? "" : outcome.failures[0].error.message));
  if (const Status status = verify_plan(outcome.plan); !status) FAIL_CHECK(place << ": " << status.error().message);
  const std::string written = write_plan(outcome.plan);
  const Result<Plan> read = read_plan(written);
  REQUIRE_MESSAGE(read.ok(), place << (read.ok() ? "" : read.error().message));
  CHECK_MESSAGE(write_plan(*read) == written, place << ": written otherwise after reading");
  if (const Status status = verify_plan(*read); !status) FAIL_CHECK(place << ": after reading: " << status.error().message);
  check_replay(roots, table, *read, place);
  for (const int64_t chunks : {1, 3}) {
    for (const Fetchers fetchers : {Fetchers::wanting, Fetchers::all, Fetchers::all_in_laps, Fetchers::wanting_in_laps})
      in_two_phases += check_in_two_phases(roots, table, outcome.plan, chunks, fetchers, place);
  }
  with_far_share += check_with_far_share(roots, table, outcome.plan, 27, place);
}

Request request_of(const std::vector<Root>& roots, const std::string& src, const std::string& dst, const std::vector<int64_t>& shape) {
  const auto sizes = [&](size_t root) {
    std::vector<int64_t> list;
    for (const auto& [name, size] : roots[root].dims) list.push_back(size);
    return list;
  };
  Request request;
  request.id = src + " to " + dst;
  request.dst_mesh = 1;
  request.tensor = {shape, DType::float32};
  request.src = *parse_state(src, sizes(0), shape.size());
  request.dst = *parse_state(dst, sizes(1), shape.size());
  return request;
}

TEST_CASE("train and serve on ranks that people use") {
  const Root train{{{"dp", 2}, {"tp", 4}}, run(0, 8)};
  const Root serve{{{"ep", 4}, {"tp", 2}}, run(8, 8)};
  for (const char* dst : {"RS(0)", "S(1)S(0)", "RR", "S(0)[1]S(0)[0]", "S(0)[0]S(0)[1]"}) {
    for (const char* src : {"S(0)S(1)", "P(sum)S(0)", "RR", "S(1)[1]S(1)[0]", "P(avg)P(sum)"}) {
      check({train, serve}, hosts_of(8), request_of({train, serve}, src, dst, {16, 12}), "train to serve");
      check({serve, train}, hosts_of(4), request_of({serve, train}, src, dst, {10, 7}), "serve to train");
    }
  }
  // 8 and 4 of a world of 12, and one that lies inside the other.
  const Root eight{{{"dp", 8}}, run(0, 8)};
  const Root four{{{"tp", 4}}, run(8, 4)};
  const Root inner{{{"tp", 4}}, {6, 7, 2, 3}};
  const Root one{{{"x", 1}}, {31}};
  const Root fifth{{{"x", 1}}, {5}};
  for (const Root& other : {four, inner, one, fifth}) {
    for (const char* dst : {"R", "S(0)", "S(1)"}) {
      for (const char* src : {"R", "S(0)", "S(1)", "P(sum)"}) {
        check({eight, other}, hosts_of(8), request_of({eight, other}, src, dst, {24, 5}), "eight to others");
        check({other, eight}, hosts_of(8), request_of({other, eight}, src, dst, {24, 5}), "others to eight");
      }
    }
  }
  // 64 ranks to ranks 64 to 95 of 96.
  const Root many{{{"dp", 8}, {"tp", 8}}, run(0, 64)};
  const Root rest{{{"pp", 4}, {"tp", 8}}, run(64, 32)};
  check({many, rest}, hosts_of(8), request_of({many, rest}, "S(0)S(1)", "S(0)S(1)", {64, 64}), "64 to 32");
  check({many, rest}, hosts_of(8), request_of({many, rest}, "S(0)[0]S(0)[1]", "RS(1)", {64, 64}), "64 to 32");
}

// Two or three roots on ranks that are disjoint, the same or in part the same, in any order.
std::vector<Root> random_roots(Random& random) {
  static const std::vector<int64_t> sizes{1, 2, 2, 3, 4};
  std::vector<Root> roots;
  const int64_t count = 2 + random.below(2);
  const int64_t ids = 4 + random.below(40);  // ranks are drawn from so many
  for (int64_t i = 0; i < count; ++i) {
    Root root;
    int64_t world = 1;
    for (int64_t d = 1 + random.below(3); d > 0; --d) {
      int64_t size = random.pick(sizes);
      if (world * size > 16 || world * size > ids) size = 1;
      world *= size;
      root.dims.emplace_back(std::string(1, static_cast<char>('a' + d)), size);
    }
    if (random.one_in(2)) {
      root.ranks = run(random.below(ids - world + 1), world);
    } else {
      std::vector<int64_t> all = run(0, ids);
      random.shuffle(all);
      root.ranks.assign(all.begin(), all.begin() + world);
      if (random.one_in(2)) std::sort(root.ranks.begin(), root.ranks.end());
    }
    if (i > 0 && random.one_in(6)) {
      root.dims = roots[0].dims;
      root.ranks = roots[0].ranks;
    }
    roots.push_back(std::move(root));
  }
  return roots;
}

TEST_CASE("random pairs of universes") {
  const uint64_t used_seed = test::seed_or(20261122);
  Random random(used_seed);
  const char* more = std::getenv("MESHPLAN_EXHAUSTIVE");  // NOLINT(concurrency-mt-unsafe)
  const int64_t rounds = more == nullptr ? 250 : 20'000;
  for (int64_t round = 0; round < rounds; ++round) {
    const std::vector<Root> roots = random_roots(random);
    const MeshTable table = table_of(roots);
    Request request;
    request.id = "r";
    const auto rank = static_cast<size_t>(1 + random.below(3));
    for (size_t d = 0; d < rank; ++d) request.tensor.shape.push_back(1 + random.below(20));
    request.tensor.dtype = DType::float32;
    request.src_mesh = static_cast<size_t>(random.below(2));
    request.dst_mesh = 1 - request.src_mesh;
    request.src = test::random_state(random, mesh_shape(table.meshes[request.src_mesh]), rank, random.one_in(2) ? 0 : random.below(4), 2);
    request.dst = test::random_state(random, mesh_shape(table.meshes[request.dst_mesh]), rank, 0, 2);
    request.dst.partial.clear();
    std::string place = "seed " + std::to_string(used_seed) + ", round " + std::to_string(round) + ":";
    for (const size_t root : {request.src_mesh, request.dst_mesh}) {
      place += " " + to_text(table.meshes[root]) + " on " + rank_runs(*table.meshes[root].universe) + " " +
               to_text(root == request.src_mesh ? request.src : request.dst, mesh_shape(table.meshes[root]));
    }
    check(roots, random.one_in(3) ? uniform_topology() : hosts_of(1 + random.below(9)), request, place);
  }
  CHECK(in_two_phases > rounds / 4);
  CHECK(with_far_share > rounds / 16);
}

}  // namespace
}  // namespace meshplan
