// Random bundles: members on one mesh and across two, in one step and several, and a little
// scheduler that makes right rounds of them, in pieces and on streams, as a planner might.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/planner.h"
#include "verify/bundle_oracle.h"
#include "verify/random_levels.h"
#include "verify/random_world.h"

namespace meshplan::test {

// Slow levels, of which some send a peer no more than so much.
inline Topology bundle_levels(Random& random) {
  Topology topology = random_levels(random, 400);
  for (TopologyLevel& level : topology.levels) {
    if (random.one_in(4)) level.peer_mb_per_s = 1 + random.below(100);
  }
  return topology;
}

// Meshes of up to 16 ranks: "train" with a slice of it that has copies, and "serve" on other ranks,
// on the same, or on some of them.
inline MeshTable bundle_meshes(Random& random) {
  static const std::vector<std::vector<int64_t>> worlds{{2}, {4}, {2, 2}, {3, 2}, {8}, {2, 4}, {3, 4}, {12}, {2, 3, 2}, {4, 4}};
  MeshTable table;
  const auto add = [&](const std::string& name, char first, int64_t shift) {
    std::vector<std::pair<std::string, int64_t>> dims;
    int64_t world = 1;
    for (const int64_t size : random.pick(worlds)) {
      dims.emplace_back(std::string(1, static_cast<char>(first + static_cast<char>(dims.size()))), size);
      world *= size;
    }
    std::vector<int64_t> ranks;
    for (int64_t r = 0; r < world; ++r) ranks.push_back(shift + r);
    if (random.one_in(3)) random.shuffle(ranks);
    REQUIRE(add_root(table, name, world, ranks, dims).ok());
    return world;
  };
  const int64_t world = add("train", 'a', 0);
  const std::vector<std::string> names = dim_names(table.meshes[0]);
  if (names.size() > 1) REQUIRE(add_slice(table, "part", "train", {names[0]}).ok());
  add("serve", 'x', random.one_in(3) ? 0 : random.one_in(3) ? world / 2 : world);
  return table;
}

class BundleWorld {
 public:
  BundleWorld(Random& random, int64_t members) : random_(random) {
    plan.meshes = bundle_meshes(random);
    plan.topology = bundle_levels(random);
    while (static_cast<int64_t>(plan.redistributions.size()) < members) add_member();
    PlannedBundle& bundle = plan.bundles.emplace_back();
    bundle.request.id = "sync";
    for (size_t i = 0; i < plan.redistributions.size(); ++i) {
      // Now and then one stays outside.
      if (i > 0 && random.one_in(8)) continue;
      bundle.request.members.push_back(i);
      bundle.tensors += plan.redistributions[i].request.count;
    }
    schedule(bundle);
  }

  Plan plan;

 private:
  [[nodiscard]] size_t mesh_named(const std::string& name) const { return *find_mesh(plan.meshes, name); }
  [[nodiscard]] State state_on(size_t mesh, size_t rank) {
    State state = random_state(random_, mesh_shape(plan.meshes.meshes[mesh]), rank, 0, 3);
    state.partial.clear();
    return state;
  }

  void add_member() {
    std::vector<PlannedRedistribution>& all = plan.redistributions;
    if (!all.empty() && random_.one_in(5)) {
      // Another of the same question and answer.
      PlannedRedistribution repeat = random_.pick(all);
      repeat.request.count = 1 + random_.below(4);
      repeat.request.id = "w" + std::to_string(all.size());
      all.push_back(std::move(repeat));
      return;
    }
    auto member = random_.one_in(3) ? planned_member() : exchanging_member();
    if (!member) return;
    member->request.id = "w" + std::to_string(all.size());
    member->request.count = 1 + random_.below(4);
    all.push_back(std::move(*member));
  }

  [[nodiscard]] TensorMeta random_tensor() {
    static const std::vector<int64_t> extents{1, 2, 3, 4, 5, 7, 8, 10, 12, 16, 16, 17};
    TensorMeta tensor;
    tensor.dtype = random_.one_in(2) ? DType::bfloat16 : DType::float32;
    const int64_t rank = random_.one_in(20) ? 0 : 1 + random_.below(2);
    for (int64_t d = 0; d < rank; ++d) tensor.shape.push_back(random_.one_in(40) ? 0 : random_.pick(extents));
    return tensor;
  }

