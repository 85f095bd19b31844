// The recount against what every rank really sends and receives, and against what the planners'
// prices say.
#include <doctest/doctest.h>

#include <array>

#include "../cost/some_protocols.h"
#include "base/check.h"
#include "base/seed.h"
#include "cost/step_cost.h"
#include "cost/topology.h"
#include "planner/planner.h"
#include "verify/exchange_oracle.h"
#include "verify/random_levels.h"
#include "verify/random_world.h"
#include "verify/recount.h"
#include "verify/verify.h"

namespace meshplan {
namespace {

using test::Random;
using verification::Counted;
using verification::Exchanged;
using verification::ExchangeView;

constexpr uint64_t recount_seed = 20251122;

// A mesh of some dims over a world, or a view of it that has copies or another order.
MeshTable random_meshes(Random& random) {
  test::WorldOptions options;
  options.dim_sizes = {1, 2, 2, 2, 3, 4, 4, 5, 6, 8};
  options.max_dims = 4;
  options.max_world = 48;
  options.permuted_ranks = random.one_in(4);
  MeshTable table = test::random_table(random, options);
  std::vector<std::string> names = dim_names(table.meshes.front());
  std::vector<std::string> some = names;
  std::erase_if(some, [&](const std::string&) { return random.one_in(3); });
  if (!some.empty()) (void)add_slice(table, "slice", "mesh", some);
  random.shuffle(names);
  (void)add_transpose(table, "turned", "mesh", names);
  return table;
}

// Parts of mesh dims, each of which shards a tensor dim, is pending or holds copies.
State random_parts(Random& random, const std::vector<int64_t>& sizes, size_t rank, bool pending) {
  State state;
  state.shards.resize(rank);
  for (size_t m = 0; m < sizes.size(); ++m) {
    int64_t before = 1;
    while (before < sizes[m] || (sizes[m] == 1 && before == 1)) {
      int64_t size = sizes[m] / before;
      for (const int64_t factor : {2, 3}) {
        if (size % factor == 0 && size > factor && random.one_in(4)) size = factor;
      }
      const SubAxis sub_axis{static_cast<int32_t>(m), before, size};
      const int64_t choice = random.below(6);
      if (choice == 0 && pending) state.partial.push_back({sub_axis, ReduceOp::sum});
      if (choice >= 2 && rank > 0) state.shards[static_cast<size_t>(random.below(static_cast<int64_t>(rank)))].push_back(sub_axis);
      if (sizes[m] == 1) break;
      before *= size;
    }
  }
  for (auto& list : state.shards) {
    if (random.one_in(2)) random.shuffle(list);
  }
  return state;
}

std::vector<int64_t> random_shape(Random& random) {
  static const std::vector<int64_t> extents{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 16, 24, 32, 48, 64, 96};
  std::vector<int64_t> shape;
  const int64_t rank = random.one_in(20) ? 0 : 1 + random.below(3);
  for (int64_t d = 0; d < rank; ++d) shape.push_back(random.one_in(60) ? 0 : random.pick(extents));
  return shape;
}

struct Case {
  MeshTable table;
  size_t src_mesh = 0;
  size_t dst_mesh = 0;
  TensorMeta tensor;
  State src;
  State dst;
  Plan plan;
  Step step;
};

// Some of what is pending, or a part of it, stays so; the rest of its mesh dim shards a tensor dim or is free.
void keep_some(Random& random, const std::vector<PendingSubAxis>& pending, State& after) {
  const auto is_on_dim = [&](const SubAxis& sub_axis) {
    return std::any_of(pending.begin(), pending.end(), [&](const PendingSubAxis& p) { return p.sub_axis.mesh_dim == sub_axis.mesh_dim; });
  };
  for (auto& list : after.shards) std::erase_if(list, is_on_dim);
  const bool all = random.one_in(3);
  for (const PendingSubAxis& p : pending) {
    SubAxis kept = p.sub_axis;
    for (const int64_t factor : {2, 3}) {
      if (all || kept.size % factor != 0 || kept.size == factor || random.one_in(2)) continue;
      const bool outer = random.one_in(2);
      const SubAxis first{kept.mesh_dim, kept.before, factor};
      const SubAxis second{kept.mesh_dim, kept.before * factor, kept.size / factor};
      if (!after.shards.empty() && random.one_in(2))
        after.shards[static_cast<size_t>(random.below(static_cast<int64_t>(after.shards.size())))].push_back(outer ? second : first);
      kept = outer ? first : second;
    }
    if (all || !random.one_in(3)) after.partial.push_back({kept, p.op});
  }
}

Case random_exchange(Random& random) {
  Case c;
  c.table = random_meshes(random);
  c.src_mesh = static_cast<size_t>(random.below(static_cast<int64_t>(c.table.meshes.size())));
  c.dst_mesh = random.one_in(6) ? static_cast<size_t>(random.below(static_cast<int64_t>(c.table.meshes.size()))) : c.src_mesh;
  c.tensor.shape = random_shape(random);
  const std::vector<int64_t> src_sizes = mesh_shape(c.table.meshes[c.src_mesh]);
  const std::vector<int64_t> dst_sizes = mesh_shape(c.table.meshes[c.dst_mesh]);
  c.src = random_parts(random, src_sizes, c.tensor.shape.size(), random.one_in(3));
  c.dst = random_parts(random, dst_sizes, c.tensor.shape.size(), false);
  if (c.src_mesh == c.dst_mesh && random.one_in(2)) keep_some(random, c.src.partial, c.dst);
  c.plan.topology = test::random_levels(random, 400'000);
  c.step.op = Op::exchange;
  c.step.state = c.dst;
  c.step.whole_pieces = random.one_in(2);
  if (c.dst.partial != c.src.partial) c.step.reduce_op = ReduceOp::sum;
  const bool crosses = c.src_mesh != c.dst_mesh;
  if (crosses && !c.step.whole_pieces && !c.step.reduce_op && random.one_in(2)) c.step.far_64ths = 1 + random.below(63);
  return c;
}

ExchangeView view_of(const Case& c) {
  return {&c.plan.topology,
          &c.table.meshes[c.src_mesh],
          &c.table.meshes[c.dst_mesh],
          c.tensor.shape,
          4,
          &c.src,
          &c.dst,
          c.step.whole_pieces,
          c.step.fetched_by_all,
          c.step.laps,
          c.step.far_64ths,
          c.step.at_once};
}

std::string text_of(const Case& c) {
  std::string text = to_text(c.table.meshes[c.src_mesh]);
  for (const MeshDim& dim : c.table.meshes[c.src_mesh].dims) text += " " + to_text(dim.layout);
  if (c.dst_mesh != c.src_mesh) text += " to " + to_text(c.table.meshes[c.dst_mesh]);
  text += ", world " + to_text(*c.table.meshes.front().universe) + ", [";
  for (const int64_t extent : c.tensor.shape) text += " " + std::to_string(extent);
  text += " ] " + to_text(c.src, mesh_shape(c.table.meshes[c.src_mesh])) + " -> " + to_text(c.dst, mesh_shape(c.table.meshes[c.dst_mesh])) +
          (c.step.whole_pieces ? " whole" : " even") + (c.step.fetched_by_all ? " by all" : "") + ", " + std::to_string(c.step.laps) +
          " laps, far share " + std::to_string(c.step.far_64ths) + ", " + std::to_string(c.step.at_once) + " at once, units of";
  for (const TopologyLevel& level : c.plan.topology.levels) text += " " + std::to_string(level.ranks);
  return text;
}

std::string text_of(const Exchanged& x, size_t levels) {
  std::string text = "received " + std::to_string(x.received) + " sent " + std::to_string(x.sent);
  for (size_t l = 0; l < levels; ++l)
    text += " | " + std::to_string(x.traffic.bytes[l]) + " B " + std::to_string(x.traffic.peers[l]) + " peers";
  return text;
}

std::string traffic_text(const Exchanged& x, size_t levels) {
  std::string text = "received " + std::to_string(x.received);
  for (size_t l = 0; l < levels; ++l)
    text += " | " + std::to_string(x.traffic.bytes[l]) + " B " + std::to_string(x.traffic.peers[l]) + " peers";
  return text;
}

// What is counted is what other code prices.
void check_price(const Case& c) {
  const StepQuestion question{&c.plan.topology, &c.table.meshes[c.src_mesh], &c.table.meshes[c.dst_mesh], &c.tensor, std::nullopt, &c.src,
                              &c.step};
  const StepCost price = price_step(question);
  const Counted step = verification::recount({&c.plan, question.src_mesh, question.dst_mesh, &c.tensor, std::nullopt, &c.src, &c.step});
  CHECK(step.wire_bytes == price.wire_bytes);
  CHECK(step.peak_bytes == price.peak_bytes);
  CHECK(step.ps == price.predicted_ps);
}

TEST_CASE("both engines count what every rank sends and receives") {
  Random random(test::seed_or(recount_seed));
  int64_t even = 0;
  for (int64_t round = 0; round < test::rounds_or(6'000); ++round) {
    const Case c = random_exchange(random);
    const size_t levels = c.plan.topology.levels.size();
    const ExchangeView view = view_of(c);
    const std::string right = text_of(test::oracle_exchange(view), levels);
    if (view.far_64ths > 0) continue;
    const auto listed = verification::exchanged_by_ranks(view);
    REQUIRE(listed);
    const std::string by_ranks = text_of(*listed, levels);
    if (by_ranks != right) FAIL_CHECK("round " << round << " by ranks: " << text_of(c) << ": " << by_ranks << ", really " << right);
    const auto closed = verification::exchanged_evenly(view);
    if (!closed) continue;
    ++even;
    const std::string evenly = text_of(*closed, levels);
    if (evenly != right) FAIL_CHECK("round " << round << " evenly: " << text_of(c) << ": " << evenly << ", really " << right);
  }
  MESSAGE(even << " in closed form");
  CHECK(even > test::rounds_or(6'000) / 10);
}

// On one mesh, also in several copies, where some of what is pending may stay so.
Case far_share_on_one_mesh(Random& random) {
  for (;;) {
    Case c = random_exchange(random);
    if (c.src_mesh != c.dst_mesh || c.step.reduce_op || c.src == c.dst) continue;
    c.step.whole_pieces = false;
    c.step.far_64ths = 1 + random.below(63);
    return c;
  }
}

// Across two meshes on ranks of their own, in order or not, that may share some.
Case far_share_across(Random& random) {
  Case c;
  c.dst_mesh = 1;
  std::vector<int64_t> ids;
  for (int64_t id = 0; id < 30; ++id) ids.push_back(id);
  for (const char* name : {"train", "serve"}) {
    const int64_t a = 1 + random.below(6);
    const int64_t b = 1 + random.below(4);
    if (random.one_in(3)) random.shuffle(ids);
    REQUIRE(add_root(c.table, name, a * b, {ids.begin(), ids.begin() + a * b}, {{std::string(name) + "a", a}, {std::string(name) + "b", b}})
                .ok());
  }
  c.tensor.shape = random_shape(random);
  c.src = random_parts(random, mesh_shape(c.table.meshes[0]), c.tensor.shape.size(), false);
  c.dst = random_parts(random, mesh_shape(c.table.meshes[1]), c.tensor.shape.size(), false);
  c.plan.topology = test::random_levels(random, 400'000);
  c.step.op = Op::exchange;
  c.step.state = c.dst;
  c.step.far_64ths = 1 + random.below(63);
  return c;
}

TEST_CASE("with a far share holders outside of units are counted as each rank asks them") {
  Random random(test::seed_or(recount_seed) + 5);
  int64_t across = 0;
  int64_t on_one_mesh = 0;
  for (int64_t round = 0; round < test::rounds_or(6'000); ++round) {
    const Case c = round % 2 == 0 ? far_share_across(random) : far_share_on_one_mesh(random);
    const size_t levels = c.plan.topology.levels.size();
    ExchangeView view = view_of(c);
    const Exchanged really = test::oracle_exchange(view);
    const auto counted = verification::exchanged_with_far_share(view);
    REQUIRE(counted);
    if (text_of(*counted, levels) != text_of(really, levels)) {
      FAIL_CHECK("round " << round << ": " << text_of(c) << ": " << text_of(*counted, levels) << ", really " << text_of(really, levels));
    }
    check_price(c);
    view.far_64ths = 0;
    const bool asked = really.traffic.bytes != test::oracle_exchange(view).traffic.bytes;
    (c.src_mesh == c.dst_mesh ? on_one_mesh : across) += asked;
  }
  MESSAGE(across << " across meshes have far holders that are asked, " << on_one_mesh << " on one mesh");
  CHECK(across > test::rounds_or(3'000) / 20);
  CHECK(on_one_mesh > test::rounds_or(3'000) / 40);
}

TEST_CASE("two phases are counted as units fetch and pass on") {
  Random random(test::seed_or(recount_seed) + 2);
  int64_t fetching = 0;
  int64_t even = 0;
  int64_t even_in_laps = 0;
  for (int64_t round = 0; round < test::rounds_or(3'000); ++round) {
    Case c = random_exchange(random);
    c.dst_mesh = c.src_mesh;
    const std::vector<int64_t> sizes = mesh_shape(c.table.meshes[c.src_mesh]);
    if (c.step.reduce_op || c.plan.topology.levels.size() < 2) continue;
    c.step.whole_pieces = false;
    c.step.fetched_by_all = random.one_in(2);
    c.step.laps = 1 + random.below(2);
    const size_t levels = c.plan.topology.levels.size();
    // A target made for another mesh is made anew.
    if (c.dst.partial != c.src.partial) c.src.partial.clear();
    c.dst = random_parts(random, sizes, c.tensor.shape.size(), false);
    for (auto& list : c.dst.shards) {
      std::erase_if(list, [&](const SubAxis& sub_axis) {
        return std::any_of(c.src.partial.begin(), c.src.partial.end(),
                           [&](const PendingSubAxis& p) { return p.sub_axis.mesh_dim == sub_axis.mesh_dim; });
      });
    }
    c.dst.partial = c.src.partial;
    const ExchangeView view = view_of(c);
    const verification::TwoPhases right = test::oracle_two_phases(view);
    const auto counted = verification::exchanged_in_two_phases(view);
    REQUIRE(counted);
    const auto text = [&](const verification::TwoPhases& x) {
      return std::to_string(x.received) + " received, " + std::to_string(x.sent) + " sent; " + traffic_text(x.phase[0], levels) + "; " +
             traffic_text(x.phase[1], levels);
    };
    if (text(*counted) != text(right))
      FAIL_CHECK("round " << round << ": " << text_of(c) << ": " << text(*counted) << ", really " << text(right));
    const auto closed = verification::exchanged_evenly_in_two_phases(view);
    if (closed && text(*closed) != text(right)) {
      FAIL_CHECK("round " << round << " evenly: " << text_of(c) << ": " << text(*closed) << ", really " << text(right));
    }
    even += closed && right.phase[0].received > 0;
    even_in_laps += closed && right.phase[0].received > 0 && c.step.laps > 1;
    fetching += right.phase[0].received > 0;
  }
  MESSAGE(fetching << " fetch something, " << even << " of them in closed form, of these " << even_in_laps << " in laps");
  CHECK(even > even_in_laps);
  CHECK(even_in_laps > 0);
  CHECK(fetching > test::rounds_or(3'000) / 10);
}

TEST_CASE("across meshes, in shifts too, two phases are counted as units fetch and pass on") {
  Random random(test::seed_or(recount_seed) + 6);
  std::array<int64_t, 4> several{};  // stages, by how many at once
  int64_t inside = 0;                // of them, where something is passed on or was held before
  for (int64_t round = 0; round < test::rounds_or(4'000); ++round) {
    Case c = far_share_across(random);
    c.step.far_64ths = 0;
    c.step.fetched_by_all = random.one_in(3);
    c.step.laps = 1 + random.below(2);
    c.step.phases = 2;
    c.step.at_once = round % 4;
    const size_t levels = c.plan.topology.levels.size();
    const ExchangeView view = view_of(c);
    const verification::TwoPhases right = test::oracle_two_phases(view);
    const auto counted = verification::exchanged_in_two_phases(view);
    REQUIRE(counted);
    const auto text = [&](const verification::TwoPhases& x) {
      return std::to_string(x.received) + " received, " + std::to_string(x.sent) + " sent, " + std::to_string(x.stages) + " stages; " +
             traffic_text(x.phase[0], levels) + "; " + traffic_text(x.phase[1], levels);
    };
    if (text(*counted) != text(right))
      FAIL_CHECK("round " << round << ": " << text_of(c) << ": " << text(*counted) << ", really " << text(right));
    c.step.chunks = right.stages * (2 + random.below(3));
    check_price(c);
    if (right.stages == 1) continue;
    ++several[static_cast<size_t>(c.step.at_once)];
    inside += right.phase[1].traffic.bytes[0] > 0;
  }
  MESSAGE("several stages: " << several[1] << " with 1 at once, " << several[2] << " with 2, " << several[3] << " with 3; " << inside
                             << " move something inside");
  CHECK(several[0] == 0);
  for (size_t at_once = 1; at_once < several.size(); ++at_once) CHECK(several[at_once] > test::rounds_or(4'000) / 100);
  CHECK(inside > test::rounds_or(4'000) / 20);
}

TEST_CASE("an exchange in shifts has chunks that are a multiple of its stages, each as full as the fullest") {
  // The example of lib/transfer/README.md: ranks 0 to 3 hold a quarter of [16] float32 each, 4 to 7 want all; hosts of 2.
  Case c;
  c.dst_mesh = 1;
  REQUIRE(add_root(c.table, "train", 4, {0, 1, 2, 3}, {{"a", 4}}).ok());
  REQUIRE(add_root(c.table, "serve", 4, {4, 5, 6, 7}, {{"b", 4}}).ok());
  c.tensor.shape = {16};
  c.src = *parse_state("S(0)", std::vector<int64_t>{4}, 1);
  c.dst = *parse_state("R", std::vector<int64_t>{4}, 1);
  c.plan.topology.levels = {{"inside", 2, 1'000, 10'000, 500, 100}, {"across", 1'048'576, 1'000, 25'000, 500, 100}};
  c.step.op = Op::exchange;
  c.step.state = c.dst;
  c.step.phases = 2;
  const auto counted = [&](int64_t chunks, int64_t at_once) {
    c.step.chunks = chunks;
    c.step.at_once = at_once;
    return verification::recount({&c.plan, &c.table.meshes[0], &c.table.meshes[1], &c.tensor, std::nullopt, &c.src, &c.step});
  };
  // Each fetches two parts of 16 B, which all but it in its host get passed on.
  const Counted both = counted(2, 2);
  const Counted one = counted(2, 1);
  for (const Counted& count : {both, one}) {
    CHECK(count.wrong.empty());
    CHECK(count.wire_bytes == 64);
    CHECK(count.peak_bytes == 16 + 64 + 64 + 32);
  }
  // Rounds of the one and the other phase: 16 B each in both, from two peers or one.
  CHECK(both.ps == 2 * (25'000'000 + 2 * 500'000 + 16'000) + (10'000'000 + 500'000 + 16'000));
  CHECK(one.ps == 2 * (25'000'000 + 500'000 + 16'000) + (10'000'000 + 500'000 + 16'000));
  CHECK(counted(4, 1).ps == 4 * (25'000'000 + 500'000 + 8'000) + (10'000'000 + 500'000 + 8'000));
  CHECK(counted(3, 2).wrong.empty());
  const Counted uneven = counted(3, 1);
  CHECK(uneven.wrong == "an exchange in 3 chunks, 1 at once, in 2 stages: chunks are a multiple of the stages");
  CHECK(!uneven.ps);
  c.plan.topology.copy_mb_per_s = 1'000;  // 32 B fetched and 32 passed on, twice each
  CHECK(counted(2, 1).ps == *one.ps + 2 * 64'000);
}

TEST_CASE("an exchange is priced as it is counted") {
  Random random(test::seed_or(recount_seed) + 1);
  for (int64_t round = 0; round < test::rounds_or(6'000); ++round) {
    const Case c = random_exchange(random);
    if (c.src_mesh == c.dst_mesh && c.src == c.dst) continue;
    StepQuestion question;
    question.topology = &c.plan.topology;
    question.src_mesh = &c.table.meshes[c.src_mesh];
    question.dst_mesh = &c.table.meshes[c.dst_mesh];
    question.tensor = &c.tensor;
    question.before = &c.src;
    question.step = &c.step;
    const StepCost price = price_step(question);
    const Counted counted =
        verification::recount({&c.plan, question.src_mesh, question.dst_mesh, &c.tensor, std::nullopt, &c.src, &c.step});
    const bool same = counted.wire_bytes == price.wire_bytes && counted.peak_bytes == price.peak_bytes && counted.ps == price.predicted_ps;
    if (!same) {
      FAIL_CHECK("round " << round << ": " << text_of(c) << ": priced " << price.wire_bytes << " B, peak " << price.peak_bytes << " B, "
                          << price.predicted_ps << " ps; counted " << counted.wire_bytes.value_or(-1) << " B, peak "
                          << counted.peak_bytes.value_or(-1) << " B, " << counted.ps.value_or(-1) << " ps");
    }
  }
}

TEST_CASE("plans of every planner are priced as they are counted, whatever the levels and the ranks") {
  Random random(test::seed_or(recount_seed) + 3);
  int64_t plans = 0;
  for (int64_t round = 0; round < test::rounds_or(1'500); ++round) {
    test::WorldOptions world;
    world.permuted_ranks = true;
    const MeshTable table = test::random_table(random, world);
    PlanOptions options;
    options.planner = static_cast<PlannerKind>(random.below(3));
    const bool searches = options.planner == PlannerKind::optimal;
    options.rules = searches ? Rules::native : Rules::dtensor;
    if (searches && random.one_in(2)) options.groups = GroupPolicy::any;
    const int64_t orders = options.planner == PlannerKind::greedy ? 0 : 2;
    Request request = test::random_request(random, table, orders);
    if (random.one_in(3)) request.reduce_dtype = DType::float64;
    const Topology topology = test::random_levels(random, 400'000);
    const std::string place = "round " + std::to_string(round) + ": ";
    try {
      const PlanOutcome outcome = plan_requests(table, topology, {request}, options, "");
      if (!outcome.failures.empty()) continue;
      ++plans;
      const Status status = verify_plan(outcome.plan);
      if (!status) FAIL_CHECK(place << status.error().message);
    } catch (const InternalError& error) {
      FAIL_CHECK(place << std::string(error.what()));
    }
  }
  MESSAGE(plans << " plans");
  CHECK(plans > test::rounds_or(1'500) / 2);
}

// Levels with protocols or with tables of ascending points on top of them.
Topology finer_topology(Random& random) {
  Topology topology = test::random_levels(random, 400'000);
  if (random.one_in(2)) {
    return test::with_random_protocols(random, topology);
  }
  for (const Op op : {Op::all_gather, Op::reduce_scatter, Op::all_reduce, Op::all_to_all}) {
    for (size_t level = 0; level < topology.levels.size(); ++level) {
      for (int64_t ranks = 2; ranks <= 8; ++ranks) {
        MeasuredTable table{op, static_cast<int64_t>(level), ranks, {}};
        int64_t bytes = 1 + random.below(64);
        int64_t ns = 1 + random.below(20'000);
        for (int64_t points = 1 + random.below(4); points > 0; --points) {
          table.points.emplace_back(bytes, ns);
          bytes += 1 + random.below(4'096);
          ns += random.below(50'000);
        }
        topology.tables.push_back(std::move(table));
      }
    }
  }
  return topology;
}

TEST_CASE("times of finer tiers are counted: a plan with a twentieth more is refused") {
  Random random(test::seed_or(recount_seed) + 4);
  int64_t changed = 0;
  for (int64_t round = 0; round < test::rounds_or(600); ++round) {
    const MeshTable table = test::random_table(random, {});
    PlanOptions options;
    options.planner = random.one_in(2) ? PlannerKind::greedy : PlannerKind::optimal;
    options.rules = options.planner == PlannerKind::greedy ? Rules::dtensor : Rules::native;
    const Request request = test::random_request(random, table, 0);
    const PlanOutcome outcome = plan_requests(table, finer_topology(random), {request}, options, "");
    if (!outcome.failures.empty()) continue;
    const Status right = verify_plan(outcome.plan);
    if (!right) FAIL_CHECK("round " << round << ": " << right.error().message);
    for (size_t i = 0; i < outcome.plan.redistributions.front().steps.size(); ++i) {
      Plan plan = outcome.plan;
      PlannedRedistribution& planned = plan.redistributions.front();
      Step& step = planned.steps[i];
      if (step.op == Op::exchange || step.predicted_ps == 0) continue;
      const int64_t more = step.predicted_ps / 20 + 10'000;
      for (int64_t* ps : {&step.predicted_ps, &planned.totals.predicted_ps, &planned.proven_gap_ps, &plan.totals.predicted_ps}) *ps += more;
      ++changed;
      const Status status = verify_plan(plan);
      CAPTURE(round);
      REQUIRE(!status.ok());
      CHECK(status.error().message.find("predicted_ns") != std::string::npos);
    }
  }
  MESSAGE(changed << " times changed");
  CHECK(changed > test::rounds_or(600) / 4);
}

}  // namespace
}  // namespace meshplan
