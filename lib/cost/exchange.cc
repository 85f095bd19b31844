#include "cost/exchange.h"

#include <algorithm>
#include <numeric>

#include "base/int_math.h"
#include "cost/exchange_phase.h"
#include "cost/far_share_price.h"
#include "cost/pipeline.h"
#include "cost/shift_price.h"
#include "tensor/box.h"
#include "transfer/digit_counts.h"
#include "transfer/exchange_digits.h"
#include "transfer/far_share.h"
#include "transfer/shift_traffic.h"
#include "transfer/sub_axes.h"

namespace meshplan {
namespace {

ExchangeCost unpriced(const ExchangeTraffic& traffic, bool whole_pieces) {
  ExchangeCost cost;
  cost.traffic = traffic;
  cost.wire_bytes = traffic.wire_bytes;
  cost.sent_bytes = traffic.sent_bytes;
  cost.whole_pieces = whole_pieces;
  return cost;
}

// In one phase.
ExchangeCost priced(const Topology& topology, const ExchangeTraffic& traffic, bool whole_pieces,
                    Peers peers = Peers::number_and_rate) {
  ExchangeCost cost = unpriced(traffic, whole_pieces);
  cost.predicted_ps = phase_ps(topology, traffic, 0, peers);
  return cost;
}

int64_t all_ps(const PhaseTime& time) { return saturating_add(time.latency_ps, time.transfer_ps); }

// In any number of chunks; rates to one peer and copies are left out.
int64_t least_in_two_phases_ps(const Topology& topology, const ExchangeTraffic& traffic) {
  const PhaseTime first = phase_time(topology, traffic.phase[0], Peers::number);
  const PhaseTime second = phase_time(topology, traffic.phase[1], Peers::number);
  return pipelined_ps(first, second, best_chunks(first, second));
}

// In so many chunks, or as many as take the least time.
ExchangeCost priced_in_two_phases(const Topology& topology, const ExchangeTraffic& traffic,
                                  std::optional<int64_t> chunks) {
  ExchangeCost cost = unpriced(traffic, false);
  cost.phases = 2;
  const bool copies = topology.copy_mb_per_s > 0;
  if (chunks || copies)
    cost.predicted_ps =
        saturating_add(phase_ps(topology, traffic, 0), phase_ps(topology, traffic, 1));
  if (chunks == 1) return cost;
  if (chunks) {
    cost.chunks = *chunks;
    cost.predicted_ps = in_chunks_ps(topology, traffic, *chunks);
    return cost;
  }
  const PhaseTime fetch = phase_time(topology, traffic.phase[0], Peers::number_and_rate);
  const PhaseTime share = phase_time(topology, traffic.phase[1], Peers::number_and_rate);
  if (!copies) cost.predicted_ps = saturating_add(all_ps(fetch), all_ps(share));
  if (!may_pay_in_chunks(fetch, share)) return cost;
  const InChunks best = best_in_chunks(topology, traffic, 1);
  if (best.ps >= cost.predicted_ps) return cost;
  cost.chunks = best.chunks;
  cost.predicted_ps = best.ps;
  return cost;
}

// The cheaper cut, the even one on a tie.
ExchangeCost cheaper(const ExchangeCost& even, const ExchangeCost& whole) {
  return whole.predicted_ps < even.predicted_ps ? whole : even;
}

// Whether more traffic never takes less time: the latency is that of the outermost level in use.
bool latencies_grow_outwards(const Topology& topology) {
  return std::is_sorted(
      topology.levels.begin(), topology.levels.end(),
      [](const TopologyLevel& a, const TopologyLevel& b) { return a.latency_ns < b.latency_ns; });
}

// What it takes at least that has such traffic in its even cut and in whole pieces, or more.
int64_t least_listed_ps(const Topology& topology, int phases, const ExchangeTraffic& even,
                        const ExchangeTraffic& whole) {
  if (phases == 2) {
    const int64_t ps = least_in_two_phases_ps(topology, even);
    return &whole == &even ? ps : std::min(ps, least_in_two_phases_ps(topology, whole));
  }
  return std::min(priced(topology, even, false, Peers::number).predicted_ps,
                  priced(topology, whole, true, Peers::number).predicted_ps);
}

// The same in laps. What members fetch of boxes of several sizes may be more even then, but each
// has parts of two boxes at most, in place of one twice as large: the most that one fetches, passes
// on and receives is half as much at least. Where slices are few fewer members may have part of
// them, so that there are fewer to pass on to.
int64_t least_in_laps_ps(const Topology& topology, ExchangeTraffic traffic) {
  for (Traffic& phase : traffic.phase) phase.denominator = saturating_mul(phase.denominator, 2);
  for (int64_t& peers : traffic.phase[1].peers) peers = std::min<int64_t>(peers, 1);
  return least_in_two_phases_ps(topology, traffic);
}

// With a far share; nullopt: too much to list. `even`: what the even cut moves, where it is known;
// INT64_MAX: no share is likely to take less than below_ps.
std::optional<ExchangeCost> price_far_share(const ExchangeQuestion& q,
                                            const ExchangeTraffic* even = nullptr,
                                            int64_t below_ps = INT64_MAX) {
  const Topology& topology = q.levels->topology();
  ExchangeCost cost;
  const bool listed = list_far_shares(q, [&](const FarShareLister& list) {
    if (q.far_64ths) {
      cost = priced(topology, list(*q.far_64ths), false);
      cost.far_64ths = *q.far_64ths;
    } else {
      const FarSharePrice best = best_far_share(topology, list, even, below_ps);
      cost = unpriced(best.traffic, false);
      cost.predicted_ps = best.predicted_ps;
      cost.far_64ths = best.far_64ths;
    }
  });
  if (!listed) return std::nullopt;
  return cost;
}

// One phase as priced, or with a far share where that is asked for and takes less.
ExchangeCost cheaper_with_far_share(ExchangeQuestion q, const ExchangeCost& nearest) {
  if (!q.far_too || nearest.least_far_ps >= nearest.predicted_ps) return nearest;
  if (nearest.least_far_ps > q.most_ps) return at_least_far(nearest);
  q.far_64ths = std::nullopt;
  q.most_listed = std::min(q.most_listed, whole_mesh_listed);
  const bool even = !nearest.whole_pieces && !nearest.at_least;
  const auto far = price_far_share(q, even ? &nearest.traffic : nullptr, nearest.predicted_ps);
  return far && far->predicted_ps < nearest.predicted_ps ? *far : nearest;
}

// Whether the rate to one peer, not the links' own, is what a phase takes.
bool held_up_by_peers(const Topology& topology, const Traffic& moved) {
  return traffic_ps(topology, moved, Peers::number_and_rate, 0) >
         traffic_ps(topology, moved, Peers::number, 0);
}

// Whether no rank has more than one peer beyond its unit.
bool has_one_peer(const Topology& topology, const Traffic& moved) {
  for (size_t l = 1; l < topology.levels.size(); ++l) {
    if (moved.peers[l] > 1) return false;
  }
  return true;
}
// Whether the rate to the one peer that each has is what a phase takes.
bool waits_for_one_peer(const Topology& topology, const Traffic& moved) {
  return has_one_peer(topology, moved) && held_up_by_peers(topology, moved);
}

// Two phases as priced, or fetched in laps where that helps: across meshes by all.
ExchangeCost cheaper_in_laps(ExchangeQuestion q, const ExchangeCost& known) {
  const Topology& topology = q.levels->topology();
  const Traffic& fetched = known.traffic.phase[0];
  const bool crosses = q.dst_mesh != nullptr;
  if (!(crosses ? held_up_by_peers(topology, fetched) : waits_for_one_peer(topology, fetched)))
    return known;
  q.fetchers = crosses ? Fetchers::all_in_laps : Fetchers::wanting_in_laps;
  q.is_enough = {};
  const auto listed = list_either_in_two_phases(q);
  if (!listed) return known;
  ExchangeCost in_laps = priced_in_two_phases(topology, listed->even, q.chunks);
  in_laps.fetchers = *q.fetchers;
  return in_laps.predicted_ps < known.predicted_ps ? in_laps : known;
}

ExchangeCost with_price(ExchangeCost cost, const ShiftPrice& in_shifts) {
  cost.predicted_ps = in_shifts.predicted_ps;
  cost.chunks = in_shifts.chunks;
  cost.at_once = in_shifts.at_once;
  cost.traffic.phase = in_shifts.traffic.phase;
  return cost;
}

// Two phases as priced, or in shifts where that takes less.
ExchangeCost cheaper_in_shifts(ExchangeQuestion q, ExchangeCost known) {
  const Topology& topology = q.levels->topology();
  const int64_t below_ps = std::min(known.predicted_ps, saturating_add(q.most_ps, 1));
  if (least_in_shifts_ps(topology, known.traffic) >= below_ps) return known;
  q.fetchers = known.fetchers;
  ShiftPrice price;
  const bool listed = list_shifts(q, [&](const ShiftTraffic& shifts) {
    known.in_shifts_unknown = !shifts.known();
    if (shifts.known()) price = best_in_shifts(topology, known.traffic, shifts);
    q.levels->listings().looked += most_at_once_tried * shifts.work();
  });
  if (!listed || price.predicted_ps >= known.predicted_ps) return known;
  return with_price(std::move(known), price);
}

// As the question says, in shifts; nullopt: too much to list, or stages do not divide the chunks.
std::optional<ExchangeCost> priced_in_shifts(const ExchangeQuestion& q, ExchangeCost whole) {
  std::optional<ShiftPrice> price;
  const bool listed = list_shifts(q, [&](const ShiftTraffic& shifts) {
    if (!shifts.known()) return;
    price = price_in_shifts(q.levels->topology(), whole.traffic, shifts, q.at_once,
                            q.chunks.value_or(1));
  });
  if (!listed || !price) return std::nullopt;
  return with_price(std::move(whole), *price);
}

// Two phases as listed: fetched by those that may, in laps and in shifts where that is asked for.
std::optional<ExchangeCost> price_ways(const ExchangeQuestion& q, const ListedPhase& listed) {
  const Topology& topology = q.levels->topology();
  ExchangeCost plain = priced_in_two_phases(topology, listed.even, q.chunks);
  plain.fetchers = q.fetchers.value_or(Fetchers::wanting);
  std::optional<ExchangeCost> other;  // fetched by others, which may take less in shifts
  if (listed.whole) {
    other = priced_in_two_phases(topology, *listed.whole, q.chunks);
    other->fetchers = Fetchers::all;
    if (other->predicted_ps < plain.predicted_ps) std::swap(*other, plain);
  }
  if (q.at_once > 0) return q.dst_mesh == nullptr ? std::nullopt : priced_in_shifts(q, plain);
  if (q.in_laps_too) plain = cheaper_in_laps(q, plain);
  if (!q.in_shifts_too) return plain;
  ExchangeCost cost = cheaper_in_shifts(q, plain);
  if (!other) return cost;
  ExchangeQuestion below = q;
  below.most_ps = std::min(q.most_ps, cost.predicted_ps);
  const ExchangeCost other_in_shifts = cheaper_in_shifts(below, *other);
  const bool unknown = cost.in_shifts_unknown || other_in_shifts.in_shifts_unknown;
  if (other_in_shifts.predicted_ps < cost.predicted_ps) cost = other_in_shifts;
  cost.in_shifts_unknown = unknown;
  return cost;
}

// Whether all may fetch in laps, too: what is fetched and sent may be shared so much better then
// that what is listed without says nothing of it.
bool may_share_in_laps(const ExchangeQuestion& q) {
  const Topology& topology = q.levels->topology();
  return q.phases == 2 && q.in_laps_too && q.dst_mesh != nullptr &&
         (!topology.protocols.empty() || std::any_of(topology.levels.begin(), topology.levels.end(),
                                                     [](const TopologyLevel& level) {
                                                       return level.peer_mb_per_s > 0 ||
                                                              level.near_bytes > 0;
                                                     }));
}

std::optional<ExchangeCost> price_listed(ExchangeQuestion q) {
  if (q.phases == 1 && q.far_64ths != 0) return price_far_share(q);
  const Topology& topology = q.levels->topology();
  int64_t least_ps = 0;  // where all that was asked for is listed
  if (q.most_ps != INT64_MAX && latencies_grow_outwards(topology) && !may_share_in_laps(q)) {
    q.is_enough = [&](const ExchangeTraffic& even, const ExchangeTraffic& whole) {
      least_ps = q.in_laps_too && q.dst_mesh == nullptr && has_one_peer(topology, even.phase[0])
                     ? least_in_laps_ps(topology, even)
                     : least_listed_ps(topology, q.phases, even, whole);
      if (q.in_shifts_too)
        least_ps = std::min(
            {least_ps, least_in_shifts_ps(topology, even), least_in_shifts_ps(topology, whole)});
      if (q.far_too) least_ps = std::min(least_ps, least_far_share_ps(topology, even));
      return least_ps > q.most_ps;
    };
  }
  const auto at_least = [&] {
    ExchangeCost cost;
    cost.predicted_ps = least_ps;
    cost.at_least = true;
    return cost;
  };
  if (q.phases == 2) {
    const auto listed = list_either_in_two_phases(q);
    if (!listed) return std::nullopt;
    if (least_ps > q.most_ps) return at_least();
    return price_ways(q, *listed);
  }
  const auto listed = list_exchange(q);
  if (!listed) return std::nullopt;
  ExchangeCost cost;
  if (least_ps > q.most_ps) {
    cost = at_least();
  } else {
    const ExchangeCost even = priced(topology, listed->even, false);
    const ExchangeCost whole = priced(topology, listed->whole.value_or(listed->even), true);
    cost = listed->whole ? cheaper(even, whole) : even;
    if (q.whole_pieces) cost = *q.whole_pieces ? whole : even;
  }
  cost.uneven = listed->uneven;
  cost.held_up = q.dst_mesh != nullptr && held_up_by_peers(topology, cost.traffic.phase[0]);
  if (listed->far) cost.least_far_ps = least_far_share_ps(topology, listed->even);
  return cheaper_with_far_share(q, cost);
}

// What a far share takes at least where all pieces are alike: of each that has holders inside, and
// slices enough, some come from two far holders, if there are.
int64_t least_of_alike_pieces_ps(const DigitQuestion& q, const ExchangeTraffic& even) {
  const DigitWorld& world = *q.world;
  const DigitChange& change = *q.change;
  if (change.reduced != 0 || !has_far_holders(world, change)) return INT64_MAX;
  const DigitCounts counts = count_pieces(world, change, q.levels->levels());
  const int64_t holders = world.product(world.all() & ~(change.src | change.kept));
  const bool two = change.longest >= far_asked * far_whole && holders - counts.holders[0] > 1;
  const int64_t pieces = counts.received[0];
  return least_far_share_ps(q.levels->topology(), even,
                            {pieces, std::max<int64_t>(1, two ? 2 * pieces : pieces)});
}

// Whole pieces; `exact` is false where their turns were not counted: they take at least this.
ExchangeCost price_whole(const DigitQuestion& q, int64_t below_ps) {
  const Topology& topology = q.levels->topology();
  const int levels = q.levels->levels();
  const ExchangeTraffic traffic = digits_one_phase(*q.world, *q.change, levels, ExchangeCut::whole);
  // Where turns are still to be counted more peers may share what is sent.
  const ExchangeCost least =
      priced(topology, traffic, true, traffic.exact ? Peers::number_and_rate : Peers::number);
  const bool enough = least.traffic.exact && (least.traffic.sent_is_known || !q.sent_too);
  if (enough || least.predicted_ps >= below_ps) return least;
  const MostTurns* turns = q.turns->find(*q.levels, *q.world, *q.change, q.most_steps);
  if (turns == nullptr) return least;
  return priced(topology, digits_whole_pieces(*q.world, *q.change, levels, *turns), true);
}

// By levels alone; nullopt as price_digits has it.
std::optional<ExchangeCost> closed_form(const DigitQuestion& q) {
  const Topology& topology = q.levels->topology();
  const int levels = q.levels->levels();
  if (q.phases == 2) {
    // Which members have the larger parts, and which holders serve more, is told by their ids.
    if (!q.levels->units_in_one_order()) return std::nullopt;
    const auto in_laps = [&](int64_t laps) -> std::optional<ExchangeCost> {
      const auto traffic = digits_two_phases(*q.world, *q.change, levels, laps);
      if (!traffic) return std::nullopt;
      ExchangeCost cost = priced_in_two_phases(topology, *traffic, q.chunks);
      if (laps > 1) cost.fetchers = Fetchers::wanting_in_laps;
      return cost;
    };
    const auto cost = in_laps(q.laps);
    if (!cost || !q.in_laps_too || !waits_for_one_peer(topology, cost->traffic.phase[0]))
      return cost;
    const auto twice = in_laps(most_laps);
    return twice && twice->predicted_ps < cost->predicted_ps ? twice : cost;
  }
  if (q.whole_pieces == true) {
    const ExchangeCost whole = price_whole(q, INT64_MAX);
    if (!whole.traffic.exact) return std::nullopt;
    return whole;
  }
  ExchangeCost even =
      priced(topology, digits_one_phase(*q.world, *q.change, levels, ExchangeCut::even), false);
  even.least_far_ps = least_of_alike_pieces_ps(q, even.traffic);
  if (q.whole_pieces == false || !has_several_holders(*q.world, *q.change)) return even;
  // The even cut on a tie.
  ExchangeCost whole = price_whole(q, std::min(even.predicted_ps, saturating_add(q.most_ps, 1)));
  if (whole.predicted_ps >= even.predicted_ps) return even;
  if (!whole.traffic.exact && whole.predicted_ps <= q.most_ps) return std::nullopt;
  whole.at_least = !whole.traffic.exact;
  whole.least_far_ps = even.least_far_ps;
  return whole;
}

// Too many pairs to list: every extent rounded up until digits line up, or, where they never do,
// the whole target over the outermost level.
ExchangeCost estimate(const ExchangeQuestion& q) {
  const Topology& topology = q.levels->topology();
  std::vector<int64_t> padded(q.shape.begin(), q.shape.end());
  for (size_t d = 0; d < padded.size(); ++d) {
    int64_t parts = 1;
    for (const State* state : {q.src, q.dst}) {
      int64_t product = 1;
      for (const SubAxis& sub_axis : state->shards[d])
        product = saturating_mul(product, sub_axis.size);
      parts = product > INT64_MAX / parts ? INT64_MAX : std::lcm(parts, product);
    }
    padded[d] = saturating_mul(ceil_div(padded[d], parts), parts);
  }
  std::optional<ExchangeCost> cost;
  if (q.dst_mesh == nullptr) {
    if (const auto problem = align_digits(*q.levels, padded, q.element_bytes, *q.src, *q.dst)) {
      TurnTable turns;
      DigitQuestion digits{q.levels,       &problem->world, &problem->change, 1,
                           q.whole_pieces, &turns,          q.most_listed};
      cost = closed_form(digits);
      digits.whole_pieces = false;
      if (!cost) cost = closed_form(digits);
    }
  }
  if (!cost) {
    // Every contribution is sent whole, and each shard has a sender of its own.
    const Mesh& src_mesh = q.levels->mesh();
    const Mesh& dst_mesh = q.dst_mesh != nullptr ? *q.dst_mesh : src_mesh;
    int64_t shards = 1;
    const State nothing;  // pending behind an exchange across meshes
    for (const PendingSubAxis& p :
         reduced_between(*q.src, q.dst_mesh == nullptr ? *q.dst : nothing, mesh_shape(src_mesh)))
      shards = saturating_mul(shards, p.sub_axis.size);
    int64_t bytes = saturating_mul(q.element_bytes, shards);
    const std::vector<int64_t> held = largest_box(*q.src, q.shape, mesh_shape(src_mesh));
    const std::vector<int64_t> wanted = largest_box(*q.dst, q.shape, mesh_shape(dst_mesh));
    for (size_t d = 0; d < q.shape.size(); ++d) {
      bytes = saturating_mul(bytes, wanted[d]);
      if (wanted[d] > 0) shards = saturating_mul(shards, ceil_div(wanted[d], held[d]));
    }
    ExchangeTraffic traffic;
    const auto outermost = static_cast<size_t>(q.levels->levels() - 1);
    traffic.wire_bytes = traffic.sent_bytes = traffic.received[0] = bytes;
    traffic.phase[0].bytes[outermost] = bytes;
    traffic.phase[0].peers[outermost] = std::min(mesh_size(src_mesh), shards);
    cost = priced(topology, traffic, q.whole_pieces.value_or(false));
  }
  cost->exact = false;
  return *cost;
}

ExchangeCost price_by_levels(const ExchangeQuestion& q,
                             const std::optional<DigitProblem>& problem) {
  TurnTable turns;
  DigitQuestion digits;
  const Fetchers fetchers = q.fetchers.value_or(Fetchers::wanting);
  const bool by_all = q.phases == 2 && all_fetch(fetchers);
  if (problem && !by_all && q.far_64ths == 0) {
    digits = {q.levels,       &problem->world, &problem->change, q.phases,
              q.whole_pieces, &turns,          q.most_listed};
    digits.chunks = q.chunks;
    digits.laps = laps_of(fetchers);
    digits.in_laps_too = q.in_laps_too;
    digits.sent_too = true;
    if (auto cost = closed_form(digits)) {
      *cost = cheaper_with_far_share(q, *cost);
      if (cost->traffic.sent_is_known) return *cost;
      ExchangeQuestion same = q;
      same.whole_pieces = cost->whole_pieces;
      same.far_too = false;
      if (const auto listed = price_listed(same)) return *listed;
      cost->exact = false;
      return *cost;
    }
  }
  if (const auto listed = price_listed(q)) return *listed;
  // The even cut always has a closed form.
  if (problem && q.phases == 1 && !q.whole_pieces) {
    digits.whole_pieces = false;
    return *closed_form(digits);
  }
  if (q.phases == 1) return estimate(q);
  ExchangeCost unknown;
  unknown.predicted_ps = INT64_MAX;
  unknown.exact = false;
  return unknown;
}

void hold_above(ExchangeCost& cost, const SameBoxes& least) {
  cost.least = least;
  cost.predicted_ps = std::max(cost.predicted_ps, least.price.ps);
}

}  // namespace

std::optional<ExchangeCost> price_digits(const DigitQuestion& q) {
  auto cost = closed_form(q);
  if (cost && has_tables(q.levels->topology()))
    hold_above(*cost, same_boxes(q.levels->topology(), *q.world, *q.change));
  return cost;
}

ExchangeCost at_least_far(ExchangeCost nearest) {
  nearest.predicted_ps = std::min(nearest.predicted_ps, nearest.least_far_ps);
  nearest.at_least = true;
  return nearest;
}

ExchangeCost price_exchange(const ExchangeQuestion& q) {
  std::optional<DigitProblem> problem;
  if (q.dst_mesh == nullptr)
    problem = align_digits(*q.levels, q.shape, q.element_bytes, *q.src, *q.dst);
  ExchangeCost cost = price_by_levels(q, problem);
  if (q.dst_mesh == nullptr && has_tables(q.levels->topology())) {
    if (problem) {
      hold_above(cost, same_boxes(q.levels->topology(), problem->world, problem->change));
    } else {
      hold_above(cost, same_boxes(*q.levels, q.shape, q.element_bytes, *q.src, *q.dst));
    }
  }
  return cost;
}

}  // namespace meshplan