  // By one exchange or two, across meshes or on one.
  std::optional<PlannedRedistribution> exchanging_member() {
    PlannedRedistribution r;
    Request& request = r.request;
    request.tensor = random_tensor();
    const size_t rank = request.tensor.shape.size();
    const bool across = !random_.one_in(3);
    request.src_mesh = across ? mesh_named("train") : static_cast<size_t>(random_.below(static_cast<int64_t>(plan.meshes.meshes.size())));
    request.dst_mesh = across ? mesh_named("serve") : request.src_mesh;
    request.src = state_on(request.src_mesh, rank);
    const Mesh& to = plan.meshes.meshes[request.dst_mesh];
    const bool reduces = random_.one_in(5);
    if (reduces) {
      request.src = random_state(random_, mesh_shape(plan.meshes.meshes[request.src_mesh]), rank, 0, 3);
      for (PendingSubAxis& pending : request.src.partial) pending.op = ReduceOp::sum;
      if (random_.one_in(2)) request.reduce_dtype = DType::float64;
    }
    const int64_t steps = 1 + random_.below(3);
    for (int64_t s = 0; s < steps; ++s) {
      Step& step = r.steps.own().emplace_back();
      step.op = Op::exchange;
      step.state = state_on(request.dst_mesh, rank);
      step.whole_pieces = random_.one_in(2);
      step.group = across && s == 0 ? "train+serve" : to.name;
      if (across) step.mesh = to.name;
      const std::vector<int64_t> sizes = mesh_shape(to);
      for (size_t m = 0; m < sizes.size(); ++m) step.mesh_dims.push_back({static_cast<int32_t>(m), 1, sizes[m]});
      if (s == 0 && !request.src.partial.empty()) step.reduce_op = ReduceOp::sum;
    }
    // A local step behind them, now and then: every rank keeps a part.
    request.dst = r.steps.back().state;
    if (random_.one_in(4) && rank > 0) {
      State state = request.dst;
      if (slice(state, to)) {
        Step& step = r.steps.own().emplace_back();
        step.op = Op::slice;
        step.state = state;
        if (across) step.mesh = to.name;
        request.dst = state;
      }
    }
    r.dst = request.dst;
    return r;
  }

  // Shards the last tensor dim also by a mesh dim that holds copies, if there is one.
  bool slice(State& state, const Mesh& mesh) {
    const std::vector<int64_t> sizes = mesh_shape(mesh);
    for (size_t m = 0; m < sizes.size(); ++m) {
      const bool used = std::any_of(state.shards.begin(), state.shards.end(), [&](const auto& list) {
        return std::any_of(list.begin(), list.end(), [&](const SubAxis& sub_axis) { return sub_axis.mesh_dim == static_cast<int32_t>(m); });
      });
      if (used || sizes[m] == 1) continue;
      state.shards.back().push_back({static_cast<int32_t>(m), 1, sizes[m]});
      return true;
    }
    return false;
  }

  // By the optimal planner, so with collectives and local steps.
  std::optional<PlannedRedistribution> planned_member() {
    Request request;
    request.tensor = random_tensor();
    const size_t rank = request.tensor.shape.size();
    request.src_mesh = request.dst_mesh = static_cast<size_t>(random_.below(static_cast<int64_t>(plan.meshes.meshes.size())));
    const std::vector<int64_t> sizes = mesh_shape(plan.meshes.meshes[request.src_mesh]);
    request.id = "planned";
    request.src = random_state(random_, sizes, rank, 0, 3);
    request.dst = random_state(random_, sizes, rank, 0, 3);
    if (!random_.one_in(4)) request.dst.partial.clear();
    PlanOptions options;
    options.advice = false;
    options.groups = random_.one_in(2) ? GroupPolicy::any : GroupPolicy::declared;
    PlanOutcome outcome = plan_requests(plan.meshes, plan.topology, {request}, options, "");
    if (!outcome.failures.empty()) return std::nullopt;
    PlannedRedistribution& planned = outcome.plan.redistributions.front();
    for (const Step& step : planned.steps) {
      if (step.phases != 1 || step.far_64ths != 0) return std::nullopt;
    }
    return planned;
  }

  // What is left to run of some tensors of a member.
  struct Job {
    RoundPart part;
    std::vector<size_t> needs;
    int64_t wave = -1;
  };

  [[nodiscard]] const Step& step_of(const RoundPart& part) const {
    return plan.redistributions[part.member].steps[static_cast<size_t>(part.step)];
  }

  [[nodiscard]] bool may_be_cut(const PlannedRedistribution& member, size_t step) const {
    if (member.request.tensor.shape.empty()) return false;
    for (size_t s = 0; s <= step; ++s) {
      if (member.steps[s].op != Op::exchange || member.steps[s].reduce_op) return false;
    }
    return true;
  }

