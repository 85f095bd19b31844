// All ordered pairs of replicate and shard states: at the byte bound where only bytes count, and on
// two levels never above the best of three strategies, each priced here step by step: collectives
// alone, one exchange, one exchange in two phases.
//
// Collectives alone is an exhaustive search of its own: every state to every other that one slice,
// gather or all_to_all makes, then the least sums over all paths whose states keep to the default
// memory rule (none larger than the larger of both ends).
#include <algorithm>
#include <limits>

#include "small_world.h"
#include "tensor/box.h"

using namespace meshplan;
using namespace meshplan::test;

namespace {

constexpr int64_t never = std::numeric_limits<int64_t>::max() / 4;

// The most bytes that any rank's target has and its source has not, rank by rank.
int64_t bytes_missed(const SmallWorld& world, const State& src, const State& dst) {
  int64_t most = 0;
  for (int64_t rank = 0; rank < mesh_size(world.mesh()); ++rank) {
    const std::vector<int64_t> at = coordinates_of(rank, world.sizes());
    const Box wanted = box_of(dst, world.tensor().shape, world.sizes(), at);
    most = std::max(most, volume(wanted) - volume(intersect(wanted, box_of(src, world.tensor().shape, world.sizes(), at))));
  }
  return most * element_bytes(world.tensor().dtype);
}

int64_t box_bytes(const SmallWorld& world, const State& state) {
  int64_t bytes = element_bytes(world.tensor().dtype);
  for (int64_t side : largest_box(state, world.tensor().shape, world.sizes())) bytes *= side;
  return bytes;
}

// The one step that takes `a` to `b` without an exchange, if there is one: op and mesh dims.
std::optional<Step> single_step(const State& a, const State& b, size_t mesh_dims, const std::vector<int64_t>& sizes) {
  std::vector<int> from(mesh_dims, -1);
  std::vector<int> to(mesh_dims, -1);
  bool prefixes = true;  // in every tensor dim, what leaves is a suffix of `a` and what comes is a suffix of `b`
  for (size_t d = 0; d < a.shards.size(); ++d) {
    for (const SubAxis& sub_axis : a.shards[d]) from[static_cast<size_t>(sub_axis.mesh_dim)] = static_cast<int>(d);
    for (const SubAxis& sub_axis : b.shards[d]) to[static_cast<size_t>(sub_axis.mesh_dim)] = static_cast<int>(d);
  }
  Step step;
  bool slices = false;
  bool gathers = false;
  bool moves = false;
  for (size_t m = 0; m < mesh_dims; ++m) {
    if (from[m] == to[m]) continue;
    (from[m] < 0 ? slices : to[m] < 0 ? gathers : moves) = true;
    step.mesh_dims.push_back({static_cast<int32_t>(m), 1, sizes[m]});
  }
  for (size_t d = 0; d < a.shards.size(); ++d) {
    const auto stays = [&](const SubAxis& sub_axis) {
      return from[static_cast<size_t>(sub_axis.mesh_dim)] == to[static_cast<size_t>(sub_axis.mesh_dim)];
    };
    const auto in_a = std::find_if_not(a.shards[d].begin(), a.shards[d].end(), stays) - a.shards[d].begin();
    const auto in_b = std::find_if_not(b.shards[d].begin(), b.shards[d].end(), stays) - b.shards[d].begin();
    prefixes = prefixes && in_a == in_b && std::equal(a.shards[d].begin(), a.shards[d].begin() + in_a, b.shards[d].begin()) &&
               std::none_of(a.shards[d].begin() + in_a, a.shards[d].end(), stays) &&
               std::none_of(b.shards[d].begin() + in_b, b.shards[d].end(), stays);
  }
  if (!prefixes || slices + gathers + moves != 1) return std::nullopt;
  step.op = slices ? Op::slice : gathers ? Op::all_gather : Op::all_to_all;
  step.state = b;
  return step;
}

int64_t price(const SmallWorld& world, const State& before, const Step& step) {
  StepQuestion q;
  q.topology = &world.topology();
  q.src_mesh = q.dst_mesh = &world.mesh();
  q.tensor = &world.tensor();
  q.before = &before;
  q.step = &step;
  return price_step(q).predicted_ps;
}

int64_t price_of_exchange(const SmallWorld& world, const State& src, const State& dst, int64_t phases) {
  int64_t least = never;
  for (bool whole : {false, true}) {
    Step step;
    step.op = Op::exchange;
    step.phases = phases;
    step.whole_pieces = whole;
    step.state = dst;
    for (size_t m = 0; m < world.sizes().size(); ++m) step.mesh_dims.push_back({static_cast<int32_t>(m), 1, world.sizes()[m]});
    least = std::min(least, price(world, src, step));
  }
  return least;
}

// cost[i][j]: collectives alone, for every pair under the memory rule.
std::vector<std::vector<int64_t>> collectives_alone(const SmallWorld& world, const std::vector<State>& states) {
  const size_t n = states.size();
  std::vector<std::vector<int64_t>> edge(n, std::vector<int64_t>(n, never));
  std::vector<int64_t> bytes(n);
  for (size_t i = 0; i < n; ++i) {
    bytes[i] = box_bytes(world, states[i]);
    for (size_t j = 0; j < n; ++j) {
      const auto step = single_step(states[i], states[j], world.sizes().size(), world.sizes());
      if (step) edge[i][j] = price(world, states[i], *step);
    }
  }
  std::vector<int64_t> limits = bytes;
  std::sort(limits.begin(), limits.end());
  limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
  std::vector<std::vector<int64_t>> least(n, std::vector<int64_t>(n, never));
  for (int64_t limit : limits) {
    auto cost = edge;
    for (size_t via = 0; via < n; ++via) {
      if (bytes[via] > limit) continue;
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < n; ++j) cost[i][j] = std::min(cost[i][j], cost[i][via] + cost[via][j]);
      }
    }
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        if (std::max(bytes[i], bytes[j]) == limit) least[i][j] = cost[i][j];
      }
    }
  }
  return least;
}

