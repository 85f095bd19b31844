// No plan across meshes is below its bound, and none that is proven above the best way by one state
// on the source's mesh and one on the target's: every such way is priced.
#include <doctest/doctest.h>

#include <map>

#include "../cost/all_states.h"
#include "../cost/small_mesh.h"
#include "../cost/some_protocols.h"
#include "cost/bounds.h"
#include "cost/exchange.h"
#include "cost/step_cost.h"
#include "search/joining_sums.h"
#include "search/optimal.h"

using namespace meshplan;
using namespace meshplan::test;

namespace {

// `farther_ns`: more latency of each level further out.
Topology levels_of(const std::vector<int64_t>& ranks, int64_t per_peer_ns, bool protocols, int64_t farther_ns = 7'000) {
  Topology t;
  int64_t speed = 370'000;
  int64_t latency = 10'000;
  for (const int64_t r : ranks) {
    t.levels.push_back({"l", r, speed, latency, per_peer_ns, 100});
    speed /= 8;
    latency += farther_ns;
  }
  return protocols ? with_protocols(t) : t;
}

struct World {
  MeshTable table;
  std::string src;
  std::string dst;
};

// Meshes of one world: overlapping, permuted, sliced either way; and apart, where units of the target hold nothing of the source.
std::vector<World> worlds() {
  MeshTable t;
  REQUIRE(add_root(t, "world", 8, {}, {{"a", 2}, {"b", 2}, {"c", 2}}).ok());
  REQUIRE(add_slice(t, "ab", "world", {"a", "b"}).ok());
  REQUIRE(add_slice(t, "bc", "world", {"b", "c"}).ok());
  REQUIRE(add_slice(t, "c", "world", {"c"}).ok());
  REQUIRE(add_transpose(t, "turned", "bc", {"c", "b"}).ok());
  MeshTable mixed;
  REQUIRE(add_root(mixed, "world", 6, {5, 0, 3, 1, 4, 2}, {{"a", 3}, {"b", 2}}).ok());
  REQUIRE(add_slice(mixed, "a", "world", {"a"}).ok());
  REQUIRE(add_transpose(mixed, "turned", "world", {"b", "a"}).ok());
  MeshTable apart;
  REQUIRE(add_root(apart, "few", 2, {0, 1}, {{"a", 2}}).ok());
  REQUIRE(add_root(apart, "many", 6, {2, 3, 4, 5, 6, 7}, {{"a", 3}, {"b", 2}}).ok());
  REQUIRE(add_root(apart, "mixed", 4, {1, 2, 4, 5}, {{"a", 2}, {"b", 2}}).ok());
  return {{t, "bc", "ab"},        {t, "ab", "bc"},        {t, "bc", "turned"},     {t, "world", "c"},       {t, "c", "world"},
          {t, "ab", "c"},         {t, "c", "bc"},         {mixed, "a", "world"},   {mixed, "world", "a"},   {mixed, "world", "turned"},
          {apart, "few", "many"}, {apart, "many", "few"}, {apart, "few", "mixed"}, {apart, "mixed", "many"}};
}

struct Tightness {
  int64_t pairs = 0;
  int64_t met = 0;
  int64_t proven = 0;
  int64_t by_all = 0;     // exchanges in two phases that take less where all fetch
  int64_t helped = 0;     // pairs that take less in two phases
  int64_t in_shifts = 0;  // that take less in shifts
  int64_t far = 0;        // exchanges in one phase that take less with a far share
  int64_t told_soon = 0;  // bounds of which no more was told than that they exceed a time
};

// `stride`: every so many pairs of states.
Tightness check_world(const World& w, const Topology& topology, const std::vector<int64_t>& shape, size_t stride, size_t& number) {
  const size_t src_mesh = *find_mesh(w.table, w.src);
  const size_t dst_mesh = *find_mesh(w.table, w.dst);
  const Mesh& from_mesh = w.table.meshes[src_mesh];
  const Mesh& to_mesh = w.table.meshes[dst_mesh];
  const LevelMap src_levels(from_mesh, topology);
  const LevelMap dst_levels(to_mesh, topology);
  PlanOptions options;
  options.groups = GroupPolicy::any;
  options.max_memory_bytes = -1;
  const auto starts = all_states(mesh_shape(from_mesh), shape.size());
  const auto landings = all_states(mesh_shape(to_mesh), shape.size());
  auto within = [&](const LevelMap& levels, size_t mesh, const State& src, const State& dst) -> int64_t {
    if (src == dst) return 0;
    PlannedRedistribution planned;
    planned.request.src_mesh = planned.request.dst_mesh = mesh;
    planned.request.tensor = {shape, DType::float32};
    planned.request.src = src;
    planned.request.dst = dst;
    auto list = plan_optimal({&w.table, &topology, &planned.request, &options}, levels);
    if (!list) return -1;
    planned.steps = std::move(list->steps);
    price_redistribution(planned, w.table, topology);
    return planned.totals.predicted_ps;
  };
  Tightness tight;
  std::vector<std::vector<int64_t>> crossing(starts.size(), std::vector<int64_t>(landings.size()));
  std::vector<std::vector<int64_t>> crossing_twice = crossing;  // in one phase, with a far share or without, or in two
  for (size_t i = 0; i < starts.size(); ++i) {
    for (size_t j = 0; j < landings.size(); ++j) {
      ExchangeQuestion q;
      q.levels = &src_levels;
      q.dst_mesh = &to_mesh;
      q.shape = shape;
      q.element_bytes = 4;
      q.src = &starts[i];
      q.dst = &landings[j];
      const int64_t near_ps = price_exchange(q).predicted_ps;
      crossing[i][j] = near_ps;
      crossing_twice[i][j] = near_ps;
      if (topology.levels.size() == 1) continue;
      // None is looked for that only has a shorter latency.
      const bool latency_falls = topology.levels[1].latency_ns < topology.levels[0].latency_ns;
      for (int64_t far_64ths = 1; !latency_falls && far_64ths <= 63; ++far_64ths) {
        q.far_64ths = far_64ths;
        crossing[i][j] = std::min(crossing[i][j], price_exchange(q).predicted_ps);
      }
      q.far_64ths = 0;
      tight.far += crossing[i][j] < near_ps;
      crossing_twice[i][j] = crossing[i][j];
      // In two phases too, whoever fetches, in shifts or not.
      q.phases = 2;
      q.in_shifts_too = true;
      for (const Fetchers fetchers : {Fetchers::wanting, Fetchers::all, Fetchers::all_in_laps}) {
        q.fetchers = fetchers;
        const ExchangeCost twice = price_exchange(q);
        tight.in_shifts += twice.at_once > 0;
        if (fetchers != Fetchers::wanting && twice.predicted_ps < crossing_twice[i][j]) ++tight.by_all;
        crossing_twice[i][j] = std::min(crossing_twice[i][j], twice.predicted_ps);
      }
    }
  }
  const std::vector<ReduceOp> sum{ReduceOp::sum};
  const auto sources = all_states(mesh_shape(from_mesh), shape.size(), sum);
  const auto targets = all_states(mesh_shape(to_mesh), shape.size(), sum);
  std::map<size_t, std::vector<int64_t>> before;
  std::map<size_t, std::vector<int64_t>> after;
  for (size_t s = 0; s < sources.size(); ++s) {
    for (size_t t = 0; t < targets.size(); ++t) {
      if (number++ % stride != 0) continue;
      auto& first = before[s];
      if (first.empty()) {
        for (const State& start : starts) first.push_back(within(src_levels, src_mesh, sources[s], start));
      }
      auto& last = after[t];
      if (last.empty()) {
        for (const State& landing : landings) last.push_back(within(dst_levels, dst_mesh, landing, targets[t]));
      }
      int64_t least = INT64_MAX;
      int64_t least_twice = INT64_MAX;
      for (size_t i = 0; i < starts.size(); ++i) {
        for (size_t j = 0; j < landings.size(); ++j) {
          if (first[i] < 0 || last[j] < 0) continue;
          least = std::min(least, first[i] + crossing[i][j] + last[j]);
          least_twice = std::min(least_twice, first[i] + crossing_twice[i][j] + last[j]);
        }
      }
      PlannedRedistribution planned;
      planned.request.src_mesh = src_mesh;
      planned.request.dst_mesh = dst_mesh;
      planned.request.tensor = {shape, DType::float32};
      planned.request.src = sources[s];
      planned.request.dst = targets[t];
      auto list = plan_optimal({&w.table, &topology, &planned.request, &options}, src_levels);
      REQUIRE(list.ok());
      planned.steps = std::move(list->steps);
      price_redistribution(planned, w.table, topology);
      const Bounds bound = lower_bounds(planned.request, w.table, topology);
      CAPTURE(w.src);
      CAPTURE(w.dst);
      CAPTURE(topology.levels[0].ranks);
      CAPTURE(topology.levels.size());
      CAPTURE(shape[0]);
      CAPTURE(to_text(sources[s], mesh_shape(from_mesh)));
      CAPTURE(to_text(targets[t], mesh_shape(to_mesh)));
      CHECK(bound.ps <= least_twice);
      // With a time to stay below no less is told where that is not exceeded, and no more than is so.
      for (const int64_t most_ps : {int64_t{0}, bound.ps / 2, bound.ps - 1, bound.ps, bound.ps + 1}) {
        const int64_t told_ps = lower_bounds(planned.request, w.table, src_levels, most_ps).ps;
        CHECK((bound.ps > most_ps ? told_ps > most_ps && told_ps <= bound.ps : told_ps == bound.ps));
        tight.told_soon += told_ps < bound.ps;
      }
      // Every way but those of two phases stands above; sums join others where that saves joining_ps for each part of a mesh dim.
      if (list->shortcuts.none())
        CHECK(planned.totals.predicted_ps <= least + joining_ps * 2 * static_cast<int64_t>(from_mesh.dims.size()));
      tight.proven += list->shortcuts.none();
      CHECK(bound.ps <= planned.totals.predicted_ps);
      CHECK(bound.bytes <= planned.totals.wire_bytes);
      ++tight.pairs;
      tight.met += bound.ps == least;
      tight.helped += least_twice < least;
    }
  }
  return tight;
}

}  // namespace

