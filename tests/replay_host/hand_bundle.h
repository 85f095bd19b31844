// Bundles for tests of the executor: redistributions made by hand, put into rounds by a small
// random scheduler that knows the rules of plan/bundle.h and nothing of costs.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "hand_made.h"
#include "transfer/piece_transfers.h"
#include "transfer/round_transfers.h"

namespace meshplan::test {

// Adds a redistribution to a plan on the same meshes.
inline void add_member(Plan& plan, HandPlan hand, const std::string& id, int64_t count) {
  hand.table = plan.meshes;
  Plan one = make_plan(hand);
  one.redistributions[0].request.id = id;
  one.redistributions[0].request.count = count;
  plan.redistributions.push_back(std::move(one.redistributions[0]));
}

inline Plan plan_of(const HandPlan& first, const std::string& id, int64_t count) {
  Plan plan = make_plan(first);
  plan.redistributions[0].request.id = id;
  plan.redistributions[0].request.count = count;
  return plan;
}

// Some of the like tensors of a member, one step of them, one piece.
struct Task {
  RoundPart part;
  std::vector<size_t> needs;  // tasks
  int64_t round = -1;
};

struct Scheduling {
  int64_t most_parts = 4;  // of a round
  int64_t streams = 2;
  int64_t most_pieces = 3;
};

inline std::vector<Task> tasks_of(const Plan& plan, const std::vector<size_t>& members, const Scheduling& how, std::mt19937& random) {
  std::vector<Task> tasks;
  for (const size_t member : members) {
    const PlannedRedistribution& r = plan.redistributions[member];
    for (int64_t from = 0; from < r.request.count;) {
      const int64_t to = from + 1 + static_cast<int64_t>(random() % static_cast<size_t>(r.request.count - from));
      std::vector<size_t> before;
      int64_t pieces = 1;
      for (size_t step = 0; step < r.steps.size(); ++step) {
        if (is_in_no_round(r.steps[step])) continue;
        if (step == 0 && goes_in_pieces(r, 0)) pieces = 1 + static_cast<int64_t>(random() % static_cast<size_t>(how.most_pieces));
        const bool alike = step > 0 && pieces > 1 && std::ssize(before) == pieces && goes_in_pieces(r, step) && random() % 3 > 0;
        const int64_t now = step == 0 || alike ? pieces : 1;
        std::vector<size_t> made;
        for (int64_t piece = 0; piece < now; ++piece) {
          Task task{{member, static_cast<int64_t>(step), from, to, piece, now}, before, -1};
          if (alike) task.needs = {before[static_cast<size_t>(piece)]};
          made.push_back(tasks.size());
          tasks.push_back(std::move(task));
        }
        before = std::move(made);
      }
      from = to;
    }
  }
  return tasks;
}

// Puts all tasks into rounds: a round has tasks of one op and group that were ready before it.
inline PlannedBundle schedule(const Plan& plan, const std::string& id, const std::vector<size_t>& members, const Scheduling& how,
                              std::mt19937& random) {
  PlannedBundle bundle;
  bundle.request.id = id;
  bundle.request.members = members;
  for (const size_t member : members) bundle.tensors += plan.redistributions[member].request.count;
  std::vector<Task> tasks = tasks_of(plan, members, how, random);
  const auto key_of = [&](const Task& task) {
    const Step& step = plan.redistributions[task.part.member].steps[static_cast<size_t>(task.part.step)];
    std::string key = to_text(step.op);
    if (step.op != Op::exchange) {
      for (const SubAxis& sub_axis : step.mesh_dims)
        key += " " + std::to_string(sub_axis.mesh_dim) + ":" + std::to_string(sub_axis.before) + ":" + std::to_string(sub_axis.size);
    }
    return key;
  };
  while (true) {
    std::vector<size_t> ready;
    for (size_t i = 0; i < tasks.size(); ++i) {
      const auto& needs = tasks[i].needs;
      if (tasks[i].round < 0 && std::all_of(needs.begin(), needs.end(), [&](size_t n) { return tasks[n].round >= 0; })) ready.push_back(i);
    }
    if (ready.empty()) break;
    std::shuffle(ready.begin(), ready.end(), random);
    BundleRound round;
    const size_t first = ready[0];
    round.op = plan.redistributions[tasks[first].part.member].steps[static_cast<size_t>(tasks[first].part.step)].op;
    round.stream = static_cast<int64_t>(random() % static_cast<size_t>(how.streams));
    std::set<size_t> after;
    for (const size_t i : ready) {
      if (key_of(tasks[i]) != key_of(tasks[first]) || std::ssize(round.parts) >= how.most_parts) continue;
      tasks[i].round = std::ssize(bundle.rounds);
      round.parts.push_back(tasks[i].part);
      for (const size_t n : tasks[i].needs) after.insert(static_cast<size_t>(tasks[n].round));
    }
    round.after.assign(after.begin(), after.end());
    bundle.rounds.push_back(std::move(round));
  }
  return bundle;
}

// What rounds send, counted from the transfers: a second opinion on what the executor measures.
struct Counted {
  int64_t staging = 0;
  std::vector<int64_t> messages;  // by round
};

inline std::vector<HeldBoxes> held_of(const Plan& plan, const PlannedRedistribution& r, const RankTable& ranks) {
  const bool crosses = r.request.src_mesh != r.request.dst_mesh;
  const Mesh& src = plan.meshes.meshes[r.request.src_mesh];
  const int64_t copies = crosses ? 1 : mesh_copies(src);
  std::vector<HeldBoxes> held{make_held_boxes(src, r.request.src, r.request.tensor.shape, copies, ranks)};
  for (const Step& step : r.steps) {
    const Mesh& mesh = step.mesh.empty() ? src : plan.meshes.meshes[*find_mesh(plan.meshes, step.mesh)];
    held.push_back(make_held_boxes(mesh, step.state, r.request.tensor.shape, copies, ranks));
  }
  return held;
}

// Of bundles of exchanges and local steps that reduce nothing.
inline Counted count_exchanges(const Plan& plan, const PlannedBundle& bundle) {
  const RankTable ranks = make_rank_table(plan.meshes);
  const std::vector<int64_t> waves = waves_of(bundle.rounds);
  const int64_t last = waves.empty() ? 0 : *std::max_element(waves.begin(), waves.end());
  std::map<std::pair<int64_t, int32_t>, int64_t> staged;  // wave, rank
  // (member, tensor, step) -> waves that run it
  std::map<std::tuple<size_t, int64_t, size_t>, std::pair<int64_t, int64_t>> run;
  Counted counted;
  for (size_t i = 0; i < bundle.rounds.size(); ++i) {
    std::map<int32_t, std::set<std::pair<int32_t, int32_t>>> messages;
    for (const RoundPart& part : bundle.rounds[i].parts) {
      const PlannedRedistribution& r = plan.redistributions[part.member];
      const auto held = held_of(plan, r, ranks);
      const auto whole = [&](size_t s) { return *make_transfers({&held[s], &held[s + 1], &r.steps[s], &ranks, &plan.topology, "test"}); };
      const auto step = static_cast<size_t>(part.step);
      StepTransfers transfers = whole(step);
      if (part.pieces > 1) {
        const PieceCut cut = piece_cut(r);
        GotBoxes got = got_in_first(cut, whole(0));
        for (size_t s = 1; s < step; ++s) got = got_in_next(got, whole(s));
        transfers =
            step == 0 ? piece_of_first(cut, transfers, part.piece, part.pieces) : piece_of_next(got, transfers, part.piece, part.pieces);
      }
      for (int64_t t = part.from; t < part.to; ++t) {
        auto [at, fresh] = run.emplace(std::tuple{part.member, t, step}, std::pair{waves[i], waves[i]});
        at->second = {std::min(at->second.first, waves[i]), std::max(at->second.second, waves[i])};
      }
      for (size_t slot = 0; slot < transfers.slots.size(); ++slot) {
        for (const Transfer& t : transfers.slots[slot].transfers) {
          const int32_t from = held[step].ranks[static_cast<size_t>(t.from)];
          const int32_t to = held[step + 1].ranks[slot];
          if (from == to || volume(t.box) == 0) continue;
          const int64_t bytes = volume(t.box) * element_bytes(r.request.tensor.dtype) * (part.to - part.from);
          for (const int32_t end : {from, to}) {
            staged[{waves[i], end}] += bytes;
            messages[end].insert({from, to});
          }
        }
      }
    }
    int64_t most = 0;
    for (const auto& [rank, pairs] : messages) most = std::max<int64_t>(most, std::ssize(pairs));
    counted.messages.push_back(most);
  }
  for (const size_t member : bundle.request.members) {
    const PlannedRedistribution& r = plan.redistributions[member];
    const auto held = held_of(plan, r, ranks);
    for (int64_t t = 0; t < r.request.count; ++t) {
      // Waves of every step; local ones run with the next other step, or behind the last.
      std::vector<std::pair<int64_t, int64_t>> at(r.steps.size(), {-1, -1});
      for (size_t s = 0; s < r.steps.size(); ++s) {
        if (const auto known = run.find({member, t, s}); known != run.end()) at[s] = known->second;
      }
      for (size_t s = r.steps.size(); s-- > 0;) {
        if (at[s].first < 0 && s + 1 < r.steps.size()) at[s] = {at[s + 1].first, at[s + 1].first};
      }
      for (size_t s = 1; s < r.steps.size(); ++s) {
        if (at[s].first < 0) at[s] = {at[s - 1].second, at[s - 1].second};
      }
      for (size_t s = 1; s < r.steps.size(); ++s) {
        for (int64_t wave = at[s - 1].first; wave <= std::min(at[s].second, last); ++wave) {
          for (size_t slot = 0; slot < held[s].ranks.size(); ++slot)
            staged[{wave, held[s].ranks[slot]}] +=
                volume(box_of_slot(held[s], static_cast<int64_t>(slot))) * element_bytes(r.request.tensor.dtype);
        }
      }
    }
  }
  for (const auto& [key, bytes] : staged) counted.staging = std::max(counted.staging, bytes);
  return counted;
}

// Two meshes that share no rank: 12 ranks train, `replicas` x 2 serve.
inline MeshTable train_and_serve(int64_t train = 12, int64_t serve = 4) {
  MeshTable table;
  std::vector<int64_t> others;
  for (int64_t i = 0; i < serve; ++i) others.push_back(train + serve - 1 - i);
  (void)add_root(table, "train", train, {}, {{"x", train}});
  (void)add_root(table, "serve", serve, others, {{"y", serve}});
  return table;
}

inline HandPlan member(const MeshTable& table, const std::string& from, const std::string& to, std::vector<int64_t> shape, DType dtype,
                       const std::string& src, std::vector<HandStep> steps) {
  HandPlan hand;
  hand.table = table;
  hand.src_mesh = from;
  hand.dst_mesh = to;
  hand.tensor = {std::move(shape), dtype};
  hand.src = src;
  hand.steps = std::move(steps);
  hand.host_ranks = 2;
  return hand;
}

inline HandStep onto(const std::string& mesh, const std::string& dim, const std::string& state, std::optional<ReduceOp> op = std::nullopt) {
  return {Op::exchange, {dim}, state, op, 1, 1, false, mesh};
}

// A weight sync of all kinds: like tensors, uneven and empty shards, FP8 beside bfloat16 and
// float32, two steps that share on the target mesh, tensors of some ranks only, local steps in
// front and behind, a reduction, scalars.
inline Plan sync_plan(int64_t train = 12, int64_t serve = 4) {
  const MeshTable table = train_and_serve(train, serve);
  const HandStep slice{Op::slice, {"y"}, "S(1)", std::nullopt, 1, 1, false, "serve"};
  Plan plan =
      plan_of(member(table, "train", "serve", {37, 10}, DType::bfloat16, "S(0)", {onto("serve", "y", "S(1)")}), "attention.*.wq", 5);
  const auto add = [&](const std::string& id, int64_t count, const HandPlan& hand) { add_member(plan, hand, id, count); };
  add("norm", 3, member(table, "train", "serve", {29}, DType::float32, "R", {onto("serve", "y", "R")}));
  add("experts.*.w1", 4, member(table, "train", "serve", {24, 7, 3}, DType::float8_e4m3, "S(0)", {onto("serve", "y", "S(1)")}));
  add("fan_out", 2,
      member(table, "train", "serve", {50, 6}, DType::bfloat16, "S(0)", {onto("serve", "y", "S(0)"), onto("serve", "y", "R")}));
  add("gathered", 2,
      member(table, "train", "serve", {26, 5}, DType::bfloat16, "S(1)",
             {onto("serve", "y", "S(0)"), {Op::all_gather, {"y"}, "R", std::nullopt, 1, 1, false, "serve"}}));
  add("sliced", 2, member(table, "train", "serve", {9, 8}, DType::int16, "S(0)", {onto("serve", "y", "R"), slice}));
  add("cut first", 1,
      member(table, "train", "serve", {13, 4}, DType::float32, "R", {{Op::slice, {"x"}, "S(0)"}, onto("serve", "y", "S(0)")}));
  add("grad", 2, member(table, "train", "serve", {11, 6}, DType::float32, "P(sum)", {onto("serve", "y", "S(1)", ReduceOp::sum)}));
  add("scale", 3, member(table, "train", "serve", {}, DType::float32, "R", {onto("serve", "y", "R")}));
  add("inside", 2,
      member(table, "serve", "", {10, 6}, DType::bfloat16, "P(sum)",
             {{Op::reduce_scatter, {"y"}, "S(0)", ReduceOp::sum}, {Op::all_to_all, {"y"}, "S(1)"}}));
  add("chain", 2,
      member(table, "train", "serve", {36, 5}, DType::bfloat16, "S(0)",
             {{Op::exchange, {"x"}, "S(1)"}, onto("serve", "y", "S(0)"), onto("serve", "y", "R")}));
  add("kept", 1, member(table, "train", "", {6}, DType::float32, "S(0)", {}));
  add("local", 1, member(table, "train", "", {25}, DType::float32, "R", {{Op::slice, {"x"}, "S(0)"}, {Op::to_partial, {"x"}, "P(sum)"}}));
  return plan;
}

inline std::vector<size_t> all_members(const Plan& plan) {
  std::vector<size_t> members(plan.redistributions.size());
  for (size_t i = 0; i < members.size(); ++i) members[i] = i;
  return members;
}

}  // namespace meshplan::test