  void add_jobs(std::vector<Job>& jobs, size_t at, int64_t from, int64_t to) {
    const PlannedRedistribution& member = plan.redistributions[at];
    std::vector<size_t> before;
    for (size_t s = 0; s < member.steps.size(); ++s) {
      const Step& step = member.steps[s];
      int64_t group = 1;
      for (const SubAxis& sub_axis : step.mesh_dims) group *= sub_axis.size;
      if (is_local(step.op) || (step.op != Op::exchange && group == 1)) continue;
      int64_t pieces = 1;
      if (may_be_cut(member, s)) {
        if (s == 0 && random_.one_in(2)) pieces = 1 + random_.below(4);
        if (s > 0 && !random_.one_in(3)) pieces = static_cast<int64_t>(before.size());
      }
      std::vector<size_t> own;
      for (int64_t i = 0; i < pieces; ++i) {
        Job job{{at, static_cast<int64_t>(s), from, to, i, pieces}, before, -1};
        if (s > 0 && pieces > 1) job.needs = {before[static_cast<size_t>(i)]};
        own.push_back(jobs.size());
        jobs.push_back(std::move(job));
      }
      before = own;
    }
  }

  void schedule(PlannedBundle& bundle) {
    std::vector<Job> jobs;
    for (const size_t at : bundle.request.members) {
      const int64_t count = plan.redistributions[at].request.count;
      for (int64_t from = 0; from < count;) {
        const int64_t to = from + 1 + random_.below(count - from);
        add_jobs(jobs, at, from, to);
        from = to;
      }
    }
    std::vector<int64_t> waves;
    for (int64_t wave = 0;; ++wave) {
      std::vector<size_t> ready;
      for (size_t j = 0; j < jobs.size(); ++j) {
        const bool can = jobs[j].wave < 0 && std::all_of(jobs[j].needs.begin(), jobs[j].needs.end(),
                                                         [&](size_t n) { return jobs[n].wave >= 0 && jobs[n].wave < wave; });
        if (can) ready.push_back(j);
      }
      if (ready.empty()) return;
      random_.shuffle(ready);
      run_wave(bundle, jobs, ready, wave, waves);
    }
  }

  void run_wave(PlannedBundle& bundle, std::vector<Job>& jobs, const std::vector<size_t>& ready, int64_t wave,
                std::vector<int64_t>& waves) {
    const Step& first = step_of(jobs[ready.front()].part);
    std::vector<int64_t> streams{0, 1, 2};
    random_.shuffle(streams);
    const int64_t most = first.op == Op::exchange ? 1 + random_.below(3) : 1;
    std::vector<BundleRound> rounds(static_cast<size_t>(most));
    for (const size_t j : ready) {
      const Step& step = step_of(jobs[j].part);
      const bool like =
          step.op == first.op && (step.op == Op::exchange || (step.group == first.group && step.mesh_dims == first.mesh_dims));
      if (!like || (j != ready.front() && random_.one_in(3))) continue;
      jobs[j].wave = wave;
      rounds[static_cast<size_t>(random_.below(most))].parts.push_back(jobs[j].part);
    }
    const size_t before = bundle.rounds.size();
    for (size_t i = 0; i < rounds.size(); ++i) {
      BundleRound& round = rounds[i];
      if (round.parts.empty()) continue;
      round.op = first.op;
      round.stream = streams[i];
      std::set<std::string> groups;
      for (const RoundPart& part : round.parts) groups.insert(step_of(part).group);
      if (groups.size() == 1) round.group = *groups.begin();
      set_after(bundle, round, before, wave, waves);
      bundle.rounds.push_back(round);
      waves.push_back(wave);
    }
  }

  // So that the round is in its wave and waits for all that ran: after those of the wave before, and some others.
  void set_after(const PlannedBundle& bundle, BundleRound& round, size_t before, int64_t wave, const std::vector<int64_t>& waves) {
    std::set<size_t> after;
    for (size_t r = 0; r < before; ++r) {
      if (waves[r] == wave - 1 && bundle.rounds[r].stream != round.stream) after.insert(r);
    }
    for (size_t r = 0; r < before; ++r) {
      if (random_.one_in(6)) after.insert(r);
    }
    round.after.assign(after.begin(), after.end());
  }

