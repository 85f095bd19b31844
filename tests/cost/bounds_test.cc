#include "cost/bounds.h"

#include <doctest/doctest.h>

#include <ctime>
#include <map>
#include <random>
#include <set>

#include "all_states.h"
#include "base/int_math.h"
#include "cost/collective_time.h"
#include "cost/listed_bounds.h"
#include "cost/set_needs.h"
#include "cost/step_cost.h"
#include "cost/topology.h"
#include "small_mesh.h"
#include "some_protocols.h"

using namespace meshplan;

namespace {

constexpr std::array<int64_t, 2> all_elements{5, 4};

// Element by element, rank by rank, straight from the definitions.
SetNeed by_elements(const Mesh& src_mesh, const Mesh& dst_mesh, const State& src, const State& dst, const std::set<int64_t>& ids) {
  const auto src_shape = mesh_shape(src_mesh);
  const auto dst_shape = mesh_shape(dst_mesh);
  auto coordinates_on = [](const State& state, const std::vector<int64_t>& sizes, const std::vector<int64_t>& at) {
    std::vector<int64_t> out;
    for (const PendingSubAxis& p : state.partial) {
      const auto m = static_cast<size_t>(p.sub_axis.mesh_dim);
      out.push_back(sub_axis_coordinate(p.sub_axis, sizes[m], at[m]));
    }
    return out;
  };
  auto has = [](const Box& box, const std::array<int64_t, 2>& e) {
    return box[0].lo <= e[0] && e[0] < box[0].hi && box[1].lo <= e[1] && e[1] < box[1].hi;
  };
  SetNeed need;
  for (int64_t x = 0; x < all_elements[0]; ++x) {
    for (int64_t y = 0; y < all_elements[1]; ++y) {
      std::set<std::vector<int64_t>> inside;
      std::set<std::vector<int64_t>> outside;
      std::set<std::vector<int64_t>> all;
      for (int64_t i = 0; i < mesh_size(src_mesh); ++i) {
        const auto at = coordinates_of(i, src_shape);
        if (!has(box_of(src, all_elements, src_shape, at), {x, y})) continue;
        const bool member = ids.count(rank_at(*src_mesh.universe, position_of(src_mesh, 0, i))) != 0;
        (member ? inside : outside).insert(coordinates_on(src, src_shape, at));
        all.insert(coordinates_on(src, src_shape, at));
      }
      // Cells: ranks of the target that differ on pending coordinates only.
      std::map<std::vector<int64_t>, std::pair<int, int>> cells;  // members inside, outside
      for (int64_t i = 0; i < mesh_size(dst_mesh); ++i) {
        auto at = coordinates_of(i, dst_shape);
        if (!has(box_of(dst, all_elements, dst_shape, at), {x, y})) continue;
        for (const PendingSubAxis& p : dst.partial) at[static_cast<size_t>(p.sub_axis.mesh_dim)] = 0;
        const bool member = ids.count(rank_at(*dst_mesh.universe, position_of(dst_mesh, 0, i))) != 0;
        ++(member ? cells[at].first : cells[at].second);
      }
      const bool wanted_inside = std::any_of(cells.begin(), cells.end(), [](const auto& c) { return c.second.second == 0; });
      const bool wanted_outside = std::any_of(cells.begin(), cells.end(), [](const auto& c) { return c.second.first == 0; });
      if (wanted_inside && inside.size() < all.size()) ++need.in;
      if (wanted_outside && outside.size() < all.size()) ++need.out;
    }
  }
  return need;
}

struct Pair {
  Mesh src;
  Mesh dst;
};

// Meshes of one world: overlapping, disjoint, permuted and sliced.
std::vector<Pair> mesh_pairs() {
  const Mesh all = test::mesh_of({2, 4});
  MeshTable table;
  REQUIRE(add_root(table, "world", 8, {}, {{"a", 2}, {"b", 2}, {"c", 2}}).ok());
  REQUIRE(add_slice(table, "ab", "world", {"a", "b"}).ok());
  REQUIRE(add_slice(table, "c", "world", {"c"}).ok());
  REQUIRE(add_transpose(table, "turned", "world", {"c", "a", "b"}).ok());
  MeshTable mixed;
  REQUIRE(add_root(mixed, "world", 6, {5, 0, 3, 1, 4, 2}, {{"a", 3}, {"b", 2}}).ok());
  REQUIRE(add_slice(mixed, "a", "world", {"a"}).ok());
  auto mesh = [](const MeshTable& t, const char* name) { return t.meshes[*find_mesh(t, name)]; };
  std::vector<Pair> pairs;
  pairs.push_back({all, all});
  pairs.push_back({mesh(table, "world"), mesh(table, "ab")});
  pairs.push_back({mesh(table, "ab"), mesh(table, "c")});
  pairs.push_back({mesh(table, "world"), mesh(table, "turned")});
  pairs.push_back({mesh(mixed, "a"), mesh(mixed, "world")});
  // Two worlds of other ranks: disjoint, and half shared.
  pairs.push_back({*make_mesh("s", {{"a", 2}, {"b", 2}}, {0, 1, 2, 3}), *make_mesh("t", {{"a", 3}, {"b", 1}}, {4, 6, 5})});
  pairs.push_back({*make_mesh("s", {{"a", 2}, {"b", 2}}, {0, 1, 2, 3}), *make_mesh("t", {{"a", 2}, {"b", 2}}, {6, 2, 3, 7})});
  return pairs;
}

std::vector<int64_t> ids_of(const Mesh& mesh) { return materialise(mesh); }

}  // namespace

