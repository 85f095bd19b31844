#include "planner/bundle_choice.h"

#include <algorithm>
#include <climits>

#include "base/int_math.h"
#include "cost/finer_tiers.h"
#include "cost/protocols.h"
#include "cost/step_figures.h"
#include "transfer/round_transfers.h"

namespace meshplan {
namespace {

// What bytes take over links, with nothing that a round or a launch pays once.
Topology without_latencies(const Topology& topology) {
  Topology bytes = bound_topology(topology, true);
  for (TopologyLevel& level : bytes.levels) level.latency_ns = level.per_peer_ns = 0;
  return bytes;
}

CollectiveBytes times(CollectiveBytes bytes, int64_t tensors) {
  for (int64_t* sum : {&bytes.whole, &bytes.piece, &bytes.copied})
    *sum = saturating_mul(*sum, tensors);
  return bytes;
}

std::vector<Atom> atoms_of(const std::vector<std::tuple<int32_t, int64_t, int64_t>>& dims) {
  std::vector<Atom> atoms;
  for (const auto& [mesh_dim, before, size] : dims) atoms.push_back({mesh_dim, before, size});
  return atoms;
}

void add(CollectiveBytes& sum, const CollectiveBytes& more) {
  sum.op = more.op;
  sum.whole = saturating_add(sum.whole, more.whole);
  sum.piece = saturating_add(sum.piece, more.piece);
  sum.copied = saturating_add(sum.copied, more.copied);
}

}  // namespace

ChoiceTimes::ChoiceTimes(const Plan& plan, const RankTable& ranks, const std::vector<Kind>& kinds,
                         const std::vector<std::unique_ptr<LevelMap>>& levels,
                         FigureCounter& counter, int64_t most_staging)
    : plan_(plan),
      ranks_(ranks),
      kinds_(kinds),
      levels_(levels),
      counter_(counter),
      most_staging_(most_staging),
      bytes_alone_(without_latencies(plan.topology)) {}

const ChoiceTimes::Moved& ChoiceTimes::moved(size_t kind, size_t way) {
  const auto [at, fresh] = moved_.try_emplace({kind, way});
  Moved& moved = at->second;
  if (!fresh) return moved;
  const PlannedRedistribution& planned = kinds_[kind].ways[way].planned;
  moved.loads = counter_.loads_of(kinds_[kind].ways[way], kinds_[kind].tensors);
  for (size_t i = 0; i < planned.steps.size(); ++i) {
    const Step& step = planned.steps[i];
    if (step.op == Op::exchange || is_in_no_round(step)) continue;
    Launch launch{mesh_of_collective(plan_, planned, i), step.op, {}};
    for (const Atom& atom : step.mesh_dims)
      std::get<2>(launch).push_back({atom.mesh_dim, atom.before, atom.size});
    CollectiveBytes bytes = collective_figures(plan_, planned, i).bytes;
    bytes.op = step.op;
    add(moved.collectives[launch], times(bytes, kinds_[kind].tensors));
    const auto [ranks, new_mesh] = moved.ranks.try_emplace(std::get<0>(launch));
    if (new_mesh) ranks->second = ranks_of_collective(plan_, ranks_, planned, i);
  }
  return moved;
}

int64_t ChoiceTimes::collective_ps(const Launch& launch, const CollectiveBytes& bytes,
                                   const Topology& topology) const {
  const auto& [mesh, op, dims] = launch;
  std::string tier;
  return finer_ps(topology, levels_[mesh]->shapes(atoms_of(dims)), bytes, tier);
}

std::optional<ChoiceTimes::All> ChoiceTimes::all_of(const std::vector<size_t>& chosen,
                                                    Messages messages) {
  std::vector<RoundLoad> rounds;  // by exchange
  All all{counter_.no_load(), {}, {}};
  for (size_t k = 0; k < kinds_.size(); ++k) {
    const Moved& of_kind = moved(k, chosen[k]);
    if (!of_kind.loads) return std::nullopt;
    const std::vector<RoundLoad>& loads = *of_kind.loads;
    rounds.resize(std::max(rounds.size(), loads.size()), counter_.no_load());
    for (size_t i = 0; i < loads.size(); ++i) {
      if (messages == Messages::shared) rounds[i].add_to_messages(loads[i]);
      if (messages == Messages::of_kinds) rounds[i].add(loads[i]);
    }
    for (const auto& [launch, bytes] : of_kind.collectives) add(all.collectives[launch], bytes);
    all.ranks.insert(of_kind.ranks.begin(), of_kind.ranks.end());
  }
  for (const RoundLoad& round : rounds) all.exchanges.add(round);
  return all;
}

int64_t ChoiceTimes::ps(const All& all, const Topology& topology, Launches launches) const {
  const int64_t exchanges = all.exchanges.predicted_ps(topology);
  if (all.collectives.empty()) return exchanges;
  int64_t sum = 0;
  int innermost = INT_MAX;
  for (const auto& [launch, bytes] : all.collectives) {
    sum = saturating_add(sum, collective_ps(launch, bytes, topology));
    innermost = std::min(
        innermost,
        outermost_level(levels_[std::get<0>(launch)]->shapes(atoms_of(std::get<2>(launch)))));
  }
  if (launches == Launches::behind) return saturating_add(exchanges, sum);
  std::vector<size_t> part_in(counter_.ranks(), 0);  // meshes whose collectives
  for (const auto& [mesh, ranks] : all.ranks) {
    for (const int32_t rank : ranks) ++part_in[static_cast<size_t>(rank)];
  }
  std::vector<bool> in_all(part_in.size());
  for (size_t r = 0; r < part_in.size(); ++r) in_all[r] = part_in[r] == all.ranks.size();
  const int64_t behind = all.exchanges.predicted_ps(topology, in_all, innermost);
  return std::max(exchanges, saturating_add(sum, behind));
}

int64_t ChoiceTimes::about_ps(const std::vector<size_t>& chosen, Messages messages,
                              Launches launches) {
  const std::optional<All> all = all_of(chosen, messages);
  if (!all) return INT64_MAX;
  const int64_t once = ps(*all, plan_.topology, launches);
  if (most_staging_ == 0) return once;
  const int64_t more = ceil_div(all->exchanges.staging_bytes(), most_staging_) - 1;
  if (more <= 0 || has_tables(plan_.topology)) return once;
  const int64_t latencies = std::max<int64_t>(0, once - ps(*all, bytes_alone_, launches));
  return saturating_add(once, saturating_mul(more, latencies));
}

int64_t ChoiceTimes::least_ps(const std::vector<size_t>& chosen) {
  const std::optional<All> all = all_of(chosen, Messages::shared);
  return !all || has_tables(plan_.topology) ? 0 : ps(*all, bytes_alone_, Launches::beside);
}

}  // namespace meshplan