  Random& random_;
};

// A changed bundle, and how.
struct BundleMutant {
  std::string name;
  PlannedBundle bundle;
};

// Every way to break a bundle that is worth a try.
inline std::vector<BundleMutant> bundle_mutants(const Plan& plan, const PlannedBundle& right, Random& random) {
  std::vector<BundleMutant> mutants;
  const auto add = [&](const std::string& name, const std::function<void(PlannedBundle&)>& change) {
    BundleMutant mutant{name, right};
    change(mutant.bundle);
    if (!(mutant.bundle == right)) mutants.push_back(std::move(mutant));
  };
  const auto off = [&](const std::string& name, const std::function<int64_t&(PlannedBundle&)>& field, int64_t unit = 1) {
    add(name + " more", [&](PlannedBundle& b) { field(b) += unit; });
    add(name + " less", [&](PlannedBundle& b) { field(b) -= unit; });
  };
  const size_t count = right.rounds.size();
  for (size_t r = 0; r < count; ++r) {
    const auto in_round = [&, r](const std::string& name, const std::function<void(BundleRound&)>& change) {
      add("round: " + name, [&, r](PlannedBundle& b) { change(b.rounds[r]); });
    };
    for (int op = 0; op < 7; ++op) in_round("op", [&](BundleRound& x) { x.op = static_cast<Op>(op); });
    for (const char* group : {"", "train", "serve", "train+serve", "part", "a", "a+b", "nowhere"})
      in_round("group", [&](BundleRound& x) { x.group = group; });
    for (const int64_t stream : {-1, 0, 1, 2, 3}) in_round("stream", [&](BundleRound& x) { x.stream = stream; });
    for (size_t i = 0; i < right.rounds[r].after.size(); ++i) {
      in_round("less after", [&](BundleRound& x) { x.after.erase(x.after.begin() + static_cast<std::ptrdiff_t>(i)); });
      in_round("repeated after", [&](BundleRound& x) { x.after.insert(x.after.begin() + static_cast<std::ptrdiff_t>(i), x.after[i]); });
    }
    in_round("no after", [](BundleRound& x) { x.after.clear(); });
    in_round("turned after", [](BundleRound& x) { std::reverse(x.after.begin(), x.after.end()); });
    for (size_t before = 0; before < count + 2; ++before) {
      in_round("more after", [&](BundleRound& x) {
        x.after.push_back(before);
        if (before < r) std::sort(x.after.begin(), x.after.end());
      });
    }
    off("round: wire_bytes", [r](PlannedBundle& b) -> int64_t& { return b.rounds[r].wire_bytes; });
    off("round: staging_bytes", [r](PlannedBundle& b) -> int64_t& { return b.rounds[r].staging_bytes; });
    off("round: messages", [r](PlannedBundle& b) -> int64_t& { return b.rounds[r].messages; });
    off(
        "round: predicted", [r](PlannedBundle& b) -> int64_t& { return b.rounds[r].predicted_ps; }, 1000);
    add("rounds: dropped", [r](PlannedBundle& b) { b.rounds.erase(b.rounds.begin() + static_cast<std::ptrdiff_t>(r)); });
    add("rounds: repeated", [r](PlannedBundle& b) { b.rounds.push_back(b.rounds[r]); });
    add("rounds: emptied", [r](PlannedBundle& b) { b.rounds[r].parts.clear(); });
    if (r + 1 < count) {
      add("rounds: swapped", [r](PlannedBundle& b) { std::swap(b.rounds[r], b.rounds[r + 1]); });
      add("rounds: parts swapped", [r](PlannedBundle& b) { std::swap(b.rounds[r].parts, b.rounds[r + 1].parts); });
      add("rounds: joined", [r](PlannedBundle& b) {
        auto& parts = b.rounds[r].parts;
        parts.insert(parts.end(), b.rounds[r + 1].parts.begin(), b.rounds[r + 1].parts.end());
        b.rounds.erase(b.rounds.begin() + static_cast<std::ptrdiff_t>(r + 1));
      });
    }
    for (size_t p = 0; p < right.rounds[r].parts.size(); ++p) {
      const auto in_part = [&, r, p](const std::string& name, const std::function<void(RoundPart&)>& change) {
        add("part: " + name, [&, r, p](PlannedBundle& b) { change(b.rounds[r].parts[p]); });
      };
      const auto off_part = [&, r, p](const std::string& name, int64_t RoundPart::*field) {
        off("part: " + name, [=](PlannedBundle& b) -> int64_t& { return b.rounds[r].parts[p].*field; });
      };
      for (size_t m = 0; m <= plan.redistributions.size(); ++m) in_part("member", [&](RoundPart& x) { x.member = m; });
      off_part("step", &RoundPart::step);
      off_part("from", &RoundPart::from);
      off_part("to", &RoundPart::to);
      off_part("piece", &RoundPart::piece);
      off_part("pieces", &RoundPart::pieces);
      in_part("tensors shifted", [](RoundPart& x) { ++x.from, ++x.to; });
      in_part("tensors shifted", [](RoundPart& x) { --x.from, --x.to; });
      in_part("other cut", [](RoundPart& x) { x.pieces = x.pieces == 1 ? 2 : 1, x.piece = 0; });
      in_part("huge", [](RoundPart& x) { x.to = INT64_MAX; });
      in_part("huge", [](RoundPart& x) { x.pieces = INT64_MAX; });
      add("parts: dropped", [=](PlannedBundle& b) { b.rounds[r].parts.erase(b.rounds[r].parts.begin() + static_cast<std::ptrdiff_t>(p)); });
      add("parts: repeated", [=](PlannedBundle& b) { b.rounds[r].parts.push_back(b.rounds[r].parts[p]); });
      const size_t other = static_cast<size_t>(random.below(static_cast<int64_t>(count)));
      add("parts: moved", [=](PlannedBundle& b) {
        const RoundPart part = b.rounds[r].parts[p];
        b.rounds[r].parts.erase(b.rounds[r].parts.begin() + static_cast<std::ptrdiff_t>(p));
        b.rounds[other].parts.push_back(part);
      });
      if (p > 0) add("parts: turned", [=](PlannedBundle& b) { std::swap(b.rounds[r].parts[p - 1], b.rounds[r].parts[p]); });
    }
  }
  using Field = int64_t BundleTotals::*;
  // clang-format off
  const std::vector<std::tuple<std::string, Field, int64_t>> totals{
      {"rounds", &BundleTotals::rounds, 1},
      {"wire_bytes", &BundleTotals::wire_bytes, 1},
      {"staging_bytes", &BundleTotals::staging_bytes, 1},
      {"peak_bytes", &BundleTotals::peak_bytes, 1},
      {"messages", &BundleTotals::messages, 1},
      {"predicted", &BundleTotals::predicted_ps, 1000},
      {"lower bound", &BundleTotals::lower_bound_ps, 1000}};
  // clang-format on
  for (const auto& total : totals) {
    const Field field = std::get<1>(total);
    off(
        "total: " + std::get<0>(total), [field](PlannedBundle& b) -> int64_t& { return b.totals.*field; }, std::get<2>(total));
  }
  off("tensors", [](PlannedBundle& b) -> int64_t& { return b.tensors; });
  off(
      "gap", [](PlannedBundle& b) -> int64_t& { return b.proven_gap_ps; }, 1000);
  add("bound above the time", [](PlannedBundle& b) { b.totals.lower_bound_ps = b.totals.predicted_ps + 1000, b.proven_gap_ps = -1000; });
  add("alone below the bound", [](PlannedBundle& b) { b.alone_ps = b.totals.lower_bound_ps - 1000; });
  add("count", [](PlannedBundle& b) { b.request.count = 0; });
  add("max_messages", [](PlannedBundle& b) { b.request.max_messages = 0; });
  add("max_staging_bytes", [](PlannedBundle& b) { b.request.max_staging_bytes = -1; });
  add("staging limit", [](PlannedBundle& b) { b.request.max_staging_bytes = std::max<int64_t>(1, b.totals.staging_bytes - 1); });
  add("staging limit kept", [](PlannedBundle& b) { b.request.max_staging_bytes = b.totals.staging_bytes; });
  add("messages limit", [](PlannedBundle& b) {
    int64_t most = 1;
    for (const BundleRound& round : b.rounds) most = std::max(most, round.messages);
    b.request.max_messages = std::max<int64_t>(1, most - 1);
  });
  for (size_t m = 0; m < right.request.members.size(); ++m) {
    const auto at = static_cast<std::ptrdiff_t>(m);
    add("members: dropped", [=](PlannedBundle& b) { b.request.members.erase(b.request.members.begin() + at); });
    add("members: repeated", [=](PlannedBundle& b) { b.request.members.insert(b.request.members.begin() + at, b.request.members[m]); });
    if (m > 0) add("members: turned", [=](PlannedBundle& b) { std::swap(b.request.members[m - 1], b.request.members[m]); });
  }
  for (size_t m = 0; m <= plan.redistributions.size(); ++m)
    add("members: more", [=](PlannedBundle& b) {
      b.request.members.push_back(m);
      std::sort(b.request.members.begin(), b.request.members.end());
    });
  return mutants;
}

}  // namespace meshplan::test