TEST_CASE("what a set misses and holds alone is counted as element by element") {
  std::mt19937_64 random(7);
  int64_t compared = 0;
  int64_t in = 0;
  int64_t out = 0;
  for (const Pair& pair : mesh_pairs()) {
    const auto src_states = all_states(mesh_shape(pair.src), 2, {ReduceOp::sum});
    const auto dst_states = all_states(mesh_shape(pair.dst), 2, {ReduceOp::sum});
    for (int round = 0; round < 60; ++round) {
      const State& src = src_states[random() % src_states.size()];
      const State& dst = dst_states[random() % dst_states.size()];
      const Participants all = list_participants(pair.src, pair.dst, 0, all_elements, src, dst);
      std::set<int64_t> world;
      for (int64_t id : ids_of(pair.src)) world.insert(id);
      for (int64_t id : ids_of(pair.dst)) world.insert(id);
      REQUIRE(all.ranks.size() == world.size());
      SetNeeds needs(all);
      for (int subset = 0; subset < 6; ++subset) {
        std::vector<int32_t> members;
        std::set<int64_t> ids;
        for (size_t i = 0; i < all.ranks.size(); ++i) {
          if ((random() & 1) == 0) continue;
          members.push_back(static_cast<int32_t>(i));
          ids.insert(all.ranks[i].id);
        }
        const SetNeed found = needs.of(members);
        const SetNeed told = by_elements(pair.src, pair.dst, src, dst, ids);
        CAPTURE(to_text(src, mesh_shape(pair.src)));
        CAPTURE(to_text(dst, mesh_shape(pair.dst)));
        CHECK(found.in == told.in);
        CHECK(found.out == told.out);
        ++compared;
        in += told.in > 0;
        out += told.out > 0;
      }
    }
  }
  CHECK(compared > 2'000);
  CHECK(in > compared / 4);
  CHECK(out > compared / 8);
}

TEST_CASE(
    "long lists of boxes share no less than all their pairs, and just that where the second is a "
    "product") {
  const std::vector<int64_t> sizes{16, 12};
  const std::vector<int64_t> extents{100, 70};
  State src;
  src.shards = {{{0, 1, 16}}, {{1, 1, 12}}};
  State dst;
  dst.shards = {{{1, 1, 12}}, {{0, 1, 16}}};
  const BoxGrid a(src, extents, sizes);
  const BoxGrid b(dst, extents, sizes);
  std::mt19937_64 random(3);
  for (int round = 0; round < 40; ++round) {
    std::vector<int32_t> from;
    std::vector<int32_t> to;
    const bool product = round % 2 == 0;
    const uint64_t rows = random() | 1;
    const uint64_t columns = random() | 1;
    for (int32_t box = 0; box < a.count(); ++box) {
      if ((random() & 1) != 0) from.push_back(box);
      const bool inside = (rows >> b.shard(0, box) & 1) != 0 && (columns >> b.shard(1, box) & 1) != 0;
      if (product ? inside : (random() & 1) != 0) to.push_back(box);
    }
    int64_t pairs = 0;
    for (int32_t x : from) {
      for (int32_t y : to) pairs += shared_elements(a, x, b, y);
    }
    const int64_t shared = shared_elements(a, from, b, to);
    CHECK(shared >= pairs);
    if (product) CHECK(shared == pairs);
  }
}

TEST_CASE("a unit's missing union comes over its members' links to outside") {
  // 16 ranks on hosts of 8, then on 8 of them: what the other host holds, half of the tensor, comes
  // over 8 NICs.
  const Topology h100 = test::two_levels(8, 500);
  const Mesh src = *make_mesh("train", {{"r", 16}}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  const Mesh dst = *make_mesh("serve", {{"r", 8}}, {0, 1, 2, 3, 4, 5, 6, 7});
  State sharded;
  sharded.shards = {{{0, 1, 16}}};
  State whole;
  whole.shards = {{}};
  const std::vector<int64_t> extent{1 << 20};
  const Bounds b = listed_bounds(h100, src, dst, extent, 4, sharded, whole);
  CHECK(b.bytes == (4 << 20) * 15 / 16);
  CHECK(b.ps == 25'000'000 + std::max(transfer_ps((4 << 20) / 2, 8, 45'000), transfer_ps((4 << 20) * 15 / 16, 1, 370'000 + 45'000)));
  // From 8 ranks to 64 others: the host gives all of it away over 8 NICs, and each rank serves 8
  // peers in one exchange, which two steps cannot make up for.
  const Mesh few = *make_mesh("few", {{"r", 8}}, {0, 1, 2, 3, 4, 5, 6, 7});
  std::vector<int64_t> far(64);
  for (size_t i = 0; i < far.size(); ++i) far[i] = 8 + static_cast<int64_t>(i);
  const Mesh many = *make_mesh("many", {{"r", 64}}, far);
  State eighths;
  eighths.shards = {{{0, 1, 8}}};
  State cut;
  cut.shards = {{{0, 1, 64}}};
  CHECK(listed_bounds(h100, few, many, extent, 4, eighths, cut).ps == 25'000'000 + 8 * 500'000 + transfer_ps(4 << 20, 8, 45'000));
  // To 64 others that want it all: all of it lands once over the 8 NICs of its host, and of the rest
  // each of the 8 other hosts gets 7/8 over its own; in one exchange the 8 NICs would send it 64 times.
  const Bounds all_of_it = listed_bounds(h100, few, many, extent, 4, eighths, whole);
  const int64_t landed = transfer_ps(4 << 20, 8, 45'000);
  CHECK(all_of_it.ps == 2 * 25'000'000 + 500'000 + landed + transfer_ps(7 * (4 << 20), 64, 45'000) - 1);
  // A tensor so small that latencies decide goes in one exchange, where peers cost nothing.
  const std::vector<int64_t> little{4096};
  CHECK(listed_bounds(test::two_levels(8, 0), few, many, little, 4, eighths, whole).ps ==
        25'000'000 + transfer_ps(64 * 4 * 4096, 8, 45'000));
  // Of one level each of the 64 gets the rest by itself.
  const Bounds alike = listed_bounds(test::one_level(10'000, 500), few, many, extent, 4, eighths, whole);
  CHECK(alike.ps == 2 * 10'000'000 + 500'000 + transfer_ps(4 << 20, 8, 100'000) + transfer_ps(63 * (4 << 20), 64, 100'000) - 1);
}

TEST_CASE("what two ranks of a host hold of all that the others want comes over their links and those that leave the host") {
  MeshTable table;
  REQUIRE(add_root(table, "train", 64, {}, {{"a", 8}, {"b", 8}}).ok());
  REQUIRE(add_root(table, "serve", 32, {}, {{"x", 4}, {"y", 8}}).ok());
  Request request;
  request.dst_mesh = 1;
  request.tensor = {{80'000, 80'000}, DType::int8};
  request.src = *parse_state("RS(0)", mesh_shape(table.meshes[0]), 2);
  request.dst = *parse_state("S(0)S(1)", mesh_shape(table.meshes[1]), 2);
  // 6 ranks miss two pieces of 100 MB each: over 2 x 370 GB/s from those who hold them, and 6 x 45 from other hosts.
  // Without the holders of one alone 7 such pieces are missed over 370 + 7 x 45 GB/s.
  const Bounds bound = lower_bounds(request, table, test::two_levels(8, 0));
  CHECK(bound.ps == 10'000'000 + transfer_ps(12 * 100'000'000, 1, 2 * 370'000 + 6 * 45'000));
}

TEST_CASE("zero-filled contributions spare the ranks of a target their bytes") {
  // 2 x 2 ranks, cut 4 ways, to ranks 0 and 1 with a pending sum: each may keep what it holds.
  const Mesh src = test::mesh_of({4});
  const Mesh dst = *make_mesh("t", {{"a", 2}}, {0, 1});
  State cut;
  cut.shards = {{{0, 1, 4}}};
  State pending;
  pending.shards = {{}};
  pending.partial = {{{0, 1, 2}, ReduceOp::sum}};
  const std::vector<int64_t> extent{96};
  CHECK(listed_bounds(test::one_level(10'000, 500), src, dst, extent, 4, cut, pending).bytes == 96);
}

namespace {

// The price of steps on a mesh of 2 hosts of 8, from P(sum)P(sum).
int64_t price(const Mesh& mesh, const Topology& topology, const TensorMeta& tensor, const State& src, const std::vector<Step>& steps) {
  int64_t ps = 0;
  const State* before = &src;
  for (const Step& step : steps) {
    StepQuestion q;
    q.topology = &topology;
    q.src_mesh = q.dst_mesh = &mesh;
    q.tensor = &tensor;
    q.before = before;
    q.step = &step;
    ps += price_step(q).predicted_ps;
    before = &step.state;
  }
  return ps;
}

Step step_of(Op op, const std::vector<SubAxis>& dims, const State& state) {
  Step step;
  step.op = op;
  step.mesh_dims = dims;
  step.state = state;
  if (op == Op::all_reduce || op == Op::reduce_scatter) step.reduce_op = ReduceOp::sum;
  return step;
}

}  // namespace

TEST_CASE("no bound is above a plan: fractions of bytes, sums kept pending, NCCL's tier") {
  const Mesh mesh = test::mesh_of({2, 8});
  const SubAxis h{0, 1, 2};
  const SubAxis g{1, 1, 8};
  State pending;
  pending.shards = {{}};
  pending.partial = {{h, ReduceOp::sum}, {g, ReduceOp::sum}};
  State whole;
  whole.shards = {{}};
  {
    // One float32 over both: half a byte crosses between hosts.
    Topology slow = test::two_levels(8, 0);
    slow.levels[1].mb_per_s = 1;
    const TensorMeta tensor{{1}, DType::float32};
    const int64_t plan = price(mesh, slow, tensor, pending, {step_of(Op::all_reduce, {h, g}, whole)});
    CHECK(lower_bounds(LevelMap(mesh, slow), tensor.shape, 4, 4, pending, whole).ps <= plan);
  }
  {
    // P(sum)P(sum) -> RP(sum): reduced over both, then written as zero-filled contributions again.
    const Topology h100 = *topology_preset("h100");
    const TensorMeta tensor{{1 << 26}, DType::bfloat16};
    State kept = whole;
    kept.partial = {{g, ReduceOp::sum}};
    State half = whole;
    half.shards = {{g}};
    half.partial = {{h, ReduceOp::sum}};
    State shards = half;
    shards.partial.clear();
    const int64_t plan =
        price(mesh, h100, tensor, pending,
              {step_of(Op::reduce_scatter, {g}, half), step_of(Op::all_reduce, {h}, shards), step_of(Op::to_partial, {g}, kept)});
    const Bounds b = lower_bounds(LevelMap(mesh, h100), tensor.shape, 2, 2, pending, kept);
    CHECK(b.ps <= plan);
    CHECK(b.ps > plan / 3);
  }
  {
    const Topology nccl = test::with_nccl(test::two_levels(8, 500));
    const Mesh two = test::mesh_of({2});
    State sum;
    sum.shards = {{}};
    sum.partial = {{{0, 1, 2}, ReduceOp::sum}};
    for (const int64_t extent : {1, 1 << 14, 1 << 26}) {
      const TensorMeta tensor{{extent}, DType::float32};
      const int64_t plan = price(two, nccl, tensor, sum, {step_of(Op::all_reduce, {{0, 1, 2}}, whole)});
      const Bounds b = lower_bounds(LevelMap(two, nccl), tensor.shape, 4, 4, sum, whole);
      CHECK(b.ps <= plan);
      CHECK(b.ps > plan / 3);
    }
  }
}

namespace {

// Values that all ranks carry at least, element by element: contributions but one, copies but one,
// and one more where no rank that wants the element holds a contribution.
int64_t carried_values(const std::vector<int64_t>& sizes, const State& src, const State& dst, std::span<const int64_t> extents) {
  const Mesh mesh = test::mesh_of(sizes);
  int64_t contributions = 1;
  for (const PendingSubAxis& p : src.partial) contributions *= p.sub_axis.size;
  int64_t values = 0;
  for (int64_t x = 0; x < extents[0]; ++x) {
    for (int64_t y = 0; y < extents[1]; ++y) {
      int64_t copies = 0;
      bool meet = false;
      for (int64_t i = 0; i < mesh_size(mesh); ++i) {
        const auto at = coordinates_of(i, sizes);
        const auto has = [&](const State& state) {
          const Box box = box_of(state, extents, sizes, at);
          return box[0].lo <= x && x < box[0].hi && box[1].lo <= y && y < box[1].hi;
        };
        if (!has(dst)) continue;
        ++copies;
        meet = meet || has(src);
      }
      values += contributions - 1 + copies - 1 + (meet ? 0 : 1);
    }
  }
  return values;
}

}  // namespace

TEST_CASE("sums whose shards move carry one more value of each element that is apart") {
  const std::vector<int64_t> extents{16, 16};
  const std::vector<ReduceOp> ops{ReduceOp::sum};
  Topology topology = topology_preset("uniform").value();
  int64_t more = 0;
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{2, 2, 2}, {4, 2}}) {
    const Mesh mesh = test::mesh_of(sizes);
    const LevelMap levels(mesh, topology);
    for (const State& src : all_states(sizes, 2, ops)) {
      if (src.partial.empty()) continue;
      for (const State& dst : all_states(sizes, 2)) {
        const int64_t bytes = 4 * carried_values(sizes, src, dst, extents);
        int64_t own = 4;  // of the largest target, of which every rank lacks a contribution
        for (const int64_t side : largest_box(dst, extents, sizes)) own *= side;
        const int64_t bound = lower_bounds(levels, extents, 4, 4, src, dst).bytes;
        CAPTURE(to_text(src, sizes));
        CAPTURE(to_text(dst, sizes));
        CHECK(bound <= std::max(own, ceil_div(bytes, mesh_size(mesh))));
        more += bound > own;
      }
    }
  }
  CHECK(more > 100);
  // Half of the rows are summed on the wrong rank, whichever sums them: 3 values of 2 elements.
  const std::vector<int64_t> pair{2, 2};
  const Mesh mesh = test::mesh_of(pair);
  const State src = *parse_state("S(0)P(sum)", pair, 2);
  const State dst = *parse_state("S(1)S(0)", pair, 2);
  CHECK(lower_bounds(LevelMap(mesh, topology), extents, 4, 4, src, dst).bytes == 3 * 16 * 16 * 4 / 2 / 4);
}

TEST_CASE("a copy of a mesh that lies closer than another does not bound their common step") {
  // Ranks 6 and 7 lie in two units, all other pairs in one: the step has the outer level's latency.
  Topology topology = test::two_levels(7, 0);
  topology.levels[0].latency_ns = 25'000;
  topology.levels[1].latency_ns = 1'000;
  MeshTable table;
  REQUIRE(add_root(table, "w", 14, {}, {{"a", 7}, {"b", 2}}).ok());
  REQUIRE(add_slice(table, "pairs", "w", {"b"}).ok());
  const Mesh& pairs = table.meshes.back();
  const TensorMeta tensor{{4}, DType::float32};
  const SubAxis b{0, 1, 2};
  State cut;
  cut.shards = {{b}};
  State whole;
  whole.shards = {{}};
  const int64_t plan = price(pairs, topology, tensor, cut, {step_of(Op::exchange, {b}, whole)});
  CHECK(lower_bounds(LevelMap(pairs, topology), tensor.shape, 4, 4, cut, whole).ps <= plan);
}

TEST_CASE("where inner links are slower, no group of a collective waits for the latency of another") {
  // Found among all steps of random searches: ranks 8 4 and 3 6 cross hosts of 4, 9 5 the racks of 8.
  const Mesh mesh = test::mesh_of({5, 2}, {8, 4, 3, 6, 9, 5, 0, 2, 1, 7});
  const std::vector<int64_t> sizes{5, 2};
  Topology t;
  t.levels = {{"in", 4, 366'221, 10'271, 0, 100}, {"rack", 8, 28'846, 991, 0, 100}, {"out", 1'048'576, 156'054, 12'275, 0, 100}};
  const LevelMap levels(mesh, t);
  for (const int64_t rows : {48, 48'000}) {
    const std::vector<int64_t> shape{rows, 13};
    const State src = *parse_state("S(1)S(0)", sizes, 2);
    const State dst = *parse_state("S(1)R", sizes, 2);
    Step step;
    step.op = Op::all_gather;
    step.mesh_dims = {{1, 1, 2}};
    step.state = dst;
    const TensorMeta tensor{shape, DType::float32};
    const StepCost cost = price_step({&t, &mesh, &mesh, &tensor, std::nullopt, &src, &step});
    const Bounds bounds = lower_bounds(levels, shape, 4, 4, src, dst);
    CHECK(bounds.bytes <= cost.wire_bytes);
    CHECK(bounds.ps <= cost.predicted_ps);
    CHECK(bounds.ps >= cost.predicted_ps / 2);
  }
}

TEST_CASE("bounds of many ranks are exact and fast") {
  // S(0) to S(1) on as many other ranks: each misses its whole target. Processor time, the best of
  // 5 runs.
  for (const auto& [ranks, limit_ms] : std::vector<std::pair<int64_t, double>>{{2'048, 1.0}, {16'384, 10.0}}) {
    for (const std::string preset : {"h100", "gb200-nvl72", "tpu-v5p"}) {
      const Topology topology = *topology_preset(preset);
      const Mesh src = test::mesh_of({ranks});
      std::vector<int64_t> shifted(static_cast<size_t>(ranks));
      for (size_t i = 0; i < shifted.size(); ++i) shifted[i] = static_cast<int64_t>(i) + ranks;
      const Mesh dst = *make_mesh("t", {{"a", ranks / 8}, {"b", 8}}, shifted);
      State rows;
      rows.shards = {{{0, 1, ranks}}, {}};
      State columns;
      columns.shards = {{}, {{0, 1, ranks / 8}, {1, 1, 8}}};
      const std::vector<int64_t> extents{ranks, 2 * ranks};
      double best = 1e9;
      for (int run = 0; run < 5; ++run) {
        const std::clock_t start = std::clock();
        const Bounds b = listed_bounds(topology, src, dst, extents, 2, rows, columns);
        best = std::min(best, 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
        CHECK(b.bytes == 4 * ranks);
      }
      MESSAGE(preset << ", " << ranks << " ranks: " << best << " ms");
      CHECK(best < limit_ms * 10);  // room for a build without optimisation, and for a slow machine
    }
  }
}
