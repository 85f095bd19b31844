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

std::vector<SubAxis> sub_axes_of(const std::vector<std::tuple<int32_t, int64_t, int64_t>>& dims) {
  std::vector<SubAxis> sub_axes;
  for (const auto& [mesh_dim, before, size] : dims) sub_axes.push_back({mesh_dim, before, size});
  return sub_axes;
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
    for (const SubAxis& sub_axis : step.mesh_dims)
      std::get<2>(launch).push_back({sub_axis.mesh_dim, sub_axis.before, sub_axis.size});
    CollectiveBytes bytes = collective_figures(plan_, levels_, planned, i).bytes;
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
  return finer_ps(topology, levels_[mesh]->shapes(sub_axes_of(dims)), bytes, tier);
}

void ChoiceTimes::add_kind(Sum& sum, size_t kind, size_t way, Messages messages) {
  const Moved& of_kind = moved(kind, way);
  ++added_;
  if (!of_kind.loads) {
    sum.idle = true;
    return;
  }
  const std::vector<KeptLoad>& loads = of_kind.loads->of_exchanges;
  sum.rounds.resize(std::max(sum.rounds.size(), loads.size()), counter_.no_load());
  for (size_t i = 0; i < loads.size(); ++i) {
    if (messages == Messages::shared) sum.rounds[i].add_to_messages(loads[i]);
    if (messages == Messages::of_kinds) sum.rounds[i].add(loads[i]);
  }
  for (const auto& [launch, bytes] : of_kind.collectives) add(sum.collectives[launch], bytes);
  for (const auto& [mesh, ranks] : of_kind.ranks) {
    const auto [at, fresh] = sum.ranks.try_emplace(mesh, kind, &ranks);
    if (kind < at->second.first) at->second = {kind, &ranks};
  }
}

ChoiceTimes::Sum ChoiceTimes::sum_of(const std::vector<size_t>& chosen, Messages messages) {
  Sum sum;
  for (size_t k = 0; k < kinds_.size(); ++k) add_kind(sum, k, chosen[k], messages);
  return sum;
}

RoundLoad ChoiceTimes::exchanges_of(const Sum& sum) const {
  RoundLoad exchanges = counter_.no_load();
  for (const RoundLoad& round : sum.rounds) exchanges.add(round);
  return exchanges;
}

int64_t ChoiceTimes::ps(const Sum& sum, const RoundLoad& exchanges, const Topology& topology,
                        Launches launches) const {
  const int64_t apart = exchanges.predicted_ps(topology);
  if (sum.collectives.empty()) return apart;
  int64_t together = 0;
  LevelSet in_all = ~LevelSet{0};  // of their levels
  for (const auto& [launch, bytes] : sum.collectives) {
    // Of bytes alone groups of unequal parts are priced as exchanges, which a protocol may beat.
    const int64_t ps = std::min(collective_ps(launch, bytes, topology),
                                collective_ps(launch, bytes, plan_.topology));
    together = saturating_add(together, ps);
    in_all &= levels_met(levels_[std::get<0>(launch)]->shapes(sub_axes_of(std::get<2>(launch))));
  }
  if (launches == Launches::behind) return saturating_add(apart, together);
  std::vector<size_t> part_in(counter_.ranks(), 0);  // meshes whose collectives
  for (const auto& [mesh, ranks] : sum.ranks) {
    for (const int32_t rank : *ranks.second) ++part_in[static_cast<size_t>(rank)];
  }
  std::vector<bool> takes_part(part_in.size());  // in all of them
  for (size_t r = 0; r < part_in.size(); ++r) takes_part[r] = part_in[r] == sum.ranks.size();
  const int64_t behind = exchanges.predicted_ps(topology, takes_part, in_all);
  return std::max(apart, saturating_add(together, behind));
}

