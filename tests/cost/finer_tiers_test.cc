// Measured tables: no exchange is cheaper than the collective that moves the same boxes.
#include "cost/finer_tiers.h"

#include <doctest/doctest.h>

#include "all_states.h"
#include "cost/step_cost.h"
#include "cost/topology.h"
#include "small_mesh.h"

using namespace meshplan;

namespace {

Topology two_levels(int64_t inside) {
  Topology t;
  t.levels = {{"in", inside, 370'000, 10'000, 500, 100}, {"out", 1'048'576, 45'000, 25'000, 500, 100}};
  return t;
}

// Measured far above what the levels say, so that an unguarded exchange would always win.
Topology with_tables(int64_t inside, const std::vector<int64_t>& ranks) {
  Topology t = two_levels(inside);
  for (Op op : {Op::all_gather, Op::reduce_scatter, Op::all_to_all, Op::all_reduce}) {
    for (int64_t level : {0, 1}) {
      for (int64_t n : ranks) {
        t.tables.push_back({op, level, n, {{1'024, 90'000 + 1'000 * n}, {1'048'576, 400'000}, {16'777'216, 5'000'000}}});
      }
    }
  }
  return t;
}

// The one collective that takes src to dst after slices that are free, as this file sees it: which
// mesh dims leave the lists, which come, which are reduced. The second is the state after the
// slices.
std::optional<std::pair<Step, State>> collective_between(const State& src, const State& dst, size_t mesh_dims,
                                                         const std::vector<int64_t>& sizes) {
  State sliced = src;
  Step step;
  step.state = dst;
  bool gathers = false;
  bool moves = false;
  bool scatters = false;
  bool reduces = false;
  for (size_t d = 0; d < src.shards.size(); ++d) {
    size_t same = 0;
    while (same < src.shards[d].size() && same < dst.shards[d].size() && src.shards[d][same] == dst.shards[d][same]) ++same;
    if (same < src.shards[d].size() && same < dst.shards[d].size()) return std::nullopt;
  }
  for (size_t m = 0; m < mesh_dims; ++m) {
    const SubAxis sub_axis{static_cast<int32_t>(m), 1, sizes[m]};
    const auto dim_in = [&](const State& s) {
      for (size_t d = 0; d < s.shards.size(); ++d) {
        if (std::find(s.shards[d].begin(), s.shards[d].end(), sub_axis) != s.shards[d].end()) return static_cast<int>(d);
      }
      for (const PendingSubAxis& p : s.partial) {
        if (p.sub_axis == sub_axis) return -2;
      }
      return -1;
    };
    const int from = dim_in(src);
    const int to = dim_in(dst);
    if (from == to) continue;
    if (from == -1) continue;  // sliced, below
    step.mesh_dims.push_back(sub_axis);
    if (from == -2) {
      reduces = true;
      scatters = scatters || to >= 0;
      gathers = gathers || to < 0;
    } else {
      gathers = gathers || to < 0;
      moves = moves || to >= 0;
    }
  }
  if (step.mesh_dims.empty() || gathers + scatters + moves != 1) return std::nullopt;
  for (const SubAxis& sub_axis : step.mesh_dims) {
    const bool pending =
        std::any_of(src.partial.begin(), src.partial.end(), [&](const PendingSubAxis& p) { return p.sub_axis == sub_axis; });
    if (pending != reduces) return std::nullopt;
  }
  for (size_t d = 0; d < src.shards.size(); ++d) {
    for (size_t i = src.shards[d].size(); i < dst.shards[d].size(); ++i) {
      const SubAxis& sub_axis = dst.shards[d][i];
      if (std::find(step.mesh_dims.begin(), step.mesh_dims.end(), sub_axis) == step.mesh_dims.end()) sliced.shards[d].push_back(sub_axis);
    }
  }
  step.op = reduces ? (scatters ? Op::reduce_scatter : Op::all_reduce) : moves ? Op::all_to_all : Op::all_gather;
  if (reduces) step.reduce_op = ReduceOp::sum;
  return std::pair{step, sliced};
}

int64_t price(const Topology& topology, const Mesh& mesh, const TensorMeta& tensor, const State& before, const Step& step,
              std::string* tier = nullptr) {
  const StepCost cost = price_step({&topology, &mesh, &mesh, &tensor, std::nullopt, &before, &step});
  if (tier != nullptr) *tier = cost.tier;
  return cost.predicted_ps;
}

// Pairs that one collective joins, and how often the finer tier set the exchange's time.
struct Tally {
  int64_t pairs = 0;
  int64_t raised = 0;
};

Tally check(const std::vector<int64_t>& sizes, const Topology& topology, const std::vector<int64_t>& shape) {
  const Mesh mesh = test::mesh_of(sizes);
  const TensorMeta tensor{shape, DType::float32};
  Topology plain = topology;
  plain.tables.clear();
  Tally tally;
  const auto states = all_states(sizes, shape.size(), {ReduceOp::sum});
  for (const State& src : states) {
    for (const State& dst : states) {
      const auto found = collective_between(src, dst, sizes.size(), sizes);
      if (!found) continue;
      const Step& collective = found->first;
      const State& sliced = found->second;
      Step exchange;
      exchange.op = Op::exchange;
      exchange.state = dst;
      exchange.reduce_op = collective.reduce_op;
      for (size_t m = 0; m < sizes.size(); ++m) exchange.mesh_dims.push_back({static_cast<int32_t>(m), 1, sizes[m]});
      CAPTURE(to_text(src, sizes));
      CAPTURE(to_text(dst, sizes));
      CAPTURE(std::string(to_text(collective.op)));
      std::string tier;
      const int64_t of_exchange = price(topology, mesh, tensor, src, exchange, &tier);
      const int64_t of_collective = price(topology, mesh, tensor, sliced, collective);
      const int64_t by_levels = price(plain, mesh, tensor, src, exchange);
      if (of_collective != price(plain, mesh, tensor, sliced, collective)) CHECK(of_exchange >= of_collective);
      CHECK(of_exchange >= by_levels);
      if (of_exchange > by_levels) {
        CHECK(of_exchange == of_collective);
        CHECK(tier != "levels");
      }
      ++tally.pairs;
      tally.raised += of_exchange > by_levels;
      if (topology.levels.size() < 2 || collective.reduce_op) continue;
      exchange.phases = 2;
      if (of_collective != price(plain, mesh, tensor, sliced, collective)) {
        CHECK(price(topology, mesh, tensor, src, exchange) >= of_collective);
      }
    }
  }
  return tally;
}

}  // namespace