struct Case {
  std::vector<int64_t> sizes;
  std::vector<int64_t> inside;               // ranks of a host, each in turn
  size_t states;                             // how many there are
  std::vector<std::vector<int64_t>> shapes;  // 64 kB, 1 MB, 16 MB and 256 MB of float32, or just below where 3 must divide them
};

const std::vector<std::vector<int64_t>> powers = {{128, 128}, {128, 2048}, {128, 32'768}, {128, 524'288}};
const std::vector<std::vector<int64_t>> by_three = {{96, 168}, {96, 2'724}, {96, 43'680}, {96, 699'048}};

void check_bytes(const Case& c) {
  const SmallWorld world(c.sizes, one_level(0, 0), c.shapes.back());
  PlanOptions options;
  options.groups = GroupPolicy::any;
  const auto states = all_states(c.sizes, 2);
  REQUIRE(states.size() == c.states);
  for (const State& src : states) {
    for (const State& dst : states) {
      CAPTURE(pair_text(src, dst, c.sizes));
      const auto planned = world.plan(src, dst, options);
      REQUIRE(planned.has_value());
      CHECK(planned->totals.wire_bytes == bytes_missed(world, src, dst));
    }
  }
}

void check_time(const Case& c, int64_t inside, int64_t per_peer_ns) {
  const auto states = all_states(c.sizes, 2);
  int64_t better = 0;
  for (const auto& shape : c.shapes) {
    const SmallWorld world(c.sizes, two_levels(inside, per_peer_ns), shape);
    PlanOptions options;
    options.groups = GroupPolicy::any;
    const auto collectives = collectives_alone(world, states);
    for (size_t i = 0; i < states.size(); ++i) {
      for (size_t j = 0; j < states.size(); ++j) {
        if (i == j) continue;
        CAPTURE(shape);
        CAPTURE(pair_text(states[i], states[j], c.sizes));
        const auto planned = world.plan(states[i], states[j], options);
        REQUIRE(planned.has_value());
        const int64_t one_phase = price_of_exchange(world, states[i], states[j], 1);
        const int64_t two_phases = price_of_exchange(world, states[i], states[j], 2);
        CHECK(planned->totals.predicted_ps <= collectives[i][j]);
        CHECK(planned->totals.predicted_ps <= one_phase);
        CHECK(planned->totals.predicted_ps <= two_phases);
        better += planned->totals.predicted_ps < std::min({collectives[i][j], one_phase, two_phases});
        const Bounds bound = lower_bounds(world.levels(), shape, 4, 4, states[i], states[j]);
        CHECK(bound.ps <= planned->totals.predicted_ps);
        CHECK(bound.bytes <= planned->totals.wire_bytes);
        // What the search takes for the rest of the way is never above it.
        const auto problem =
            make_problem(world.levels(), {&world.meshes(), nullptr, &planned->request, &options}, planned->request, states[j]);
        REQUIRE(problem.has_value());
        CHECK(bound_between(*problem, problem->source, problem->target).ps <= planned->totals.predicted_ps);
      }
    }
  }
  MESSAGE(inside << " ranks a host, per peer " << per_peer_ns << " ns: better than the best of the three in " << better << " of "
                 << c.shapes.size() * states.size() * (states.size() - 1));
}

void check_times(const Case& c) {
  for (int64_t inside : c.inside) {
    check_time(c, inside, 0);
    check_time(c, inside, 500);
  }
}

const Case mesh_2x4{{2, 4}, {4, 2}, 11, powers};
const Case mesh_2x2x2{{2, 2, 2}, {4, 2}, 49, powers};
const Case mesh_4x2x2{{4, 2, 2}, {4, 2, 8}, 49, powers};
const Case mesh_2x3x2{{2, 3, 2}, {6}, 49, by_three};

}  // namespace

TEST_CASE("pairs on 2x4: bytes") { check_bytes(mesh_2x4); }
TEST_CASE("pairs on 2x2x2: bytes") { check_bytes(mesh_2x2x2); }
TEST_CASE("pairs on 4x2x2: bytes") { check_bytes(mesh_4x2x2); }
TEST_CASE("pairs on 2x3x2: bytes") { check_bytes(mesh_2x3x2); }

TEST_CASE("pairs on 2x4: time") { check_times(mesh_2x4); }
TEST_CASE("pairs on 2x2x2: time") { check_times(mesh_2x2x2); }
TEST_CASE("pairs on 4x2x2: time") { check_times(mesh_4x2x2); }
TEST_CASE("pairs on 2x3x2: time") { check_times(mesh_2x3x2); }
