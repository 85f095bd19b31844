// What an exchange moves between pairs of ranks, counted without its boxes, against its transfers.
#include <doctest/doctest.h>

#include <map>

#include "../verify/random_world.h"
#include "cost/topology.h"
#include "transfer/level_units.h"
#include "transfer/listed_transfers.h"
#include "transfer/step_cuts.h"

namespace meshplan {
namespace {

using Pairs = std::map<std::pair<int32_t, int32_t>, int64_t>;

void add_pair(const PairElements& pair, Pairs& pairs) {
  REQUIRE(pair.from != pair.to);
  pairs[{pair.from, pair.to}] += pair.elements;
}
Pairs sums_of(const std::vector<PairElements>& list, Pairs pairs = {}) {
  for (const PairElements& pair : list) add_pair(pair, pairs);
  return pairs;
}

// An exchange of every rank with every other, and what is held on both sides of it.
struct Exchange {
  Step step;
  std::vector<HeldBoxes> held;
};
Exchange exchange_to(const State& src, const State& dst, const std::vector<int64_t>& shape, const Mesh& from, const Mesh& to,
                     const RankTable& ranks) {
  Exchange exchange;
  exchange.step.op = Op::exchange;
  exchange.step.mesh = &from == &to ? "" : to.name;
  exchange.step.state = dst;
  for (size_t m = 0; m < to.dims.size(); ++m) exchange.step.mesh_dims.push_back({static_cast<int32_t>(m), 1, to.dims[m].size});
  const int64_t copies = &from == &to ? mesh_copies(from) : 1;
  exchange.held = {make_held_boxes(from, src, shape, copies, ranks), make_held_boxes(to, dst, shape, copies, ranks)};
  return exchange;
}

// Ranks that received what others did, over all exchanges.
int64_t alike = 0;

// Whether both count the same; false: the step is none that may be taken.
bool check_pairs(const TransferQuestion& question) {
  const auto transfers = make_transfers(question);
  if (!transfers.ok()) return false;
  if (question.step->phases == 1) {
    Pairs pairs;
    const std::vector<int64_t> level_ranks = level_ranks_of(*question.topology);
    const LevelUnits units(level_ranks);
    const auto meet_outermost = [&](int32_t a, int32_t b) {
      const auto unit = [&](int32_t rank) {
        return units.joined(question.ranks->global_ids[static_cast<size_t>(rank)], units.levels() - 1);
      };
      return unit(a) != unit(b);
    };
    const Status counted = for_each_received(question, [&](const ReceivedAlike& received) {
      if (received.to.size() > 1) alike += std::ssize(received.to);
      for (const int32_t to : received.to) {
        for (const ReceivedAlike::Part& part : received.parts) {
          CHECK(part.elements > 0);
          CHECK(!pairs.contains({part.from, to}));
          add_pair({part.from, to, part.elements}, pairs);
          if (received.to.size() > 1) CHECK(meet_outermost(part.from, to));
        }
      }
    });
    REQUIRE(counted.ok());
    CHECK(pairs == sums_of(pairs_of(*transfers, *question.before, *question.after)));
    return true;
  }
  const auto phases = pairs_in_two_phases(question);
  REQUIRE(phases.ok());
  const auto listed = [&](const StepTransfers& part) { return sums_of(pairs_of(part, *question.before, *question.after)); };
  CHECK(sums_of(phases->fetched) == listed(part_of_phase(*transfers, 1, 0, 1)));
  CHECK(sums_of(phases->passed_on, sums_of(phases->from_sources)) == listed(part_of_phase(*transfers, 2, 0, 1)));
  // As steps of their own, what comes from inside of units comes with what is fetched.
  CHECK(sums_of(phases->fetched, sums_of(phases->from_sources)) == listed(phase_as_step(*transfers, 1)));
  CHECK(sums_of(phases->passed_on) == listed(phase_as_step(*transfers, 2)));
  return true;
}

Topology random_levels(test::Random& random) {
  Topology topology;
  for (int64_t unit = random.pick(std::vector<int64_t>{2, 3, 4, 8}), levels = random.below(3); levels > 0; --levels) {
    topology.levels.push_back({"unit", unit, 100'000, 1000, 0});
    unit *= random.pick(std::vector<int64_t>{2, 3});
  }
  topology.levels.push_back({"all", 1'048'576, 10'000, 5000, 0});
  return topology;
}

}  // namespace

TEST_CASE("pairs of an exchange on one mesh are those of its transfers: sums, uneven boxes, either cut, both phases") {
  test::Random random(51);
  int64_t in_one = 0;
  int64_t in_two = 0;
  for (int64_t tried = 0; tried < 4000; ++tried) {
    test::WorldOptions options;
    options.permuted_ranks = true;
    const MeshTable table = test::random_table(random, options);
    const Mesh& mesh = table.meshes.front();
    const Request request = test::random_request(random, table, 2);
    const Topology topology = random_levels(random);
    const RankTable ranks = make_rank_table(table);
    Exchange exchange = exchange_to(request.src, request.dst, request.tensor.shape, mesh, mesh, ranks);
    exchange.step.whole_pieces = random.one_in(2);
    for (const int64_t phases : {1, 2}) {
      exchange.step.phases = phases;
      if (phases == 2) exchange.step.whole_pieces = false;
      CAPTURE(tried);
      const bool checked = check_pairs({&exchange.held[0], &exchange.held[1], &exchange.step, &ranks, &topology, "here"});
      if (checked) ++(phases == 1 ? in_one : in_two);
    }
  }
  MESSAGE(in_one << " in one phase, " << in_two << " in two");
  CHECK(in_one > 1500);
  CHECK(in_two > 700);
}

TEST_CASE("pairs of an exchange in every copy of a mesh") {
  test::Random random(53);
  MeshTable table;
  REQUIRE(add_root(table, "world", 24, {}, {{"a", 4}, {"b", 3}, {"c", 2}}).ok());
  REQUIRE(add_slice(table, "ac", "world", {"a", "c"}).ok());
  const Mesh& mesh = table.meshes.back();
  REQUIRE(mesh_copies(mesh) == 3);
  const RankTable ranks = make_rank_table(table);
  int64_t checked = 0;
  for (int64_t tried = 0; tried < 500; ++tried) {
    const State src = test::random_state(random, {4, 2}, 2, 0, 2);
    State dst = test::random_state(random, {4, 2}, 2, 0, 2);
    dst.partial.clear();
    const std::vector<int64_t> shape{1 + random.below(20), 1 + random.below(20)};
    const Topology topology = random_levels(random);
    Exchange exchange = exchange_to(src, dst, shape, mesh, mesh, ranks);
    exchange.step.phases = src.partial.empty() ? 1 + random.below(2) : 1;
    CAPTURE(tried);
    if (check_pairs({&exchange.held[0], &exchange.held[1], &exchange.step, &ranks, &topology, "here"})) ++checked;
  }
  CHECK(checked > 400);
}

TEST_CASE("pairs of an exchange across meshes") {
  test::Random random(52);
  MeshTable table;
  REQUIRE(add_root(table, "train", 12, {}, {{"a", 4}, {"b", 3}}).ok());
  REQUIRE(add_root(table, "serve", 10, {5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, {{"c", 2}, {"d", 5}}).ok());
  const RankTable ranks = make_rank_table(table);
  int64_t checked = 0;
  for (int64_t tried = 0; tried < 1000; ++tried) {
    const State src = test::random_state(random, {4, 3}, 2, 0, 2);
    State dst = test::random_state(random, {2, 5}, 2, 0, 2);
    dst.partial.clear();
    const std::vector<int64_t> shape{1 + random.below(20), 1 + random.below(20)};
    const Topology topology = random_levels(random);
    Exchange exchange = exchange_to(src, dst, shape, table.meshes[0], table.meshes[1], ranks);
    exchange.step.phases = src.partial.empty() ? 1 + random.below(2) : 1;
    exchange.step.whole_pieces = exchange.step.phases == 1 && random.one_in(2);
    CAPTURE(tried);
    if (check_pairs({&exchange.held[0], &exchange.held[1], &exchange.step, &ranks, &topology, "here"})) ++checked;
  }
  CHECK(checked > 900);
  CHECK(alike > 500);
}

}  // namespace meshplan