TEST_CASE("under a finer tier no exchange is cheaper than the collective that moves the same boxes") {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{48, 48}, std::vector<int64_t>{960, 4'800}}) {
    for (int64_t inside : {2, 4}) {
      const Tally measured = check({2, 4}, with_tables(inside, {2, 4, 8}), shape);
      CHECK(measured.raised > 50);
      CHECK(check({2, 2, 2}, with_tables(inside, {2, 4, 8}), shape).raised > 500);
    }
    CHECK(check({2, 3}, with_tables(3, {2, 3, 6}), shape).raised > 50);
  }
  // Uneven shards: by states instead of digits.
  CHECK(check({2, 3}, with_tables(3, {2, 3, 6}), {10, 7}).raised > 20);
}

TEST_CASE("without finer tiers nothing is raised") {
  const Tally plain = check({2, 4}, two_levels(4), {48, 48});
  CHECK(plain.pairs > 50);
  CHECK(plain.raised == 0);
}

TEST_CASE("mesh dims of size 1 change no exchange's price") {
  // [4, 7, 9] over a 3 and b 1, S(1)P(min) -> S(2)R: all_to_all over a, though b's pending
  // reduction ends as well.
  const std::vector<int64_t> sizes{3, 1};
  const Topology topology = with_tables(3, {2, 3});
  const Mesh mesh = test::mesh_of(sizes);
  const Mesh alone = test::mesh_of({3});
  const auto without_last = [](State state) {
    const auto is_last = [](const SubAxis& sub_axis) { return sub_axis.mesh_dim == 1; };
    for (auto& order : state.shards) std::erase_if(order, is_last);
    std::erase_if(state.partial, [&](const PendingSubAxis& p) { return is_last(p.sub_axis); });
    return state;
  };
  int64_t raised = 0;
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{10, 7}, {48, 48}}) {
    const TensorMeta tensor{shape, DType::float32};
    for (const State& src : all_states(sizes, shape.size(), {ReduceOp::sum})) {
      for (const State& dst : all_states(sizes, shape.size(), {ReduceOp::sum})) {
        const State src_alone = without_last(src);
        Step step;
        step.op = Op::exchange;
        step.state = without_last(dst);
        if (step.state == src_alone || step.state.partial != src_alone.partial) continue;
        step.mesh_dims = {{0, 1, 3}};
        const int64_t expected = price(topology, alone, tensor, src_alone, step);
        step.state = dst;
        step.mesh_dims.push_back({1, 1, 1});
        CAPTURE(to_text(src, sizes));
        CAPTURE(to_text(dst, sizes));
        std::string tier;
        CHECK(price(topology, mesh, tensor, src, step, &tier) == expected);
        raised += tier != "levels";
      }
    }
  }
  CHECK(raised > 50);
}
