#include "planner/bundle_choice.h"

#include <algorithm>

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

void add(CollectiveBytes& sum, const CollectiveBytes& more) {
  sum.op = more.op;
  sum.whole = saturating_add(sum.whole, more.whole);
  sum.piece = saturating_add(sum.piece, more.piece);
  sum.copied = saturating_add(sum.copied, more.copied);
}

}  // namespace

ChoiceTimes::ChoiceTimes(const Plan& plan, const std::vector<Kind>& kinds,
                         const std::vector<std::unique_ptr<LevelMap>>& levels,
                         FigureCounter& counter, int64_t most_staging)
    : plan_(plan),
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
  }
  return moved;
}

int64_t ChoiceTimes::collective_ps(const Launch& launch, const CollectiveBytes& bytes,
                                   const Topology& topology) const {
  const auto& [mesh, op, dims] = launch;
  std::vector<Atom> atoms;
  for (const auto& [mesh_dim, before, size] : dims) atoms.push_back({mesh_dim, before, size});
  std::string tier;
  return finer_ps(topology, levels_[mesh]->shapes(atoms), bytes, tier);
}

std::optional<ChoiceTimes::All> ChoiceTimes::all_of(const std::vector<size_t>& chosen,
                                                    Messages messages) {
  std::vector<RoundLoad> rounds;  // by exchange
  All all{counter_.no_load(), {}};
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
  }
  for (const RoundLoad& round : rounds) all.exchanges.add(round);
  return all;
}

int64_t ChoiceTimes::ps(const All& all, const Topology& topology) const {
  int64_t sum = all.exchanges.predicted_ps(topology);
  for (const auto& [launch, bytes] : all.collectives)
    sum = saturating_add(sum, collective_ps(launch, bytes, topology));
  return sum;
}

int64_t ChoiceTimes::about_ps(const std::vector<size_t>& chosen, Messages messages) {
  const std::optional<All> all = all_of(chosen, messages);
  if (!all) return INT64_MAX;
  const int64_t once = ps(*all, plan_.topology);
  if (most_staging_ == 0) return once;
  const int64_t more = ceil_div(all->exchanges.staging_bytes(), most_staging_) - 1;
  if (more <= 0 || has_tables(plan_.topology)) return once;
  const int64_t latencies = std::max<int64_t>(0, once - ps(*all, bytes_alone_));
  return saturating_add(once, saturating_mul(more, latencies));
}

int64_t ChoiceTimes::least_ps(const std::vector<size_t>& chosen) {
  const std::optional<All> all = all_of(chosen, Messages::shared);
  return !all || has_tables(plan_.topology) ? 0 : ps(*all, bytes_alone_);
}

}  // namespace meshplan