int64_t ChoiceTimes::about_ps(const Sum& sum, Launches launches) const {
  if (sum.idle) return INT64_MAX;
  const RoundLoad exchanges = exchanges_of(sum);
  const int64_t once = ps(sum, exchanges, plan_.topology, launches);
  if (most_staging_ == 0) return once;
  const int64_t more = ceil_div(exchanges.staging_bytes(), most_staging_) - 1;
  if (more <= 0 || has_tables(plan_.topology)) return once;
  const int64_t latencies = std::max<int64_t>(0, once - ps(sum, exchanges, bytes_alone_, launches));
  return saturating_add(once, saturating_mul(more, latencies));
}

int64_t ChoiceTimes::about_ps(const std::vector<size_t>& chosen, Messages messages,
                              Launches launches) {
  return about_ps(sum_of(chosen, messages), launches);
}

int64_t ChoiceTimes::least_ps(const std::vector<size_t>& chosen) {
  const Sum sum = sum_of(chosen, Messages::shared);
  if (sum.idle || has_tables(plan_.topology)) return 0;
  return ps(sum, exchanges_of(sum), bytes_alone_, Launches::beside);
}

int64_t ChoiceTimes::whole_messages(size_t kind, size_t way) {
  const Moved& of_way = moved(kind, way);
  return of_way.loads ? of_way.loads->messages : INT64_MAX;
}

int64_t ChoiceTimes::whole_messages(const std::vector<size_t>& chosen) {
  int64_t most = 0;
  for (size_t k = 0; k < kinds_.size(); ++k) most = std::max(most, whole_messages(k, chosen[k]));
  return most;
}

std::vector<size_t> ChoiceTimes::fewest_messages() {
  std::vector<size_t> fewest(kinds_.size(), 0);
  for (size_t k = 0; k < kinds_.size(); ++k) {
    for (size_t way = 1; way < kinds_[k].ways.size(); ++way) {
      if (whole_messages(k, way) < whole_messages(k, fewest[k])) fewest[k] = way;
    }
  }
  return fewest;
}

int64_t ChoiceTimes::unlisted_pairs(const std::vector<size_t>& chosen) {
  int64_t pairs = 0;
  for (size_t k = 0; k < kinds_.size(); ++k) {
    const Moved& of_kind = moved(k, chosen[k]);
    if (!kinds_[k].ways[chosen[k]].listed && of_kind.loads)
      pairs = saturating_add(pairs, of_kind.loads->pairs);
  }
  return pairs;
}

struct ChoiceTimes::Settling {
  std::vector<size_t>* chosen = nullptr;
  Messages messages = Messages::shared;
  Launches launches = Launches::behind;
  const Pick* pick = nullptr;
};

void ChoiceTimes::settle(std::vector<size_t>& chosen, Messages messages, Launches launches,
                         const Pick& pick) {
  settle_range({&chosen, messages, launches, &pick}, {0, static_cast<int64_t>(kinds_.size())}, {});
}

void ChoiceTimes::settle_range(const Settling& settling, Interval kinds, const Sum& others) {
  if (kinds.lo + 1 >= kinds.hi) {
    if (kinds.lo == kinds.hi) return;
    const auto k = static_cast<size_t>(kinds.lo);
    (*settling.chosen)[k] = (*settling.pick)(k, [&](size_t way) {
      Sum sum = others;
      add_kind(sum, k, way, settling.messages);
      return about_ps(sum, settling.launches);
    });
    return;
  }
  const int64_t half = kinds.lo + (kinds.hi - kinds.lo) / 2;
  const auto settle_beside = [&](Interval part, Interval beside) {
    Sum sum = others;
    for (auto k = static_cast<size_t>(beside.lo); k < static_cast<size_t>(beside.hi); ++k)
      add_kind(sum, k, (*settling.chosen)[k], settling.messages);
    settle_range(settling, part, sum);
  };
  settle_beside({kinds.lo, half}, {half, kinds.hi});
  settle_beside({half, kinds.hi}, {kinds.lo, half});
}

}  // namespace meshplan