TEST_CASE("no way across meshes is below the bound") {
  const std::vector<std::vector<int64_t>> units{{1024}, {2, 1024}, {3, 1024}, {2, 4, 1024}};
  Tightness all;
  size_t number = 0;
  for (const World& w : worlds()) {
    for (const auto& levels : units) {
      for (const auto& shape : std::vector<std::vector<int64_t>>{{24}, {7}, {24'000'000}, {4, 6}}) {
        for (const bool protocols : {false, true}) {
          if (protocols && shape[0] != 7) continue;
          const Tightness t = check_world(w, levels_of(levels, 500, protocols), shape, shape.size() == 1 ? 31 : 503, number);
          all.pairs += t.pairs;
          all.met += t.met;
          all.proven += t.proven;
          all.by_all += t.by_all;
          all.far += t.far;
          all.in_shifts += t.in_shifts;
          all.helped += t.helped;
          all.told_soon += t.told_soon;
        }
      }
    }
  }
  MESSAGE(all.pairs << " pairs, the bound met by " << all.met << ", proven " << all.proven << ", " << all.helped
                    << " that take less in two phases; " << all.by_all << " exchanges that take least where all fetch, " << all.in_shifts
                    << " in shifts, " << all.far << " that take less with a far share than without");
  CHECK(all.by_all > 0);
  CHECK(all.in_shifts > 0);
  CHECK(all.far > 0);
  CHECK(all.told_soon > 0);
  CHECK(all.met * 10 > all.pairs);
  CHECK(all.proven * 10 > all.pairs * 9);
}

// A step on a mesh is one of all its copies, and has the latency of the outermost level that some copy uses: less than what the ranks that
// cross use, where latencies fall.
TEST_CASE("copies further apart may shorten the latency of a step beside the crossing") {
  size_t number = 0;
  int64_t pairs = 0;
  for (const World& w : worlds()) {
    for (const auto& levels : std::vector<std::vector<int64_t>>{{3, 1024}, {3, 6, 1024}, {2, 6, 1024}})
      pairs += check_world(w, levels_of(levels, 0, false, -4'000), {7}, 7, number).pairs;
  }
  CHECK(pairs > 400);
}
